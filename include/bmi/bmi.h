/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * BMI, the messaging layer of PVFS and OrangeFS, over /dev/kdapl.
 *
 * Link with libkdapl_bmi: pkg-config --cflags --libs kdapl-bmi. Names, types and numbers are those
 * of OrangeFS. docs/bmi.md says what differs.
 *
 * Calls return a negative number of an error (-BMI_EINVAL), 0 or 1. A post returns 1 if its
 * operation is complete already: then it is not tested for, and *id is 0. A test returns 1 if it
 * has taken a result. Any number of threads may make calls, on different operations. The library
 * has threads of its own: one, one for ends of connections, and one for each further device. They
 * block no signals: before BMI_initialize(), block those that other threads shall handle. A child
 * of fork() cannot use the library of its parent.
 *
 * Errors of every call: BMI_EDEVINIT before BMI_initialize(), BMI_EINVAL for a NULL pointer, an
 * unknown address, context or operation. BMI_EIO is an error of DAT that has no other number. After
 * the removal of the RDMA device, operations fail with BMI_ENODEV or BMI_ECONNRESET. Posts, and
 * tests without an operation, fail with BMI_ENODEV then; of several devices, after the last one.
 */
#ifndef __BMI_H
#define __BMI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The types and numbers of OrangeFS's bmi-types.h. The header that comes first defines them. */
#ifndef __BMI_TYPES_H
#define __BMI_TYPES_H

typedef int64_t bmi_size_t;
typedef int32_t bmi_msg_tag_t;
typedef int64_t bmi_context_id;
typedef int64_t bmi_op_id_t;
typedef int64_t BMI_addr_t;
typedef int32_t bmi_error_code_t;
typedef struct PVFS_hint_s *bmi_hint;	/* not used */

#define BMI_MAX_CONTEXTS 16
#define BMI_MAX_ADDR_LEN 2048

/* Flags of BMI_initialize(). */
enum {
	BMI_INIT_SERVER = 1,		/* listen, at an address */
	BMI_TCP_BIND_SPECIFIC = 2,	/* no effect: an address is listened at anyway */
	BMI_AUTO_REF_COUNT = 4		/* each later unexpected message adds a reference */
};

enum bmi_op_type {
	BMI_SEND = 1,
	BMI_RECV = 2
};

/* No effect: the library finds its own memory by the address. */
enum bmi_buffer_type {
	BMI_PRE_ALLOC = 1,	/* from BMI_memalloc() */
	BMI_EXT_ALLOC = 2
};

/* Options of BMI_set_info() and BMI_get_info(). */
enum {
	BMI_DROP_ADDR = 1,		/* set: forget an address and end our connection to it */
	BMI_CHECK_INIT = 2,		/* get: 0 if the library is initialized */
	BMI_CHECK_MAXSIZE = 3,		/* get, int: bytes of the longest message, 512 MiB */
	BMI_GET_METH_ADDR = 4,		/* not supported */
	BMI_INC_ADDR_REF = 5,		/* set: add a reference; a new address has one */
	BMI_DEC_ADDR_REF = 6,		/* set: drop one; the last one forgets the address */
	BMI_DROP_ADDR_QUERY = 7,	/* get, int: 0, no address should be dropped */
	BMI_FORCEFUL_CANCEL_MODE = 8,	/* set: no effect */
	BMI_TRUSTED_CONNECTION = 9,	/* not supported */
	BMI_GET_UNEXP_SIZE = 10,	/* get, int: bytes of the largest unexpected message */
	BMI_TCP_BUFFER_SEND_SIZE = 11,	/* set: no effect */
	BMI_TCP_BUFFER_RECEIVE_SIZE = 12,	/* set: no effect */
	BMI_TCP_CLOSE_SOCKET = 13,	/* set: end the connection of an address */
	BMI_OPTIMISTIC_BUFFER_REG = 14,	/* set: no effect */
	BMI_TCP_CHECK_UNEXPECTED = 15,	/* set: no effect */
	BMI_TRANSPORT_METHODS_STRING = 16	/* not supported */
};

/* Parameters of BMI_OPTIMISTIC_BUFFER_REG, which has no effect. */
enum BMI_io_type {
	BMI_IO_READ = 1,
	BMI_IO_WRITE = 2
};
struct bmi_optimistic_buffer_info {
	const void *buffer;
	bmi_size_t len;
	enum BMI_io_type rw;
};

