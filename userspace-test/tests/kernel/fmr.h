/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Shared by the tests of LMRs that requests register. */
#ifndef _KDAPL_FMR_H
#define _KDAPL_FMR_H

#include <linux/mm.h>

#include "ktest.h"

#define LOCAL		(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define ALL		(LOCAL | DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
#define DEFAULT		DAT_COMPLETION_DEFAULT_FLAG
#define SUPPRESS	DAT_COMPLETION_SUPPRESS_FLAG
#define PAGES		4
#define SIZE		(PAGES * PAGE_SIZE)

/* Pages of side 1 that are registered for side 0 of a connection. */
struct scene {
	struct pair pair;
	u8 *pages;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
};

DAT_RETURN fmr(struct scene *scene, DAT_EP_HANDLE ep, u64 number, DAT_COMPLETION_FLAGS flags);
DAT_RETURN fmr_invalidate(struct scene *scene, DAT_EP_HANDLE ep, u64 number);
/* Runs a test with pages of its own. */
int fmr_with_pages(int (*run)(struct scene *scene));
/* Registers the pages on side 1, and takes the completion. */
int fmr_registered(struct scene *scene);
/* Ends the registration, and takes the completion. */
int fmr_invalidated(struct scene *scene);
/* Posts an RDMA write of 64 bytes by side 0. */
DAT_RETURN fmr_write_to(struct scene *scene, u64 address, DAT_RMR_CONTEXT context);
/* Sends a message to side 1, so that all that was sent before has arrived. */
int fmr_send_message(struct scene *scene);
/* Side 0 writes to the last bytes of the pages, and reads them. */
int fmr_peer_access(struct scene *scene, u64 start, u8 *bytes);
/* A write of side 0 is refused, which ends the connection. */
int fmr_write_refused(struct scene *scene, u64 address, DAT_RMR_CONTEXT context);

#endif
