/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Parts of the module that disguises a device. */
#ifndef _KDAPL_DISGUISE_H
#define _KDAPL_DISGUISE_H

#include <linux/atomic.h>
#include <linux/moduleparam.h>
#include <rdma/ib_verbs.h>

/* Operations of the device's own driver. */
extern struct ib_device_ops disguise_own;

/* Parameters that are numbers, which the module changes, or which both change. */
extern const struct kernel_param_ops disguise_atomic_ops;
extern const struct kernel_param_ops disguise_once_ops;

/* Calls in progress. The module must not unload meanwhile. */
extern atomic_t disguise_inside;

/*
 * Counts a call that ends, accepts or rejects a connection, unless a thread of the kernel makes it.
 */
void disguise_note_caller(void);

/* Holds a call until the number is 0, or for two minutes. */
void disguise_hold_until_zero(const atomic_t *hold);

/* Wraps the connects, answers and listeners over iWARP, and unwraps them. */
void disguise_add_iwarp(struct ib_device *dev);
void disguise_remove_iwarp(struct ib_device *dev);
void disguise_release_iwarp(void);
/* Counts a queue pair that a module moves to ERR while its connect has no outcome. */
void disguise_note_failure(const struct ib_qp *qp);

/*
 * Forgets a destroyed queue pair whose memory is used again, and records one. Either may be NULL.
 */
void disguise_replace_gone(struct ib_qp *old, struct ib_qp *new);
/* Polls, and counts the completions of destroyed queue pairs. */
int disguise_poll_cq(struct ib_cq *cq, int most, struct ib_wc *wc);

/* Returns whether the destruction of a queue pair is to fail. */
bool disguise_refuses_qp(struct ib_qp *qp);
/* Wraps the destruction of the other objects, and unwraps it. */
void disguise_add_refusals(struct ib_device *dev);
void disguise_remove_refusals(struct ib_device *dev);

#endif
