/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * BMI, the messaging layer of PVFS and OrangeFS, over /dev/kdapl.
 *
 * Link with libkdapl_bmi: pkg-config --cflags --libs kdapl-bmi. Names, types and numbers are those
 * of OrangeFS, so that its callers compile. docs/bmi.md says what differs.
 *
 * Calls return 0, or a negative number of an error (-BMI_EINVAL). A post returns 1 if its operation
 * is complete already: then it is not tested for, and *id is 0. Any number of threads may make
 * calls, on different operations.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
	BMI_AUTO_REF_COUNT = 4		/* each unexpected message adds a reference to its sender */
};

enum bmi_op_type {
	BMI_SEND = 1,
	BMI_RECV = 2
};

/* The library knows which memory is its own, whatever it is told. */
enum bmi_buffer_type {
	BMI_PRE_ALLOC = 1,	/* from BMI_memalloc() */
	BMI_EXT_ALLOC = 2
};

/* Options of BMI_set_info() and BMI_get_info(). */
enum {
	BMI_DROP_ADDR = 1,		/* set: forget an address, end its connection */
	BMI_CHECK_INIT = 2,		/* get: 0 if the library is initialized */
	BMI_CHECK_MAXSIZE = 3,		/* get, int: bytes of the largest message */
	BMI_GET_METH_ADDR = 4,		/* not supported */
	BMI_INC_ADDR_REF = 5,		/* set: add a reference to an address */
	BMI_DEC_ADDR_REF = 6,		/* set: drop one */
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

#define BMI_ERROR_BIT (1 << 30)
#define BMI_NON_ERRNO_ERROR_BIT (1 << 29)
#define BMI_NON_ERROR_BIT (BMI_NON_ERRNO_ERROR_BIT | BMI_ERROR_BIT)
#define BMI_ERROR (1 << 7)
#define BMIE(num) ((num) | BMI_ERROR_BIT)

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
#define BMI_EINVAL		(BMIE(15) | BMI_ERROR)
#define BMI_EPIPE		(BMIE(21) | BMI_ERROR)
#define BMI_ENOSYS		(BMIE(25) | BMI_ERROR)
#define BMI_EPROTO		(BMIE(38) | BMI_ERROR)
#define BMI_EMSGSIZE		(BMIE(42) | BMI_ERROR)
#define BMI_EPROTONOSUPPORT	(BMIE(45) | BMI_ERROR)
#define BMI_EADDRINUSE		(BMIE(47) | BMI_ERROR)
#define BMI_ETIMEDOUT		(BMIE(53) | BMI_ERROR)
#define BMI_ECONNREFUSED	(BMIE(54) | BMI_ERROR)
#define BMI_EHOSTUNREACH	(BMIE(56) | BMI_ERROR)
#define BMI_EACCES		(BMIE(58) | BMI_ERROR)
#define BMI_ECONNRESET		(BMIE(59) | BMI_ERROR)
#define BMI_ECANCEL		((1 | BMI_NON_ERROR_BIT) | BMI_ERROR)
#define BMI_EDEVINIT		((2 | BMI_NON_ERROR_BIT) | BMI_ERROR)

/* An unexpected message. BMI_unexpected_free() frees the buffer. */
struct BMI_unexpected_info {
	bmi_error_code_t error_code;
	BMI_addr_t addr;
	void *buffer;
	bmi_size_t size;
	bmi_msg_tag_t tag;
};

/*
 * Opens an adapter: the one of listen_addr, of the environment variable KDAPL_BMI_ADAPTER, or the
 * first whose port is up. method_list is NULL, or contains "kdapl". listen_addr is NULL, or with
 * BMI_INIT_SERVER "kdapl://HOST:PORT".
 */
int BMI_initialize(const char *method_list, const char *listen_addr, int flags);
/* Ends all connections and operations, and frees all memory. */
int BMI_finalize(void);

/* Opens one of 16 contexts, to which results of operations belong. */
int BMI_open_context(bmi_context_id *context_id);
/* Cancels the operations of a context. */
void BMI_close_context(bmi_context_id context_id);

/* Post an operation. The memory, and the arrays of a list, belong to it until it was tested for. */
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
 * Take results, and wait for the first one up to max_idle_time_ms. Each of the pointers to results
 * may be NULL, except that to the count.
 */
int BMI_test(bmi_op_id_t id, int *outcount, bmi_error_code_t *error_code, bmi_size_t *actual_size,
	     void **user_ptr, int max_idle_time_ms, bmi_context_id context_id);
/* Of several operations; those with the id 0 are skipped. index_array has their positions. */
int BMI_testsome(int incount, bmi_op_id_t *id_array, int *outcount, int *index_array,
		 bmi_error_code_t *error_code_array, bmi_size_t *actual_size_array,
		 void **user_ptr_array, int max_idle_time_ms, bmi_context_id context_id);
/* Of any operations of a context. */
int BMI_testcontext(int incount, bmi_op_id_t *out_id_array, int *outcount,
		    bmi_error_code_t *error_code_array, bmi_size_t *actual_size_array,
		    void **user_ptr_array, int max_idle_time_ms, bmi_context_id context_id);
/* Takes unexpected messages. */
int BMI_testunexpected(int incount, int *outcount, struct BMI_unexpected_info *info_array,
		       int max_idle_time_ms);
/* Cancels an operation, which has to be tested for nevertheless. */
int BMI_cancel(bmi_op_id_t id, bmi_context_id context_id);

/* Allocates memory that is registered. It is zero, and NULL if there is none. */
void *BMI_memalloc(BMI_addr_t addr, bmi_size_t size, enum bmi_op_type send_recv);
int BMI_memfree(BMI_addr_t addr, void *buffer, bmi_size_t size, enum bmi_op_type send_recv);
int BMI_unexpected_free(BMI_addr_t addr, void *buffer);

int BMI_set_info(BMI_addr_t addr, int option, void *inout_parameter);
int BMI_get_info(BMI_addr_t addr, int option, void *inout_parameter);

/* Resolves "kdapl://HOST:PORT", or the first such address of a list with commas. */
int BMI_addr_lookup(BMI_addr_t *new_addr, const char *id_string);
/* Return the text of an address, which is valid as long as the address. */
const char *BMI_addr_rev_lookup(BMI_addr_t addr);
const char *BMI_addr_rev_lookup_unexpected(BMI_addr_t addr);
/*
 * Returns 1 if an address is in a range, else 0: "kdapl://10.7.*" with a netmask of 0, or
 * "kdapl://10.7.0.0" with the number of bits that are compared.
 */
int BMI_query_addr_range(BMI_addr_t addr, const char *id_string, int netmask);

#ifdef __cplusplus
}
#endif
