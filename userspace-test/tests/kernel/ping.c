// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The ping-pong. Reading the parameter `ns` runs it, and returns the nanoseconds
 * of half a round trip.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "ping.h"

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA device");

static uint count = 2000;
module_param(count, uint, 0644);
MODULE_PARM_DESC(count, "round trips");

static uint waste;
module_param(waste, uint, 0644);
MODULE_PARM_DESC(waste, "useless instructions of a thread for each message, to measure their cost");

/* Executes four instructions in each iteration. */
static noinline void spend(void)
{
	uint turns;

	for (turns = waste / 4; turns; turns--)
		asm volatile("nop; nop" : "+r" (turns));
}

struct player {
	struct ping_side *side;
	unsigned int number;
	u64 took;
	int error;
	struct completion over;
};

static int send(struct player *player, unsigned int trip)
{
	int error;

	spend();
	memset(ping_send_buffer(player->side), trip, PING_SIZE);
	error = ping_post_send(player->side);
	if (!error && (trip + 1) % PING_BATCH == 0)
		error = ping_take_sent(player->side, PING_BATCH);
	return error;
}

static int hear(struct player *player, unsigned int trip)
{
	int slot = ping_wait(player->side);
	const u8 *message;

	if (slot < 0)
		return slot;
	message = ping_receive_buffer(player->side, slot);
	if (message[0] != (u8)trip || message[PING_SIZE - 1] != (u8)trip)
		return -EBADMSG;
	return ping_post_receive(player->side, slot);
}

static int play(void *data)
{
	struct player *player = data;
	u64 start = ktime_get_ns();
	unsigned int trip;
	int error = 0;

	for (trip = 0; !error && trip < count; trip++) {
		if (player->number == 0)
			error = send(player, trip);
		if (!error)
			error = hear(player, trip);
		if (!error && player->number == 1)
			error = send(player, trip);
	}
	player->took = ktime_get_ns() - start;
	player->error = error;
	/* Leaves this module's code for good, since it may be unloaded afterwards. */
	kthread_complete_and_exit(&player->over, 0);
}

static int measure(u64 *ns)
{
	struct ping_side *side[2] = {};
	struct player player[2] = {};
	unsigned int number, slot;
	int error = ping_connect(device, side);

	for (number = 0; number < 2; number++) {
		player[number].side = side[number];
		player[number].number = number;
		init_completion(&player[number].over);
		for (slot = 0; !error && slot < PING_DEPTH; slot++)
			error = ping_post_receive(side[number], slot);
	}
	/* The answering side starts first. */
	for (number = 2; !error && number-- > 0;) {
		/* Each side has a processor of its own, if there are two. */
		unsigned int cpu = cpumask_nth(number % num_online_cpus(), cpu_online_mask);
		struct task_struct *task = kthread_run_on_cpu(play, &player[number], cpu, "ping/%u");

		if (IS_ERR(task)) {
			error = PTR_ERR(task);
			/* The running side gives up after its patience. */
			if (number == 0)
				wait_for_completion(&player[1].over);
		}
	}
	if (!error) {
		/* An error on one side lets the wait of the other time out. */
		wait_for_completion(&player[0].over);
		wait_for_completion(&player[1].over);
		error = player[0].error ?: player[1].error;
		*ns = player[0].took / (2 * count);
	}
	ping_disconnect(side);
	return error;
}

static int ns_get(char *buffer, const struct kernel_param *parameter)
{
	static DEFINE_MUTEX(one_at_a_time);
	u64 ns = 0;
	int error;

	if (!count)
		return -EINVAL;
	mutex_lock(&one_at_a_time);
	error = measure(&ns);
	mutex_unlock(&one_at_a_time);
	return error ?: sysfs_emit(buffer, "%llu\n", ns);
}

static const struct kernel_param_ops ns_ops = { .get = ns_get };
module_param_cb(ns, &ns_ops, NULL, 0400);
MODULE_PARM_DESC(ns, "nanoseconds of half a round trip, measured when read");
