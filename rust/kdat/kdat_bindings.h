/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Input of bindgen for the crate kdat. */
#include <rdma/kdat.h>
#include <rdma/kdat_ib_extensions.h>

#include <linux/in6.h>
