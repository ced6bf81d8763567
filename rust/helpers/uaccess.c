// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/uaccess.h>

#include "helpers.h"

/*
 * Whether a message can be written back where it came from. It is not longer than a page, so it lies in two
 * of them at most: its first byte and its last one tell. What is written is what is there.
 */
bool kdapl_helper_can_write_back(void __user *to, const void *message, size_t size)
{
	const u8 *bytes = message;
	u8 __user *place = to;

	return !put_user(bytes[0], place) && !put_user(bytes[size - 1], place + size - 1);
}
