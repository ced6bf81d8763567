/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Tests of the calls that kdapl.ko exports, as a consumer. Each test has its own
 * adapter, which is closed afterwards with all remaining objects.
 */
#ifndef _KDAPL_KTEST_H
#define _KDAPL_KTEST_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <rdma/kdat.h>

/* Objects of every test. */
extern DAT_IA_HANDLE ia;
extern DAT_EVD_HANDLE async_evd;
extern DAT_PZ_HANDLE pz;
extern DAT_IA_ATTR ia_attr;

/*
 * Longest wait for an expected event, in seconds; PATIENCE_US is the same in microseconds. QUIET_MS
 * is the time in which no further event may arrive.
 */
extern unsigned int patience;
#define PATIENCE_US	(patience * USEC_PER_SEC)
#define QUIET_MS	50

struct ktest {
	const char *name;
	int (*run)(void);
};

extern const struct ktest upcall_tests[];
extern const struct ktest race_tests[];
extern const struct ktest traffic_tests[];
extern const struct ktest event_order_tests[];
extern const struct ktest removal_tests[];
extern const struct ktest object_tests[];
extern const struct ktest agent_tests[];
extern const struct ktest private_data_tests[];
extern const struct ktest address_tests[];
extern const struct ktest extension_tests[];
extern const struct ktest memory_tests[];
extern const struct ktest lmr_use_tests[];
extern const struct ktest remote_tests[];
extern const struct ktest remote_thread_tests[];
extern const struct ktest region_tests[];
extern const struct ktest region_limit_tests[];
extern const struct ktest rmr_tests[];
extern const struct ktest fmr_tests[];
extern const struct ktest fmr_memory_tests[];
extern const struct ktest fmr_end_tests[];
extern const struct ktest fmr_refusal_tests[];
extern const struct ktest fmr_with_next_tests[];
extern const struct ktest srq_tests[];
extern const struct ktest atomic_tests[];
extern const struct ktest fault_tests[];
extern const struct ktest close_tests[];
extern const struct ktest argument_tests[];
extern const struct ktest lost_tests[];
extern const struct ktest connecting_tests[];
extern const struct ktest attribute_tests[];
extern const struct ktest refusal_tests[];
extern const struct ktest asynchronous_tests[];
extern const struct ktest read_only_tests[];
extern const struct ktest protection_tests[];
extern const struct ktest limit_tests[];
extern const struct ktest namespace_tests[];
extern const struct ktest bh_upcall_tests[];
extern const struct ktest bh_traffic_tests[];
extern const struct ktest gate_tests[];
extern const struct ktest gate_end_tests[];
extern const struct ktest handoff_tests[];
extern const struct ktest mixed_tests[];
extern const struct ktest mixed_killed_tests[];

/* Set for an iWARP device. */
extern bool is_iwarp;

/* Opens the adapter again after a close. */
int ktest_reopen(void);
/* Closes the adapter with all objects, and makes those of every test again. */
int ktest_renew(void);
/* Stage of a test that a program in user space must take part in. */
extern unsigned int ktest_stage;
/* Port of that program, or for it to connect to. */
extern ushort ktest_port;
/* Device in another network namespace, and a file descriptor of the latter. */
extern char *ktest_peer;
extern int ktest_net;

/* Stores the reason of the test's failure. */
int __printf(3, 4) ktest_fail(const char *file, int line, const char *format, ...);

/* Adds the place to the reason of a failure. Returns @error. */
int __printf(2, 3) ktest_where(int error, const char *format, ...);

#define FAIL(...)	ktest_fail(__FILE_NAME__, __LINE__, __VA_ARGS__)

#define EXPECT(condition) do {							\
	if (!(condition))							\
		return FAIL("false: %s", #condition);				\
} while (0)

#define SAME(value, expected) do {						\
	u64 value_ = (u64)(value), expected_ = (u64)(expected);			\
	if (value_ != expected_)						\
		return FAIL("%s is %#llx instead of %#llx", #value, value_, expected_); \
} while (0)

/* Makes a DAT call that must succeed. */
#define OK(call) do {								\
	DAT_RETURN ret_ = (call);						\
	if (ret_)								\
		return FAIL("%s: %08x", #call, ret_);				\
} while (0)

