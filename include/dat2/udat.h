/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DAT 2.0 for user programs (uDAPL), in C and C++.
 *
 * Link with libkdat: pkg-config --cflags --libs kdat. kdat(7) is an introduction, and each call has
 * a manual page. The structures have the layout of other headers of DAT 2.0.
 */
#pragma once

/**
 * DOC: kdat(7) - DAT 2.0 for C programs over /dev/kdapl
 *
 * Synopsis:
 *
 *   cc $(pkg-config --cflags kdat) program.c $(pkg-config --libs kdat)
 *
 * Description:
 *
 * The Direct Access Transport (DAT) is an interface for RDMA devices: InfiniBand, RoCE and iWARP.
 * The library libkdat has all of its calls for user programs (uDAPL), over the kernel module kdapl.
 * It requires neither libdat2 nor a dat.conf: an adapter is opened by the name of its device.
 *
 * A program that was written for libdat2 is compiled and linked again, and passes the name of a
 * device to dat_ia_open(3). The structures and constants of dat2/udat.h are those of other headers
 * of DAT 2.0.
 *
 * A connection takes these steps. Both sides open an Interface Adapter (dat_ia_open), and create a
 * Protection Zone (dat_pz_create), Event Dispatchers (dat_evd_create), an Endpoint (dat_ep_create)
 * and registered memory (dat_lmr_create). One side listens (dat_psp_create), waits for a request
 * (dat_evd_wait) and accepts it (dat_cr_accept). The other one connects (dat_ep_connect). Each gets
 * an event DAT_CONNECTION_EVENT_ESTABLISHED. Then they post receives, sends, RDMA writes and RDMA
 * reads (dat_ep_post_recv and so on), whose completions are events, too.
 *
 * Any number of threads may make any calls on any objects. A call that waits, waits in the kernel:
 * the library has no thread, but one for each CNO with an agent.
 *
 * A child of fork(2) cannot use its parent's objects, and may open an IA of its own.
 *
 * Not supported are several paths of a connection, RMRs of one Endpoint (dat_rmr_create_for_ep),
 * zero-based addresses of RMRs, datagrams, and collective operations: these calls return
 * DAT_MODEL_NOT_SUPPORTED or DAT_NOT_IMPLEMENTED.
 *
 * Files:
 *
 * /dev/kdapl: the device of the kernel module. Memory that is registered counts against
 * RLIMIT_MEMLOCK.
 *
 * See:
 *
 * dat_ia_open(3), dat_evd_wait(3), dat_ep_connect(3), dat_return(3), kdapltest(1)
 */

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
