/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Input of bindgen for kdapl_nvme.ko. */
#include <linux/hrtimer_types.h>

#include "nvme.h"
#include "fabrics.h"

#include <linux/inet.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "helpers.h"
