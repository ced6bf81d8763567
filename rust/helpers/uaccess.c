// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/uaccess.h>

#include "helpers.h"

/*
 * Returns whether a message can be written back to its place in user memory. The message is at most
 * a page long, so it touches at most two pages. Writing its first and its last byte therefore
 * checks all of it. The bytes written are those of @message.
 */
bool kdapl_helper_can_write_back(void __user *to, const void *message, size_t size)
{
	const u8 *bytes = message;
	u8 __user *place = to;

	return !put_user(bytes[0], place) && !put_user(bytes[size - 1], place + size - 1);
}

/*
 * Returns whether @size bytes of user memory, at most a page, can be written. It works as the
 * function above, but writes back the bytes that it has read. A concurrent change of one of these
 * two bytes by another thread may be undone.
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
