// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Runs a test when its name is written to debugfs/kdapl_ktest/run. The write fails
 * if the test does. The file lists the tests, and then the reason of the failure.
 * Where the kernel has KUnit, the tests are also the cases of a KUnit suite.
 */
#include <kunit/test.h>
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "calls.h"
#include "ktest.h"

static char *device = "rxe0";
module_param(device, charp, 0644);
MODULE_PARM_DESC(device, "RDMA device");

unsigned int patience = 20;
module_param(patience, uint, 0644);
MODULE_PARM_DESC(patience, "longest wait for an event, in seconds");

bool is_iwarp;
module_param_named(iwarp, is_iwarp, bool, 0444);
MODULE_PARM_DESC(iwarp, "whether the device is an iWARP device");

ushort ktest_port;
module_param_named(port, ktest_port, ushort, 0444);
MODULE_PARM_DESC(port, "port of a program in user space, or for it to connect to");

char *ktest_peer;
module_param_named(peer_device, ktest_peer, charp, 0444);
MODULE_PARM_DESC(peer, "RDMA device in another network namespace");

int ktest_net = -1;
module_param_named(net, ktest_net, int, 0444);
MODULE_PARM_DESC(net, "that namespace, a file descriptor of the process that runs the test");

unsigned int ktest_stage;
module_param_named(stage, ktest_stage, uint, 0644);
MODULE_PARM_DESC(stage, "stage of the running test");

DAT_IA_HANDLE ia;
DAT_EVD_HANDLE async_evd;
DAT_PZ_HANDLE pz;
DAT_IA_ATTR ia_attr;
u8 *pair_memory;

static const struct ktest *const suites[] = {
	upcall_tests, race_tests, traffic_tests, event_order_tests, removal_tests, object_tests,
	agent_tests, private_data_tests, address_tests, extension_tests, memory_tests,
	lmr_use_tests, remote_tests, remote_thread_tests, region_tests, region_limit_tests,
	rmr_tests, fmr_tests, fmr_memory_tests, fmr_end_tests, fmr_refusal_tests,
	fmr_with_next_tests, srq_tests, atomic_tests, fault_tests, close_tests, argument_tests,
	lost_tests, connecting_tests, attribute_tests, refusal_tests, asynchronous_tests,
	read_only_tests, protection_tests, limit_tests, namespace_tests, bh_upcall_tests,
	bh_traffic_tests, gate_tests, gate_end_tests, handoff_tests, mixed_tests,
	mixed_killed_tests,
};

static struct dentry *folder;
static DEFINE_MUTEX(one_at_a_time);
static char why[256];

int ktest_fail(const char *file, int line, const char *format, ...)
{
	int length = scnprintf(why, sizeof(why), "%s:%d: ", file, line);
	va_list arguments;

	va_start(arguments, format);
	vscnprintf(why + length, sizeof(why) - length, format, arguments);
	va_end(arguments);
	return -EIO;
}

int ktest_where(int error, const char *format, ...)
{
	size_t length = strlen(why);
	va_list arguments;

	if (!error)
		return 0;
	length += scnprintf(why + length, sizeof(why) - length, "; ");
	va_start(arguments, format);
	vscnprintf(why + length, sizeof(why) - length, format, arguments);
	va_end(arguments);
	return error;
}

static int run_thread(void *data)
{
	struct ktest_thread *thread = data;

	thread->error = thread->run(thread->number);
	complete(&thread->over);
	return 0;
}

int ktest_start(struct ktest_thread *thread, int (*run)(unsigned int number), unsigned int number)
{
	struct task_struct *task;

	*thread = (struct ktest_thread){ .run = run, .number = number };
	init_completion(&thread->over);
	task = kthread_run(run_thread, thread, "ktest/%u", number);
	if (IS_ERR(task)) {
		thread->error = PTR_ERR(task);
		complete(&thread->over);
	}
	return IS_ERR(task) ? FAIL("cannot start a thread") : 0;
}

