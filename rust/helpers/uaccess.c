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

/*
 * Whether that many bytes can be written, of which there are no more than a page: as above, but leaves there what
 * is there. A byte that another thread changes meanwhile may be changed back.
 */
bool kdapl_helper_can_write(void __user *to, size_t size)
{
	u8 __user *first = to, *last = first + size - 1;
	u8 byte;

	if (!user_access_begin(first, size))
		return false;
	unsafe_get_user(byte, first, fault);
	unsafe_put_user(byte, first, fault);
	unsafe_get_user(byte, last, fault);
	unsafe_put_user(byte, last, fault);
	user_access_end();
	return true;
fault:
	user_access_end();
	return false;
}
