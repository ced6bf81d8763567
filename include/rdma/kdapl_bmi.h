/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * BMI, the messaging layer of PVFS and OrangeFS, for consumers in the kernel: kdapl_bmi.ko. Peers
 * are consumers of it, and programs with libkdapl_bmi. docs/bmi-kernel.md is an
 * introduction.
 *
 *	MODULE_IMPORT_NS("KDAPL_BMI");
 *
 * A consumer opens instances of its own. Calls may sleep. They return a negative errno, 0 or 1. A
 * post returns 1 if its operation is complete already: then it is not tested for, and *id is 0. A
 * test returns 1 if it has taken a result. Any number of threads may make calls, on different
 * operations.
 *
 * Errors of every call: -EINVAL for a NULL instance, an unknown address, context or operation.
 *
 * When the RDMA device is removed, operations in progress fail: with -ENODEV, or -ECONNRESET if the
 * end of a request or of the peer comes first. Posts, bmi_testunexpected(), and bmi_testcontext()
 * for a context without operations return -ENODEV from then on, even if unexpected messages have
 * arrived that are not processed yet. An instance does not use a device that comes back: close it,
 * and open another one.
 *
 * When one of several devices of an instance is removed, the operations of those peers fail that
 * have a connection over it. The next ones connect over the other devices.
 */
#ifndef _RDMA_KDAPL_BMI_H
#define _RDMA_KDAPL_BMI_H

#include <linux/types.h>

typedef s64 bmi_size_t;
typedef s32 bmi_msg_tag_t;
typedef s64 bmi_context_id;
typedef s64 bmi_op_id_t;
typedef s64 bmi_addr_t;
typedef s32 bmi_error_code_t;	/* 0, or a negative errno: -ECANCELED */

#define BMI_MAX_CONTEXTS 16

/* Options of bmi_set_info() and bmi_get_info(), with the numbers of OrangeFS. */
enum {
	BMI_DROP_ADDR = 1,		/* set: both BMI_TCP_CLOSE_SOCKET and BMI_DEC_ADDR_REF */
	BMI_CHECK_MAXSIZE = 3,		/* get, int: bytes of the longest message, 512 MiB */
	BMI_INC_ADDR_REF = 5,		/* set: add a reference */
	BMI_DEC_ADDR_REF = 6,		/* set: drop a reference; the last forgets the address */
	BMI_GET_UNEXP_SIZE = 10,	/* get, int: bytes of the largest unexpected message */
	BMI_TCP_CLOSE_SOCKET = 13,	/* set: end the connection of an address */
};

/**
 * struct bmi_unexpected_info - unexpected message
 * @error_code: 0, or -ENOMEM: the message is lost, and @buffer is NULL
 * @addr: sender. The message has one reference to it: drop it by BMI_DEC_ADDR_REF.
 * @buffer: bytes; bmi_unexpected_free() frees them
 * @size: number of bytes
 * @tag: tag
 */
struct bmi_unexpected_info {
	bmi_error_code_t error_code;
	bmi_addr_t addr;
	void *buffer;
	bmi_size_t size;
	bmi_msg_tag_t tag;
};

struct bmi;

/**
 * struct bmi_options - options of an instance; 0 is the default value of each
 * @rails: connections to each peer, 1 to 4, by default 1, and at least one for each device; the
 *         smaller number of two peers is used
 * @push: 1 if long messages are written by their senders; by default their receivers read them if
 *        both sides can do that
 * @stripe_from: bytes from which on a message is divided over the connections, by default 256 KiB
 */
struct bmi_options {
	u32 rails;
	u32 push;
	u64 stripe_from;
};

/**
 * bmi_open_with() - open an instance
 * @adapter: RDMA device, network device or IP address; or up to four of them, separated by commas
 * @listen_addr: "kdapl://IP:PORT" to listen at, or NULL. All devices listen at the port.
 * @options: options, or NULL for the default ones
 *
 * Return: the instance, or ERR_PTR(): -ENODEV without such a device, -EBUSY if the port is in use,
 * -EINVAL for another address or an invalid option, -ENOMEM; -EIO for an error of DAT without such
 * a number, as for a port that is reserved.
 */
struct bmi *bmi_open_with(const char *adapter, const char *listen_addr,
			  const struct bmi_options *options);
static inline struct bmi *bmi_open(const char *adapter, const char *listen_addr)
{
	return bmi_open_with(adapter, listen_addr, NULL);
}

/**
 * bmi_close() - end all connections and operations of an instance, and free all its memory
 * @bmi: instance, with which no call is in progress; may be NULL
 *
 * Messages that the peer has not taken are lost, also if their sends have succeeded: wait for an
 * answer first. Memory of bmi_memalloc() is freed.
 */
void bmi_close(struct bmi *bmi);

/**
 * bmi_open_context() - open one of 16 contexts, to which results of operations belong
 * @bmi: instance
 * @context_id: out: context
 */
int bmi_open_context(struct bmi *bmi, bmi_context_id *context_id);
/**
 * bmi_close_context() - cancel the operations of a context
 * @bmi: instance
 * @context_id: context
 *
 * Returns when nothing accesses their memory any more: up to half a minute later if a peer does not
 * answer.
 */
void bmi_close_context(struct bmi *bmi, bmi_context_id context_id);

/*
 * Post an operation. Its memory belongs to it until it was tested for. Memory of bmi_memalloc() is
 * moved by RDMA, other memory by copies; it has to be mapped in the kernel. The arrays of a list
 * are copied. total_size is the sum of size_list. actual_size may be NULL.
 *
 * Errors: -EINVAL, also for a context that is closing, -ENOMEM, -EMSGSIZE for a message above
 * BMI_CHECK_MAXSIZE, or an unexpected one above BMI_GET_UNEXP_SIZE, -ENOTCONN if only the peer can
 * connect. A receive may be longer than BMI_CHECK_MAXSIZE.
 */