#define BMI_ERROR_BIT (1 << 30)
#define BMI_NON_ERRNO_ERROR_BIT (1 << 29)
#define BMI_NON_ERROR_BIT (BMI_NON_ERRNO_ERROR_BIT | BMI_ERROR_BIT)
#define BMI_ERROR (1 << 7)
#define BMIE(num) ((num) | BMI_ERROR_BIT)

/* Error numbers. The call returns a negative one: -BMI_EINVAL. */
#define BMI_EPERM		(BMIE(1) | BMI_ERROR)
#define BMI_ENOENT		(BMIE(2) | BMI_ERROR)
#define BMI_EINTR		(BMIE(3) | BMI_ERROR)
#define BMI_EIO			(BMIE(4) | BMI_ERROR)
#define BMI_ENXIO		(BMIE(5) | BMI_ERROR)
#define BMI_EBADF		(BMIE(6) | BMI_ERROR)
#define BMI_EAGAIN		(BMIE(7) | BMI_ERROR)
#define BMI_ENOMEM		(BMIE(8) | BMI_ERROR)
#define BMI_EFAULT		(BMIE(9) | BMI_ERROR)
#define BMI_EBUSY		(BMIE(10) | BMI_ERROR)
#define BMI_EEXIST		(BMIE(11) | BMI_ERROR)
#define BMI_ENODEV		(BMIE(12) | BMI_ERROR)
#define BMI_ENOTDIR		(BMIE(13) | BMI_ERROR)
#define BMI_EISDIR		(BMIE(14) | BMI_ERROR)
#define BMI_EINVAL		(BMIE(15) | BMI_ERROR)
#define BMI_EMFILE		(BMIE(16) | BMI_ERROR)
#define BMI_EFBIG		(BMIE(17) | BMI_ERROR)
#define BMI_ENOSPC		(BMIE(18) | BMI_ERROR)
#define BMI_EROFS		(BMIE(19) | BMI_ERROR)
#define BMI_EMLINK		(BMIE(20) | BMI_ERROR)
#define BMI_EPIPE		(BMIE(21) | BMI_ERROR)
#define BMI_EDEADLK		(BMIE(22) | BMI_ERROR)
#define BMI_ENAMETOOLONG	(BMIE(23) | BMI_ERROR)
#define BMI_ENOLCK		(BMIE(24) | BMI_ERROR)
#define BMI_ENOSYS		(BMIE(25) | BMI_ERROR)
#define BMI_ENOTEMPTY		(BMIE(26) | BMI_ERROR)
#define BMI_ELOOP		(BMIE(27) | BMI_ERROR)
#define BMI_EWOULDBLOCK		(BMIE(28) | BMI_ERROR)
#define BMI_ENOMSG		(BMIE(29) | BMI_ERROR)
#define BMI_EUNATCH		(BMIE(30) | BMI_ERROR)
#define BMI_EBADR		(BMIE(31) | BMI_ERROR)
#define BMI_EDEADLOCK		(BMIE(32) | BMI_ERROR)
#define BMI_ENODATA		(BMIE(33) | BMI_ERROR)
#define BMI_ETIME		(BMIE(34) | BMI_ERROR)
#define BMI_ENONET		(BMIE(35) | BMI_ERROR)
#define BMI_EREMOTE		(BMIE(36) | BMI_ERROR)
#define BMI_ECOMM		(BMIE(37) | BMI_ERROR)
#define BMI_EPROTO		(BMIE(38) | BMI_ERROR)
#define BMI_EBADMSG		(BMIE(39) | BMI_ERROR)
#define BMI_EOVERFLOW		(BMIE(40) | BMI_ERROR)
#define BMI_ERESTART		(BMIE(41) | BMI_ERROR)
#define BMI_EMSGSIZE		(BMIE(42) | BMI_ERROR)
#define BMI_EPROTOTYPE		(BMIE(43) | BMI_ERROR)
#define BMI_ENOPROTOOPT		(BMIE(44) | BMI_ERROR)
#define BMI_EPROTONOSUPPORT	(BMIE(45) | BMI_ERROR)
#define BMI_EOPNOTSUPP		(BMIE(46) | BMI_ERROR)
#define BMI_EADDRINUSE		(BMIE(47) | BMI_ERROR)
#define BMI_EADDRNOTAVAIL	(BMIE(48) | BMI_ERROR)
#define BMI_ENETDOWN		(BMIE(49) | BMI_ERROR)
#define BMI_ENETUNREACH		(BMIE(50) | BMI_ERROR)
#define BMI_ENETRESET		(BMIE(51) | BMI_ERROR)
#define BMI_ENOBUFS		(BMIE(52) | BMI_ERROR)
#define BMI_ETIMEDOUT		(BMIE(53) | BMI_ERROR)
#define BMI_ECONNREFUSED	(BMIE(54) | BMI_ERROR)
#define BMI_EHOSTDOWN		(BMIE(55) | BMI_ERROR)
#define BMI_EHOSTUNREACH	(BMIE(56) | BMI_ERROR)
#define BMI_EALREADY		(BMIE(57) | BMI_ERROR)
#define BMI_EACCES		(BMIE(58) | BMI_ERROR)
#define BMI_ECONNRESET		(BMIE(59) | BMI_ERROR)
#define BMI_ECANCEL		((1 | BMI_NON_ERROR_BIT) | BMI_ERROR)
#define BMI_EDEVINIT		((2 | BMI_NON_ERROR_BIT) | BMI_ERROR)
#define BMI_EDETAIL		((3 | BMI_NON_ERROR_BIT) | BMI_ERROR)
#define BMI_EHOSTNTFD		((4 | BMI_NON_ERROR_BIT) | BMI_ERROR)
#define BMI_EADDRNTFD		((5 | BMI_NON_ERROR_BIT) | BMI_ERROR)
#define BMI_ENORECVR		((6 | BMI_NON_ERROR_BIT) | BMI_ERROR)
#define BMI_ETRYAGAIN		((7 | BMI_NON_ERROR_BIT) | BMI_ERROR)

