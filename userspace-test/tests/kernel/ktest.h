/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Tests of what kdapl.ko exports, from a consumer's side. Each has an adapter of
 * its own, which is closed behind it with all that is left.
 */
#ifndef _KDAPL_KTEST_H
#define _KDAPL_KTEST_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <rdma/kdat.h>

/* What every test has. */
extern DAT_IA_HANDLE ia;
extern DAT_EVD_HANDLE async_evd;
extern DAT_PZ_HANDLE pz;
extern DAT_IA_ATTR ia_attr;

/* Seconds for what is due, and milliseconds for what is not. */
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
extern const struct ktest object_tests[];
extern const struct ktest extension_tests[];
extern const struct ktest memory_tests[];
extern const struct ktest fault_tests[];
extern const struct ktest argument_tests[];

/* Whether the device is of iWARP. */
extern bool is_iwarp;

/* Lists the calls that are tried while memory fails. */
struct seq_file;
int faults_calls_show(struct seq_file *seq, void *unused);

/* Opens an adapter again, behind a close. */
int ktest_reopen(void);
/* How far a test is that somebody outside has to go along with. */
extern unsigned int ktest_stage;

/* Remembers why the test failed. */
int __printf(3, 4) ktest_fail(const char *file, int line, const char *format, ...);

#define FAIL(...)	ktest_fail(__FILE_NAME__, __LINE__, __VA_ARGS__)

#define EXPECT(condition) do {							\
	if (!(condition))							\
		return FAIL("not so: %s", #condition);				\
} while (0)

#define SAME(value, expected) do {						\
	u64 value_ = (u64)(value), expected_ = (u64)(expected);			\
	if (value_ != expected_)						\
		return FAIL("%s is %#llx and not %#llx", #value, value_, expected_); \
} while (0)

/* A call of DAT's that succeeds. */
#define OK(call) do {								\
	DAT_RETURN ret_ = (call);						\
	if (ret_)								\
		return FAIL("%s: %08x", #call, ret_);				\
} while (0)

/* A call of DAT's that is refused like that. */
#define REFUSED(call, type, subtype) do {					\
	DAT_RETURN ret_ = (call);						\
	if (ret_ != (DAT_CLASS_ERROR | (type) | (subtype)))			\
		return FAIL("%s: %08x", #call, ret_);				\
} while (0)

/* Something of the test's own that may fail. */
#define TRY(call) do {								\
	int error_ = (call);							\
	if (error_)								\
		return error_;							\
} while (0)

/* Looks again and again until it is so. */
#define UNTIL(condition) do {							\
	unsigned long end_ = jiffies + patience * HZ;				\
	while (!(condition)) {							\
		if (time_after(jiffies, end_))					\
			return FAIL("never so: %s", #condition);		\
		usleep_range(100, 200);						\
	}									\
} while (0)

/* DAT's subtypes that are looked for. */
#define INVALID_HANDLE_IA		11
#define INVALID_HANDLE_EP		12
#define INVALID_HANDLE_LMR		13
#define INVALID_HANDLE_PZ		15
#define INVALID_HANDLE_PSP		16
#define INVALID_HANDLE_CR		18
#define INVALID_HANDLE_CNO		19
#define INVALID_HANDLE_EVD		21
#define INVALID_ARG(n)			(36 + (n))
#define INVALID_STATE_EVD_UNWAITABLE	73
#define INVALID_STATE_EVD_IN_USE	74
#define INVALID_STATE_EVD_WAITER	78
#define INVALID_STATE_IA_IN_USE		80
#define RESOURCE_DEVICE			3

/* Runs it as a thread of its own, `count` times; all have ended when it returns. */
struct ktest_thread {
	int (*run)(unsigned int number);
	unsigned int number;
	int error;
	struct completion over;
};
int ktest_start(struct ktest_thread *thread, int (*run)(unsigned int number), unsigned int number);
int ktest_join(struct ktest_thread *thread);

/* Software events that carry a number. */
DAT_RETURN post_number(DAT_EVD_HANDLE evd, unsigned long number);
unsigned long number_of(const DAT_EVENT *event);
/* The same, again as long as the EVD is full. */
int post_surely(DAT_EVD_HANDLE evd, unsigned long number);
/* An EVD for them. */
int make_evd(DAT_COUNT qlen, DAT_UPCALL_POLICY policy, const DAT_UPCALL_OBJECT *upcall,
	     DAT_EVD_HANDLE *evd);

/* Two Endpoints of one adapter. The client's come first. */
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
/* The next event, which has to be of this kind. */
int next_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT *event);
DAT_LMR_TRIPLET pair_place(const struct pair *pair, size_t offset, DAT_SEG_LENGTH length);

#endif