int ktest_join(struct ktest_thread *thread)
{
	wait_for_completion(&thread->over);
	return thread->error;
}

int ktest_reopen(void)
{
	async_evd = DAT_HANDLE_NULL;
	OK(dat_ia_open(device, 16, &async_evd, &ia));
	return 0;
}

static int set_up(void)
{
	TRY(ktest_reopen());
	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_NONE, NULL));
	OK(dat_pz_create(ia, &pz));
	return 0;
}

int ktest_renew(void)
{
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return set_up();
}

static int run(const struct ktest *test)
{
	int error;

	ia = DAT_HANDLE_NULL;
	ktest_stage = 0;
	why[0] = '\0';
	error = set_up() ?: test->run();
	/* The test may have closed the adapter. */
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	return error;
}

static const struct ktest *find(const char *name)
{
	const struct ktest *test;
	size_t suite;

	for (suite = 0; suite < ARRAY_SIZE(suites); suite++)
		for (test = suites[suite]; test->name; test++)
			if (!strcmp(test->name, name))
				return test;
	return NULL;
}

#if IS_ENABLED(CONFIG_KUNIT)
/* Filled at load, which comes before KUnit reads it. The last one stays empty. */
static struct kunit_case cases[256];

static void run_case(struct kunit *test)
{
	guard(mutex)(&one_at_a_time);
	if (run(find(test->name)))
		KUNIT_FAIL(test, "%s", why);
}

static int fill_cases(void)
{
	const struct ktest *test;
	size_t suite, count = 0;

	for (suite = 0; suite < ARRAY_SIZE(suites); suite++)
		for (test = suites[suite]; test->name; test++) {
			if (count + 1 == ARRAY_SIZE(cases))
				return -E2BIG;
			cases[count++] = (struct kunit_case){ .run_case = run_case,
							      .name = test->name };
		}
	return 0;
}

static struct kunit_suite kunit_suite = {
	.name = "kdapl_ktest",
	.test_cases = cases,
};
kunit_test_suite(kunit_suite);
#else
static int fill_cases(void)
{
	return 0;
}
#endif

static ssize_t run_write(struct file *file, const char __user *from, size_t size, loff_t *offset)
{
	const struct ktest *test;
	char name[64] = {};
	int error;

	if (size >= sizeof(name) || copy_from_user(name, from, size))
		return -EFAULT;
	test = find(strim(name));
	if (!test)
		return -ENOENT;
	mutex_lock(&one_at_a_time);
	error = run(test);
	mutex_unlock(&one_at_a_time);
	return error ?: size;
}

static int run_show(struct seq_file *seq, void *unused)
{
	const struct ktest *test;
	size_t suite;

	if (why[0]) {
		seq_printf(seq, "%s\n", why);
		return 0;
	}
	for (suite = 0; suite < ARRAY_SIZE(suites); suite++)
		for (test = suites[suite]; test->name; test++)
			seq_printf(seq, "%s\n", test->name);
	return 0;
}

static int run_open(struct inode *inode, struct file *file)
{
	return single_open(file, run_show, NULL);
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = run_open,
	.read = seq_read,
	.write = run_write,
	.release = single_release,
};

DEFINE_SHOW_ATTRIBUTE(calls);

static int __init ktest_init(void)
{
	int error = fill_cases();

	if (error)
		return error;
	pair_memory = kmalloc(PAIR_MEMORY, GFP_KERNEL);
	if (!pair_memory)
		return -ENOMEM;
	folder = debugfs_create_dir("kdapl_ktest", NULL);
	debugfs_create_file("run", 0600, folder, NULL, &run_fops);
	debugfs_create_file("calls", 0400, folder, NULL, &calls_fops);
	return 0;
}

static void __exit ktest_exit(void)
{
	debugfs_remove(folder);
	kfree(pair_memory);
}

module_init(ktest_init);
module_exit(ktest_exit);
MODULE_DESCRIPTION("Tests of kDAPL's consumers in the kernel");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("KDAPL");