/* Returns BMI's number of an error of errno.h, with the same sign; any other number unchanged. */
int bmi_errno_to_pvfs(int error);

#endif /* __BMI_TYPES_H */

/* An unexpected message. BMI_unexpected_free() frees the buffer. */
struct BMI_unexpected_info {
	bmi_error_code_t error_code;
	BMI_addr_t addr;
	void *buffer;
	bmi_size_t size;
	bmi_msg_tag_t tag;
};

/*
 * Opens an adapter: the one that the environment variable KDAPL_BMI_ADAPTER names, that of
 * listen_addr, or the first whose port is up. Several names are separated by commas, several hosts
 * of an address by "+". method_list is NULL, or contains "kdapl". listen_addr is NULL, or with
 * BMI_INIT_SERVER "kdapl://HOST:PORT". If the library is initialized, the call is counted, and its
 * arguments have no effect.
 *
 * Errors: BMI_EINVAL for the arguments, BMI_ENODEV without a device or the module, BMI_EACCES,
 * BMI_EADDRINUSE, BMI_ENOMEM.
 */
int BMI_initialize(const char *method_list, const char *listen_addr, int flags);
/*
 * Ends what one BMI_initialize() has begun. The last call ends all connections and operations, and
 * frees all memory. No other thread may be in a call then: otherwise the library ends when the last
 * call returns. Messages that the peer has not taken are lost, also if their sends have succeeded:
 * wait for an answer first.
 */
int BMI_finalize(void);

/* Opens one of 16 contexts, to which results of operations belong. */
int BMI_open_context(bmi_context_id *context_id);
/*
 * Cancels the operations of a context, and returns when nothing accesses their memory any more: up
 * to six seconds later if a peer does not answer. Calls of other threads that wait for results of
 * the context return -BMI_EINVAL.
 */
void BMI_close_context(bmi_context_id context_id);

/*
 * Post an operation. Its memory belongs to it until it was tested for. The arrays of a list are
 * copied. total_size is the sum of size_list.
 *
 * Errors: BMI_EINVAL, BMI_ENOMEM if memory cannot be registered (ulimit -l), BMI_EMSGSIZE for a
 * message above BMI_CHECK_MAXSIZE, or an unexpected one above BMI_GET_UNEXP_SIZE, BMI_EPIPE if only
 * the peer can connect. A receive may be longer than BMI_CHECK_MAXSIZE.
 */
int BMI_post_send(bmi_op_id_t *id, BMI_addr_t dest, const void *buffer, bmi_size_t size,
		  enum bmi_buffer_type buffer_type, bmi_msg_tag_t tag, void *user_ptr,
		  bmi_context_id context_id, bmi_hint hints);
int BMI_post_sendunexpected(bmi_op_id_t *id, BMI_addr_t dest, const void *buffer, bmi_size_t size,
			    enum bmi_buffer_type buffer_type, bmi_msg_tag_t tag, void *user_ptr,
			    bmi_context_id context_id, bmi_hint hints);
int BMI_post_recv(bmi_op_id_t *id, BMI_addr_t src, void *buffer, bmi_size_t expected_size,
		  bmi_size_t *actual_size, enum bmi_buffer_type buffer_type, bmi_msg_tag_t tag,
		  void *user_ptr, bmi_context_id context_id, bmi_hint hints);
