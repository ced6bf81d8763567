/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Refusals of dat_ep_connect(), each by one wrong argument. Three consumers try them: a process by
 * /dev/kdapl (tests/self reads this file), a kernel module by kdat.h, a uDAPL program by libdat2.
 *
 * REFUSAL(address, conn_qual, timeout in microseconds, size of the private data, qos, flags,
 *	   type of the return code, its subtype)
 *
 * The address is RIGHT, of the OTHER family than the adapter's, or UNKNOWN: of no IP family.
 */
REFUSAL(RIGHT, 20000, 1000000, 0, 3, 0, 0x09, 0)	/* two qualities of service */
REFUSAL(RIGHT, 20000, 1000000, 0, 16, 0, 0x09, 0)	/* an unknown one */
REFUSAL(RIGHT, 20000, 1000000, 0, 0, 2, 0x09, 0)	/* several paths are required */
REFUSAL(RIGHT, 20000, 1000000, 0, 0, 4, 0x09, 0)	/* an unknown flag */
REFUSAL(RIGHT, 20000, 0, 0, 0, 0, 0x06, 40)		/* no time: argument 4 */
REFUSAL(RIGHT, 20000, 1000000, 600, 0, 0, 0x06, 41)	/* too much private data: argument 5 */
REFUSAL(UNKNOWN, 20000, 1000000, 0, 0, 0, 0x12, 99)	/* malformed */
REFUSAL(OTHER, 20000, 1000000, 0, 0, 0, 0x12, 97)	/* unsupported */
REFUSAL(RIGHT, 0, 1000000, 0, 0, 0, 0x06, 39)		/* no qualifier: argument 3 */
