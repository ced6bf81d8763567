/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Calls on Interface Adapters, on handles of any kind, and on names of adapters. */
#pragma once

#include <dat2/dat_event.h>

/** The program does not want the IA's asynchronous EVD, or an IA has none that is in scope. */
#define DAT_EVD_ASYNC_EXISTS	((DAT_EVD_HANDLE)0x1)
#define DAT_EVD_OUT_OF_SCOPE	((DAT_EVD_HANDLE)0x2)

#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE		DAT_FALSE
#endif

/** Opens an IA of this version of DAT. */
#define dat_ia_open(name, qlen, async_evd, ia)							\
	dat_ia_openv((name), (qlen), (async_evd), (ia), DAT_VERSION_MAJOR, DAT_VERSION_MINOR,	\
		     DAT_THREADSAFE)

/**
 * dat_ia_openv() - Open an Interface Adapter
 * @name: RDMA device (rxe0), network device (eth0) or IP address, which options may follow
 * @async_evd_min_qlen: length of the asynchronous EVD in events, at least 1
 * @async_evd: in: DAT_HANDLE_NULL, or DAT_EVD_ASYNC_EXISTS if the program does not want that EVD;
 *             out: the EVD of asynchronous events
 * @ia: out: the IA
 * @major: 2
 * @minor: 0
 * @thread_safe: any value: each IA may be used by any number of threads
 *
 * dat_ia_open() is the same call with the version of the headers. A name is that of an RDMA device,
 * of a network device, or an IP address, or the first with one of the others, such as
 * mlx5_0@eth0.100. A number after it is the port. The empty name is the first device that has an
 * address. Options follow after a blank: strict returns DAT_QUEUE_EMPTY with its class of error, as
 * the specification has it; qualifiers=daplofa maps connection qualifiers as libdaplofa does.
 *
 * If the call fails, a line on the standard error output says why, and names the devices.
 *
 * Errors:
 * * DAT_PROVIDER_NOT_FOUND (DAT_NAME_NOT_REGISTERED): there is no such device, port or address
 * * DAT_PROVIDER_NOT_FOUND (DAT_MAJOR_NOT_FOUND, DAT_MINOR_NOT_FOUND): another version
 * * DAT_INVALID_ADDRESS (DAT_INVALID_ADDRESS_UNSUPPORTED): the device has no IP address
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG1): @name has an unknown option
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @async_evd_min_qlen is out of range
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_ASYNC): @async_evd is not an EVD
 * * DAT_MODEL_NOT_SUPPORTED: @async_evd is an EVD: each IA has its own
 * * DAT_PRIVILEGES_VIOLATION: the driver of the device is restricted to privileged users
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_DEVICE): /dev/kdapl cannot be opened: the module is
 *   not loaded, or the user may not use it
 *
 * Example: ia.c
 * See: dat_ia_close(), dat_ia_query(), dat_registry_list_providers()
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_evd_min_qlen, DAT_EVD_HANDLE *async_evd,
	     DAT_IA_HANDLE *ia, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe);

/**
 * dat_ia_query() - Query the attributes of an IA and of its provider
 * @ia: the IA
 * @async_evd: out: its asynchronous EVD; may be NULL
 * @ia_mask: DAT_IA_FIELD_ALL, or 0 for no attributes of the IA
 * @ia_attr: out: attributes of the IA
 * @provider_mask: DAT_PROVIDER_FIELD_ALL, or 0 for no attributes of the provider
 * @provider_attr: out: attributes of the provider
 *
 * All attributes are returned if the mask has any bit. Pointers in them are valid until the IA is
 * closed. The attributes do not change.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3, DAT_INVALID_ARG5): a mask has unknown bits
 *
 * Example: ia.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK ia_mask,
	     DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
	     DAT_PROVIDER_ATTR *provider_attr);

/**
 * dat_ia_close() - Close an IA
 * @ia: the IA
 * @flags: DAT_CLOSE_ABRUPT_FLAG destroys the remaining objects; DAT_CLOSE_GRACEFUL_FLAG requires
 *         that there are none
 *
 * A thread that waits on an EVD or a CNO of the IA gets DAT_ABORT.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @flags has an unknown value
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_IA_IN_USE): graceful, and an object exists; a Connection
 *   Request that was not answered is one
 *
 * Example: ia.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags);

/**
 * dat_set_consumer_context() - Store a word of the consumer with an object
 * @handle: an object of any kind
 * @context: the word
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE1): @handle is stale or another object
 *
 * Example: ia.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context);

/**
 * dat_get_consumer_context() - Return the word that was stored with an object
 * @handle: an object of any kind
 * @context: out: the word; 0 if none was stored
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE1): @handle is stale or another object
 *
 * Example: ia.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context);

/**
 * dat_get_handle_type() - Return the kind of an object
 * @handle: an object of any kind
 * @type: out: its kind
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE1): @handle is stale or another object
 *
 * Example: ia.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type);

/**
 * dat_registry_list_providers() - List the names that dat_ia_open() takes
 * @max_to_return: number of pointers in @list
 * @entries_returned: out: number of names that were written
 * @list: pointers to that many structures, which are filled in
 *
 * The names are those of the RDMA devices of this machine, in the caller's network namespace.
 *
 * Errors:
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG1): @max_to_return is negative
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_DEVICE): /dev/kdapl cannot be opened
 *
 * Example: ia.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT *entries_returned,
			    DAT_PROVIDER_INFO *(list[]));

/**
 * dat_registry_providers_related() - Query whether two adapters are paths of each other
 * @name: name of an adapter
 * @other: name of another one
 * @relationship: not written
 *
 * kDAPL uses one path for a connection, so that no adapters are related in this sense.
 *
 * Errors:
 * * DAT_PROVIDER_NOT_FOUND (DAT_NAME_NOT_REGISTERED): there is no such device
 * * DAT_MODEL_NOT_SUPPORTED: both exist
 *
 * Example: ia.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_registry_providers_related(const DAT_NAME_PTR name, const DAT_NAME_PTR other,
			       DAT_HA_RELATIONSHIP *relationship);

/**
 * dat_ia_ha_related() - Query whether an IA and an adapter are paths of each other
 * @ia: the IA
 * @name: name of the adapter
 * @related: not written
 *
 * kDAPL uses one path for a connection, so that no adapters are related in this sense.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_PROVIDER_NOT_FOUND (DAT_NAME_NOT_REGISTERED): there is no such device
 * * DAT_MODEL_NOT_SUPPORTED: both exist
 *
 * Example: ia.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *related);

/**
 * dat_strerror() - Return the names of a return code
 * @code: what a call has returned
 * @major: out: name of its type, such as DAT_INVALID_STATE
 * @minor: out: name of its subtype, such as DAT_INVALID_STATE_EP_CONNECTED, or DAT_NO_SUBTYPE
 *
 * The names are constants and are not freed.
 *
 * Errors:
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG1): no call returns such a code
 *
 * Example: ia.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_strerror(DAT_RETURN code, const char **major, const char **minor);

/**
 * dat_extension_op() - Carry out an operation of an extension
 * @handle: an object, by the operation
 * @operation: one of &enum dat_ib_op
 *
 * Programs use the macros of dat2/dat_ib_extensions.h, which have the arguments of each operation:
 * dat_ib_post_rdma_write_immed(), dat_ib_post_fetch_and_add(), dat_ib_post_cmp_and_swap(),
 * dat_ib_open_query() and dat_ib_close_query().
 *
 * Errors:
 * * DAT_NOT_IMPLEMENTED: another operation
 * * DAT_MODEL_NOT_SUPPORTED: the device does not support the operation, as all over iWARP
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP, DAT_INVALID_HANDLE_IA): @handle
 * * otherwise as dat_ep_post_rdma_write() and dat_ia_open()
 *
 * Events:
 * * DAT_IB_DTO_EVENT: the operation has completed
 *
 * Example: atomic.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_extension_op(DAT_HANDLE handle, int operation, ...);
