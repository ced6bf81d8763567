/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DAT 2.0 for kernel consumers: the interface that kdapl.ko exports. Consumers include this header,
 * which includes those of all objects.
 *
 * DAT is the Direct Access Transport, an API for remote direct memory access (RDMA). Names, numbers
 * and arguments are those of DAT. docs/kernel-api.md explains the use of the calls and the points
 * that DAT leaves open. docs/dat-coverage.md lists the differences from other implementations.
 *
 * Rules for every call:
 *
 * -  Context: process or work item; may sleep, unless stated otherwise. Any thread may make any
 *   call on any object. "Context: any" includes interrupts and holders of spinlocks: the call
 *   sleeps only where its caller may.
 * -  A handle is a number cast to a pointer. A handle that is stale, of another type or invented is
 *   refused with DAT_INVALID_HANDLE.
 * -  An output pointer must be valid. NULL is allowed only where the call's description says so;
 *   elsewhere it is DAT_INVALID_PARAMETER.
 * -  Times are in microseconds, sizes in bytes.
 * -  DAT_SUCCESS is 0. Every other return value has the class DAT_CLASS_ERROR, a type
 *   (DAT_GET_TYPE) and possibly a subtype (DAT_GET_SUBTYPE, <rdma/kdat_subtypes.h>).
 *   dat_strerror() returns their names.
 * -  Interface Adapters (IAs) are opened in the initial network namespace, unless the consumer
 *   names another one (kdapl_ia_open_net()).
 *
 * A module that uses these calls needs MODULE_IMPORT_NS("KDAPL"). It must close every IA that it
 * has opened before it is unloaded.
 */
#ifndef _RDMA_KDAT_H
#define _RDMA_KDAT_H

#include <rdma/kdat/types.h>
#include <rdma/kdat/error.h>
#include <rdma/kdat/event.h>
#include <rdma/kdat/ia.h>
#include <rdma/kdat/pz.h>
#include <rdma/kdat/lmr.h>
#include <rdma/kdat/rmr.h>
#include <rdma/kdat/evd.h>
#include <rdma/kdat/cno.h>
#include <rdma/kdat/ep.h>
#include <rdma/kdat/connect.h>
#include <rdma/kdat/post.h>
#include <rdma/kdat/srq.h>
#include <rdma/kdat/service.h>
#include <rdma/kdat/cr.h>
#include <rdma/kdat/gate.h>

#endif /* _RDMA_KDAT_H */
