/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Return codes, and their names. */
#ifndef _RDMA_KDAT_ERROR_H
#define _RDMA_KDAT_ERROR_H

#include <rdma/kdat_subtypes.h>
#include <rdma/kdat/types.h>

/*
 * Return codes: class, type and subtype.
 */
#define DAT_SUCCESS			0
#define DAT_CLASS_ERROR			0x80000000u
#define DAT_GET_TYPE(code)		((code) & 0x3fff0000u)
#define DAT_GET_SUBTYPE(code)		((code) & 0x0000ffffu)

#define DAT_ABORT			0x00010000u
#define DAT_CONN_QUAL_IN_USE		0x00020000u
#define DAT_INSUFFICIENT_RESOURCES	0x00030000u
#define DAT_INTERNAL_ERROR		0x00040000u
#define DAT_INVALID_HANDLE		0x00050000u
#define DAT_INVALID_PARAMETER		0x00060000u
#define DAT_INVALID_STATE		0x00070000u
#define DAT_LENGTH_ERROR		0x00080000u
#define DAT_MODEL_NOT_SUPPORTED		0x00090000u
#define DAT_PROVIDER_NOT_FOUND		0x000a0000u
#define DAT_PRIVILEGES_VIOLATION	0x000b0000u
#define DAT_PROTECTION_VIOLATION	0x000c0000u
#define DAT_QUEUE_EMPTY			0x000d0000u
#define DAT_QUEUE_FULL			0x000e0000u
#define DAT_TIMEOUT_EXPIRED		0x000f0000u
#define DAT_PROVIDER_ALREADY_REGISTERED	0x00100000u
#define DAT_PROVIDER_IN_USE		0x00110000u
#define DAT_INVALID_ADDRESS		0x00120000u
#define DAT_INTERRUPTED_CALL		0x00130000u
#define DAT_CONN_QUAL_UNAVAILABLE	0x00140000u
#define DAT_RESERVED_LMR		0x00150000u
#define DAT_PORT_IN_USE			0x00160000u
#define DAT_COMM_NOT_SUPPORTED		0x00170000u
#define DAT_NOT_IMPLEMENTED		0x3fff0000u

/**
 * dat_strerror() - return the names of a return code
 * @value: return code of a call
 * @major: out: name of the type, as "DAT_INVALID_STATE", or "DAT_SUCCESS"
 * @minor: out: name of the subtype, as "DAT_INVALID_STATE_EVD_IN_USE"; "" if there is none
 *
 * The strings are valid while kdapl.ko is loaded. Context: any.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_PARAMETER (argument 1) if DAT does not have
 * @value; the strings are not set then.
 */
DAT_RETURN dat_strerror(DAT_RETURN value, const char **major, const char **minor);

#endif /* _RDMA_KDAT_ERROR_H */
