// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Defines the tracepoints, and for each one a function that Rust can call. */
#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "kdapl_trace.h"