int bmi_post_send_list(struct bmi *bmi, bmi_op_id_t *id, bmi_addr_t dest,
		       const void *const *buffer_list, const bmi_size_t *size_list, int list_count,
		       bmi_size_t total_size, bmi_msg_tag_t tag, void *user_ptr,
		       bmi_context_id context_id);
int bmi_post_sendunexpected_list(struct bmi *bmi, bmi_op_id_t *id, bmi_addr_t dest,
				 const void *const *buffer_list, const bmi_size_t *size_list,
				 int list_count, bmi_size_t total_size, bmi_msg_tag_t tag,
				 void *user_ptr, bmi_context_id context_id);
int bmi_post_recv_list(struct bmi *bmi, bmi_op_id_t *id, bmi_addr_t src, void *const *buffer_list,
		       const bmi_size_t *size_list, int list_count, bmi_size_t total_expected_size,
		       bmi_size_t *total_actual_size, bmi_msg_tag_t tag, void *user_ptr,
		       bmi_context_id context_id);

static inline int bmi_post_send(struct bmi *bmi, bmi_op_id_t *id, bmi_addr_t dest,
				const void *buffer, bmi_size_t size, bmi_msg_tag_t tag,
				void *user_ptr, bmi_context_id context_id)
{
	return bmi_post_send_list(bmi, id, dest, &buffer, &size, 1, size, tag, user_ptr,
				  context_id);
}

static inline int bmi_post_sendunexpected(struct bmi *bmi, bmi_op_id_t *id, bmi_addr_t dest,
					  const void *buffer, bmi_size_t size, bmi_msg_tag_t tag,
					  void *user_ptr, bmi_context_id context_id)
{
	return bmi_post_sendunexpected_list(bmi, id, dest, &buffer, &size, 1, size, tag, user_ptr,
					    context_id);
}

static inline int bmi_post_recv(struct bmi *bmi, bmi_op_id_t *id, bmi_addr_t src, void *buffer,
				bmi_size_t expected_size, bmi_size_t *actual_size,
				bmi_msg_tag_t tag, void *user_ptr, bmi_context_id context_id)
{
	return bmi_post_recv_list(bmi, id, src, &buffer, &expected_size, 1, expected_size,
				  actual_size, tag, user_ptr, context_id);
}

/*
 * Take results, and wait for the first one up to max_idle_time_ms; a negative time has no limit.
 * They return 1 if there are results, else 0; -EINTR if a signal is pending. The pointers to error
 * codes, sizes, user pointers, indices and ids may be NULL. After an error, the memory of a receive
 * may be partly written.
 */
int bmi_test(struct bmi *bmi, bmi_op_id_t id, int *outcount, bmi_error_code_t *error_code,
	     bmi_size_t *actual_size, void **user_ptr, int max_idle_time_ms,
	     bmi_context_id context_id);
/* Tests several operations. index_array has their positions. Ids that are 0 are skipped. */
int bmi_testsome(struct bmi *bmi, int incount, bmi_op_id_t *id_array, int *outcount,
		 int *index_array, bmi_error_code_t *error_code_array,
		 bmi_size_t *actual_size_array, void **user_ptr_array, int max_idle_time_ms,
		 bmi_context_id context_id);
/* Tests the operations of a context. */
int bmi_testcontext(struct bmi *bmi, int incount, bmi_op_id_t *out_id_array, int *outcount,
		    bmi_error_code_t *error_code_array, bmi_size_t *actual_size_array,
		    void **user_ptr_array, int max_idle_time_ms, bmi_context_id context_id);
/* Takes unexpected messages. */
int bmi_testunexpected(struct bmi *bmi, int incount, int *outcount,
		       struct bmi_unexpected_info *info_array, int max_idle_time_ms);
/* Cancels an operation, which has to be tested for nevertheless. */
int bmi_cancel(struct bmi *bmi, bmi_op_id_t id, bmi_context_id context_id);

/**
 * bmi_memalloc() - allocate registered memory, for any address and direction
 * @bmi: instance
 * @size: number of bytes
 *
 * Return: the memory, which is zero, or NULL.
 */
void *bmi_memalloc(struct bmi *bmi, bmi_size_t size);
/**
 * bmi_memfree() - free memory of bmi_memalloc()
 * @bmi: instance
 * @buffer: its start
 *
 * Operations with it keep it until they were tested for.
 */
int bmi_memfree(struct bmi *bmi, void *buffer);
void bmi_unexpected_free(void *buffer);

int bmi_set_info(struct bmi *bmi, bmi_addr_t addr, int option, void *inout_parameter);
int bmi_get_info(struct bmi *bmi, bmi_addr_t addr, int option, void *inout_parameter);

/**
 * bmi_addr_lookup() - make an address of "kdapl://IP:PORT", or of the first such text of a list
 *                     with commas; "kdapl://IP+IP:PORT" for up to four hosts of a peer
 * @bmi: instance
 * @new_addr: out: address, with one reference
 * @id_string: text
 */
int bmi_addr_lookup(struct bmi *bmi, bmi_addr_t *new_addr, const char *id_string);
/**
 * bmi_addr_rev_lookup() - copy an address as text, "kdapl://IP:PORT" or "kdapl://IP+IP:PORT"
 * @bmi: instance
 * @addr: address
 * @text: out: text, which ends with a NUL
 * @size: bytes of @text; 80 are enough for each address of one host, 256 for each other one
 */
int bmi_addr_rev_lookup(struct bmi *bmi, bmi_addr_t addr, char *text, size_t size);

#endif
