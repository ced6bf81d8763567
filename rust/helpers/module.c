// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/module.h>

#include "helpers.h"

/* Takes a reference to the module that is never dropped: the module cannot be unloaded any more. */
void kdapl_helper_stay_loaded(void)
{
	__module_get(THIS_MODULE);
}
