/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DAT 2.0 for user programs (uDAPL), in C and C++.
 *
 * Link with libkdat: pkg-config --cflags --libs kdat. kdat(7) is an introduction, and each call has a
 * manual page. The structures have the layout of other headers of DAT 2.0.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#include <dat2/dat_ia.h>
#include <dat2/dat_cno.h>
#include <dat2/dat_evd.h>
#include <dat2/dat_ep.h>
#include <dat2/dat_connect.h>
#include <dat2/dat_service.h>
#include <dat2/dat_dto.h>
#include <dat2/dat_memory.h>
#include <dat2/dat_srq.h>

#ifdef __cplusplus
}
#endif
