/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Calls between glue.c and the Rust code of kdapl_bmi.ko. */
#ifndef _KDAPL_BMI_GLUE_H
#define _KDAPL_BMI_GLUE_H

#include <linux/types.h>

struct kdapl_bmi_ticker;

/* Starts to call kdapl_bmi_tick() regularly, in a work item. Returns NULL without memory. */
struct kdapl_bmi_ticker *kdapl_bmi_ticker_start(const void *shared);
/* Stops that, and waits for a call in progress. */
void kdapl_bmi_ticker_stop(struct kdapl_bmi_ticker *ticker);
void kdapl_bmi_tick(const void *shared);
u64 kdapl_bmi_random(void);
/* Lets the thread allocate without I/O: the consumer may be a file system. */
unsigned int kdapl_bmi_noio_save(void);
void kdapl_bmi_noio_restore(unsigned int flags);

#endif
