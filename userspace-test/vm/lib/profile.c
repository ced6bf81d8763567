// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A plugin of QEMU. Counts the executed instructions of each block of the guest's code, and writes
 * lines "ADDRESS INSTRUCTIONS" at the guest's end. Usage: -plugin profile.so,out=FILE
 *
 * The declarations are those of qemu-plugin.h, which Debian does not ship.
 */
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_info_t;
struct qemu_plugin_tb;
typedef uint64_t qemu_plugin_id_t;
typedef void (*tb_trans_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*vcpu_cb)(unsigned int vcpu, void *data);
typedef void (*exit_cb)(qemu_plugin_id_t id, void *data);

#define QEMU_PLUGIN_CB_NO_REGS	0
#define PUBLIC			__attribute__((visibility("default")))

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_trans_cb cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, vcpu_cb cb, int flags,
					  void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, exit_cb cb, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);

PUBLIC int qemu_plugin_version = 4;

/* A block of code. Blocks with the same address may differ in length. */
struct block {
	uint64_t address;
	uint64_t instructions;
	uint64_t runs;
};

/* A tree, by tsearch(3). */
static void *blocks;
static FILE *out;

static int compare(const void *left, const void *right)
{
	const struct block *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return (a->instructions > b->instructions) - (a->instructions < b->instructions);
}

/* Counts an execution. There is one processor only, so no lock is needed. */
static void executed(unsigned int vcpu, void *data)
{
	struct block *block = data;

	(void)vcpu;
	block->runs++;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block key = {
		.address = qemu_plugin_tb_vaddr(tb),
		.instructions = qemu_plugin_tb_n_insns(tb),
	};
	struct block **place = tsearch(&key, &blocks, compare);

	(void)id;
	if (place && *place == &key) {
		*place = malloc(sizeof(key));
		if (*place)
			**place = key;
	}
	if (!place || !*place) {
		fputs("profile: out of memory\n", stderr);
		exit(1);
	}
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS, *place);
}

static void show(const void *node, VISIT visit, int depth)
{
	const struct block *block = *(const struct block *const *)node;

	(void)depth;
	if ((visit == postorder || visit == leaf) && block->runs)
		fprintf(out, "%" PRIx64 " %" PRIu64 "\n", block->address,
			block->runs * block->instructions);
}

static void over(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	twalk(blocks, show);
	fclose(out);
}

PUBLIC int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
			       char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fputs("profile: out=FILE is missing\n", stderr);
		return -1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror(argv[0] + 4);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, over, NULL);
	return 0;
}
