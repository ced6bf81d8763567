// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Operations on a generic radix tree of pointers for RCU readers, which are macros or inline. */
#include <linux/generic-radix-tree.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>

#include "helpers.h"

static noinline void *get_from_levels(struct __genradix *tree, size_t index)
{
	void **slot = __genradix_ptr(tree, index * sizeof(*slot));

	return slot ? rcu_dereference_raw(*slot) : NULL;
}

/* Returns the pointer at an index, for an RCU reader. */
void *kdapl_helper_tree_get(struct __genradix *tree, size_t index)
{
	struct genradix_root *root = READ_ONCE(tree->root);
	void **leaf = (void **)genradix_root_to_node(root)->data;

	/* Most tables have one node. The walk through several takes three times as long. */
	if (root && !genradix_root_to_depth(root) && index < GENRADIX_ARY)
		return rcu_dereference_raw(leaf[index]);
	return get_from_levels(tree, index);
}

/* Publishes a pointer at an index. Returns false without memory. */
bool kdapl_helper_tree_set(struct __genradix *tree, size_t index, void *pointer)
{
	void **slot = __genradix_ptr_alloc(tree, index * sizeof(*slot), NULL, GFP_KERNEL);

	if (slot)
		rcu_assign_pointer(*slot, pointer);
	return slot;
}

/* Removes and returns the pointer at an index. */
void *kdapl_helper_tree_take(struct __genradix *tree, size_t index)
{
	void **slot = __genradix_ptr(tree, index * sizeof(*slot));

	return slot ? xchg(slot, NULL) : NULL;
}

/* Removes and returns the first pointer at *index or later, which becomes the next index. */
void *kdapl_helper_tree_take_next(struct __genradix *tree, size_t *index)
{
	struct genradix_iter iter = { .pos = *index, .offset = *index * sizeof(void *) };
	const size_t per_node = GENRADIX_NODE_SIZE / sizeof(void *);
	void **slot, *pointer = NULL;

	while (!pointer && (slot = __genradix_iter_peek(&iter, tree, per_node))) {
		pointer = xchg(slot, NULL);
		*index = iter.pos + 1;
		__genradix_iter_advance(&iter, sizeof(*slot));
	}
	return pointer;
}

void kdapl_helper_queue_rcu_work(struct workqueue_struct *queue, struct rcu_work *work,
				 work_func_t function)
{
	INIT_RCU_WORK(work, function);
	queue_rcu_work(queue, work);
}

/* As printk() decides whether it may sleep. False on a kernel without CONFIG_PREEMPT_COUNT. */
bool kdapl_helper_may_sleep(void)
{
	return preemptible() && !rcu_preempt_depth();
}

/* Tells interrupts, hard or soft, from threads on every kernel. */
bool kdapl_helper_in_interrupt(void)
{
	return in_hardirq() || in_serving_softirq();
}
