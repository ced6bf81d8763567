/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Refusals of dat_ep_connect(). Three consumers try each row: a process by /dev/kdapl (tests/self
 * reads this file), a kernel module by kdat.h, a uDAPL program by libdat2. Each defines the macros
 * that it wants. The last two arguments are the type of the return code and its subtype.
 *
 * REFUSAL(address, conn_qual, timeout in microseconds, size of the private data, qos, flags, ...):
 * one wrong argument. The address is RIGHT, NONE (a null pointer, or no family), UNKNOWN (of no IP
 * family), of the OTHER family than the adapter's, or an ADDRESS below.
 *
 * ADDRESS(word, IPv4 address, IPv6 address)
 *
 * STATE(state, ...): an Endpoint in DAT_EP_STATE_state. No device has several paths, so there is no
 * CONNECTED_MULTI_PATH.
 *
 * HANDLE(kind, ...): the handle of a FREED Endpoint, of another object, DAT_HANDLE_NULL (NONE), or
 * one that no call has returned (INVENTED).
 *
 * ROUTE(way, ...): no way leads to the address. Either the adapter's own address is GONE, or there
 * is no route to the peer's (ABSENT), or one of this type. Over IPv4 the kernel takes an address
 * without a route to be on the link, so there GONE alone is refused.
 */
#ifndef REFUSAL
#define REFUSAL(...)
#endif
#ifndef ADDRESS
#define ADDRESS(...)
#endif
#ifndef STATE
#define STATE(...)
#endif
#ifndef HANDLE
#define HANDLE(...)
#endif
#ifndef ROUTE
#define ROUTE(...)
#endif
ADDRESS(UNSPECIFIED, "0.0.0.0", "::")
ADDRESS(MULTICAST, "224.0.0.1", "ff02::1")
ADDRESS(BROADCAST, "255.255.255.255", "ff02::1")
ADDRESS(LOOPBACK, "127.0.0.1", "::1")
REFUSAL(RIGHT, 20000, 1000000, 0, 3, 0, 0x09, 0)	/* two qualities of service */
REFUSAL(RIGHT, 20000, 1000000, 0, 16, 0, 0x09, 0)	/* an unknown one */
REFUSAL(RIGHT, 20000, 1000000, 0, 0, 2, 0x09, 0)	/* several paths are required */
REFUSAL(RIGHT, 20000, 1000000, 0, 0, 4, 0x09, 0)	/* an unknown flag */
REFUSAL(RIGHT, 20000, 0, 0, 0, 0, 0x06, 40)		/* no time: argument 4 */
REFUSAL(RIGHT, 20000, 1000000, 600, 0, 0, 0x06, 41)	/* too much private data: argument 5 */
REFUSAL(NONE, 20000, 1000000, 0, 0, 0, 0x12, 99)	/* malformed */
REFUSAL(UNKNOWN, 20000, 1000000, 0, 0, 0, 0x12, 99)	/* malformed */
REFUSAL(OTHER, 20000, 1000000, 0, 0, 0, 0x12, 97)	/* unsupported */
REFUSAL(UNSPECIFIED, 20000, 1000000, 0, 0, 0, 0x12, 99)	/* no host has it */
REFUSAL(MULTICAST, 20000, 1000000, 0, 0, 0, 0x12, 99)	/* several hosts may have it */
REFUSAL(BROADCAST, 20000, 1000000, 0, 0, 0, 0x12, 99)	/* all hosts of a link have it */
REFUSAL(LOOPBACK, 20000, 1000000, 0, 0, 0, 0x12, 98)	/* of no RDMA device */
REFUSAL(RIGHT, 0, 1000000, 0, 0, 0, 0x06, 39)		/* no qualifier: argument 3 */
STATE(UNCONFIGURED_UNCONNECTED, 0x07, 63)
STATE(RESERVED, 0x07, 53)
STATE(UNCONFIGURED_RESERVED, 0x07, 64)
STATE(PASSIVE_CONNECTION_PENDING, 0x07, 49)
STATE(UNCONFIGURED_PASSIVE, 0x07, 65)
STATE(ACTIVE_CONNECTION_PENDING, 0x07, 48)
STATE(TENTATIVE_CONNECTION_PENDING, 0x07, 50)
STATE(UNCONFIGURED_TENTATIVE, 0x07, 66)
STATE(CONNECTED, 0x07, 51)
STATE(DISCONNECT_PENDING, 0x07, 55)
STATE(DISCONNECTED, 0x07, 52)
STATE(COMPLETION_PENDING, 0x07, 54)
STATE(CONNECTED_SINGLE_PATH, 0x07, 51)
HANDLE(NONE, 0x05, 12)
HANDLE(FREED, 0x05, 12)
HANDLE(PZ, 0x05, 12)
HANDLE(EVD, 0x05, 12)
HANDLE(LMR, 0x05, 12)
HANDLE(PSP, 0x05, 12)
HANDLE(INVENTED, 0x05, 12)
ROUTE(GONE, 0x12, 98)
ROUTE(ABSENT, 0x12, 98)
ROUTE(unreachable, 0x12, 98)
ROUTE(prohibit, 0x12, 98)
ROUTE(blackhole, 0x12, 98)
#undef REFUSAL
#undef ADDRESS
#undef STATE
#undef HANDLE
#undef ROUTE
