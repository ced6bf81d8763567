/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* RDMA devices and their ports. */
#ifndef _UAPI_RDMA_KDAPL_DEVICE_H
#define _UAPI_RDMA_KDAPL_DEVICE_H

#include <rdma/kdapl/common.h>

/**
 * struct kdapl_device - KDAPL_DEVICE_GET: query an RDMA device
 * @hdr: header; @hdr.ret is DAT_PROVIDER_NOT_FOUND if there is no device with this index
 * @index: in: index of the device, counted from 0
 * @abi_version: out: the kernel's KDAPL_ABI_VERSION
 * @name: out: name of the RDMA device, as KDAPL_IA_OPEN takes it
 * @netdev: out: name of the network device of that IA
 * @address: out: address of an IA of that name; family 0 if there is none
 * @node_guid: out: GUID of the device in host byte order
 * @transport: out: KDAPL_TRANSPORT_*
 * @port_active: out: 1 if the port is up
 * @flags: out: KDAPL_DEVICE_*
 *
 * Needs no open IA, like KDAPL_PORT_GET, KDAPL_IA_STAT, KDAPL_IA_OPEN and KDAPL_URING_CANCEL.
 */
struct kdapl_device {
	struct kdapl_hdr hdr;
	__u32 index;
	__u32 abi_version;
	__u8 name[KDAPL_NAME_MAX];
	__u8 netdev[KDAPL_NAME_MAX];
	struct kdapl_sockaddr address;
	__u64 node_guid;
	__u32 transport;
	__u32 port_active;
	__u64 flags;
};

/* Only processes with CAP_SYS_RAWIO may open the device (docs/drivers.md). */
#define KDAPL_DEVICE_RESTRICTED	0x1

#define KDAPL_TRANSPORT_IB	0
#define KDAPL_TRANSPORT_ROCE	1
#define KDAPL_TRANSPORT_IWARP	2

/**
 * struct kdapl_port - KDAPL_PORT_GET: query a port of an RDMA device, and one of its addresses
 * @hdr: header; @hdr.ret is DAT_PROVIDER_NOT_FOUND if there is no such device or port
 * @device: in: index of the device, counted from 0
 * @port: in: number of the port, mostly counted from 1
 * @address_index: in: index of the address, counted from 0
 * @addresses: out: number of addresses of the port
 * @netdev: out: name of the network device that has the address; that of the port without an
 *         address
 * @address: out: address; family 0 if there is none with this index
 * @prefix: out: bits of the address that name its network
 * @transport: out: KDAPL_TRANSPORT_*
 * @port_active: out: 1 if the port is up
 * @max_message_size: out: maximum size of a message
 *
 * Needs no open IA, like KDAPL_DEVICE_GET.
 */
struct kdapl_port {
	struct kdapl_hdr hdr;
	__u32 device;
	__u32 port;
	__u32 address_index;
	__u32 addresses;
	__u8 netdev[KDAPL_NAME_MAX];
	struct kdapl_sockaddr address;
	__u32 prefix;
	__u32 transport;
	__u32 port_active;
	__u32 max_message_size;
};

#endif /* _UAPI_RDMA_KDAPL_DEVICE_H */
