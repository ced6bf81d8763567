/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Input of bindgen for kdapl_nvmet.ko. */
#include <linux/hrtimer_types.h>

#include <linux/inet.h>
#include <linux/nvme-rdma.h>
#include <linux/nvme.h>
#include <linux/scatterlist.h>
#include <target/nvmet.h>

#include "helpers.h"
