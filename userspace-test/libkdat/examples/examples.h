/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The examples of the manual pages. Each is a function that takes the name of an adapter. OK(),
 * CHECK() and REFUSED() end the program unless a call succeeds, a condition holds, a call returns a
 * type of error. open_side() and connect_sides() are in tests/udapl/pair.c.
 */
#pragma once

#include "../../tests/udapl/consumer.h"

void example_ia(char *adapter);
void example_evd(char *adapter);
void example_cno(char *adapter);
void example_endpoint(char *adapter);
void example_connect(char *adapter);
void example_reserved(char *adapter);
void example_common(char *adapter);
void example_transfer(char *adapter);
void example_memory(char *adapter);
void example_rmr(char *adapter);
void example_srq(char *adapter);
void example_atomic(char *adapter);