/* Makes a DAT call that must be refused with this type and subtype. */
#define REFUSED(call, type, subtype) do {					\
	DAT_RETURN ret_ = (call);						\
	if (ret_ != (DAT_CLASS_ERROR | (type) | (subtype)))			\
		return FAIL("%s: %08x", #call, ret_);				\
} while (0)

/* Calls a function of the test, and returns its failure. */
#define TRY(call) do {								\
	int error_ = (call);							\
	if (error_)								\
		return error_;							\
} while (0)

/* Waits until the condition is true. */
#define UNTIL(condition) do {							\
	unsigned long end_ = jiffies + patience * HZ;				\
	while (!(condition)) {							\
		if (time_after(jiffies, end_))					\
			return FAIL("never true: %s", #condition);		\
		usleep_range(100, 200);						\
	}									\
} while (0)

/* Runs a function in a thread. */
struct ktest_thread {
	int (*run)(unsigned int number);
	unsigned int number;
	int error;
	struct completion over;
};
int ktest_start(struct ktest_thread *thread, int (*run)(unsigned int number), unsigned int number);
int ktest_join(struct ktest_thread *thread);

/* Posts a software event that carries a number. */
DAT_RETURN post_number(DAT_EVD_HANDLE evd, unsigned long number);
unsigned long number_of(const DAT_EVENT *event);
/* Posts a software event, and repeats it while the EVD is full. */
int post_surely(DAT_EVD_HANDLE evd, unsigned long number);
/* Posts the numbers below @count by several threads. Each posts every POSTERS-th one, in order. */
#define POSTERS	4
int post_from_threads(DAT_EVD_HANDLE evd, unsigned int count);
/* Creates an EVD for software events. */
int make_evd(DAT_COUNT qlen, DAT_UPCALL_POLICY policy, const DAT_UPCALL_OBJECT *upcall,
	     DAT_EVD_HANDLE *evd);

/* Returns the cookie of a DTO. */
static inline DAT_DTO_COOKIE cookie(u64 value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

/* Two Endpoints of one adapter. Index 0 is the client. */
struct pair {
	DAT_EP_HANDLE ep[2];
	DAT_EVD_HANDLE dto[2], connection[2];
	DAT_LMR_CONTEXT context;
	u8 *memory;
};
#define PAIR_MEMORY	(1 << 16)
extern u8 *pair_memory;
int pair_make(struct pair *pair);
int pair_connect(struct pair *pair);
/* As above, but leaves the client's event. */
int pair_establish(struct pair *pair);
/* Takes the next event, which must have this number. */
int next_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT *event);
/* Takes the next DTO event, which must be a success of this DTO. */
int next_dto(DAT_EVD_HANDLE evd, DAT_DTOS operation, u64 value, DAT_SEG_LENGTH length);
/* Creates an LMR of kernel memory. */
DAT_RETURN register_memory(const void *start, DAT_VLEN length, DAT_MEM_PRIV_FLAGS privileges,
			   DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *context);
DAT_LMR_TRIPLET pair_place(const struct pair *pair, size_t offset, DAT_SEG_LENGTH length);

#define LOCAL_FLAGS	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define REMOTE_FLAGS	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* An LMR, as dat_lmr_kcreate() returns it. */
struct lmr {
	DAT_LMR_HANDLE handle;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_VLEN size;
	DAT_VADDR address;
};
DAT_RETURN lmr_make(DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
		    DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, struct lmr *lmr);
DAT_RETURN lmr_make_virtual(const void *start, DAT_VLEN length, DAT_MEM_PRIV_FLAGS privileges,
			    struct lmr *lmr);
/* Writes or reads @length bytes at @remote by an RDMA operation of side 0, which must succeed. */
int pair_rdma(const struct pair *pair, DAT_DTOS operation, const DAT_RMR_TRIPLET *remote,
	      size_t offset, DAT_SEG_LENGTH length);
/* As above, but side 1 refuses, which ends the connection. */
int pair_rdma_refused(const struct pair *pair, DAT_DTOS operation, const DAT_RMR_TRIPLET *remote,
		      DAT_SEG_LENGTH length);

#endif