int BMI_post_send_list(bmi_op_id_t *id, BMI_addr_t dest, const void *const *buffer_list,
		       const bmi_size_t *size_list, int list_count, bmi_size_t total_size,
		       enum bmi_buffer_type buffer_type, bmi_msg_tag_t tag, void *user_ptr,
		       bmi_context_id context_id, bmi_hint hints);
int BMI_post_sendunexpected_list(bmi_op_id_t *id, BMI_addr_t dest, const void *const *buffer_list,
				 const bmi_size_t *size_list, int list_count, bmi_size_t total_size,
				 enum bmi_buffer_type buffer_type, bmi_msg_tag_t tag,
				 void *user_ptr, bmi_context_id context_id, bmi_hint hints);
int BMI_post_recv_list(bmi_op_id_t *id, BMI_addr_t src, void *const *buffer_list,
		       const bmi_size_t *size_list, int list_count, bmi_size_t total_expected_size,
		       bmi_size_t *total_actual_size, enum bmi_buffer_type buffer_type,
		       bmi_msg_tag_t tag, void *user_ptr, bmi_context_id context_id,
		       bmi_hint hints);

/*
 * Take results, and wait for the first one up to max_idle_time_ms; a negative time has no limit.
 * They return 1 if there are results, else 0. The pointers to error codes, sizes, user pointers,
 * indices and ids may be NULL. An error code is 0 or negative: -BMI_ECANCEL. After an error, the
 * memory of a receive may be partly written.
 */
int BMI_test(bmi_op_id_t id, int *outcount, bmi_error_code_t *error_code, bmi_size_t *actual_size,
	     void **user_ptr, int max_idle_time_ms, bmi_context_id context_id);
/*
 * Of several operations. index_array has their positions. Ids that are 0 are skipped: set those
 * that were taken to 0. If all are 0, the call returns at once.
 */
int BMI_testsome(int incount, bmi_op_id_t *id_array, int *outcount, int *index_array,
		 bmi_error_code_t *error_code_array, bmi_size_t *actual_size_array,
		 void **user_ptr_array, int max_idle_time_ms, bmi_context_id context_id);
/* Tests the operations of a context. */
int BMI_testcontext(int incount, bmi_op_id_t *out_id_array, int *outcount,
		    bmi_error_code_t *error_code_array, bmi_size_t *actual_size_array,
		    void **user_ptr_array, int max_idle_time_ms, bmi_context_id context_id);
/* Takes unexpected messages. After the removal of the last device, it fails at once. */
int BMI_testunexpected(int incount, int *outcount, struct BMI_unexpected_info *info_array,
		       int max_idle_time_ms);
/*
 * Cancels an operation, which has to be tested for nevertheless. One that does not exist is taken
 * for one that is over.
 */
int BMI_cancel(bmi_op_id_t id, bmi_context_id context_id);

/*
 * Allocates memory that is registered, for any address and direction. It is zero. Returns NULL
 * above the limit of locked memory (ulimit -l), and for a size of 0.
 */
void *BMI_memalloc(BMI_addr_t addr, bmi_size_t size, enum bmi_op_type send_recv);
/* Frees such memory, by its start. Operations with it keep it until they were tested for. */
int BMI_memfree(BMI_addr_t addr, void *buffer, bmi_size_t size, enum bmi_op_type send_recv);
int BMI_unexpected_free(BMI_addr_t addr, void *buffer);

int BMI_set_info(BMI_addr_t addr, int option, void *inout_parameter);
int BMI_get_info(BMI_addr_t addr, int option, void *inout_parameter);

/*
 * Resolves "kdapl://HOST:PORT", or the first such address of a list with commas. A peer with several
 * hosts is "kdapl://HOST+HOST:PORT".
 */
int BMI_addr_lookup(BMI_addr_t *new_addr, const char *id_string);
/*
 * Return "kdapl://IP:PORT", or "kdapl://IP+IP:PORT" of several hosts, which is not the text of the
 * lookup, and is valid as long as the address; NULL for an unknown one.
 */
const char *BMI_addr_rev_lookup(BMI_addr_t addr);
const char *BMI_addr_rev_lookup_unexpected(BMI_addr_t addr);
/*
 * Returns 1 if an address is in a range, else 0: "kdapl://10.7.*", where the star comes last and
 * stands for whole parts of the address, or "kdapl://10.7.0.0" with the number of bits that are
 * compared (0: all).
 */
int BMI_query_addr_range(BMI_addr_t addr, const char *id_string, int netmask);

#ifdef __cplusplus
}
#endif

#endif /* __BMI_H */
