// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/module.h>

#include "helpers.h"

/* From now on the module cannot be unloaded. */
void kdapl_helper_stay_loaded(void)
{
	__module_get(THIS_MODULE);
}
