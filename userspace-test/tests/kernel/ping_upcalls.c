// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A ping-pong of two Endpoints whose upcalls answer each message. Reading the parameter `ns` runs
 * it, and returns the nanoseconds of half a round trip.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <rdma/kdat.h>

#include "ping.h"

#define PATIENCE	(10 * USEC_PER_SEC)

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA device");

static uint count = 2000;
module_param(count, uint, 0644);
MODULE_PARM_DESC(count, "round trips");

static bool bh;
module_param(bh, bool, 0444);
MODULE_PARM_DESC(bh, "upcalls in soft interrupts instead of work items");

/* One side. Index 0 sends first. */
struct side {
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE dtos, connection;
	DAT_LMR_CONTEXT context;
	uint received;
	u8 memory[PING_DEPTH + 1][PING_SIZE];
};

static DAT_IA_HANDLE ia;
static struct side *sides[2];
static struct completion over;
static bool failed;

static void end(void)
{
	WRITE_ONCE(failed, true);
	complete(&over);
}

static DAT_LMR_TRIPLET place(struct side *side, unsigned int slot)
{
	return (DAT_LMR_TRIPLET){ (DAT_VADDR)side->memory[slot], PING_SIZE, side->context };
}

static DAT_RETURN receive(struct side *side, unsigned int slot)
{
	DAT_LMR_TRIPLET triplet = place(side, slot);

	return dat_ep_post_recv(side->ep, 1, &triplet, (DAT_DTO_COOKIE){ .as_64 = slot },
				DAT_COMPLETION_DEFAULT_FLAG);
}

/* The event of a send that succeeds is not wanted. */
static DAT_RETURN send(struct side *side)
{
	DAT_LMR_TRIPLET triplet = place(side, PING_DEPTH);

	memset(side->memory[PING_DEPTH], side->received, PING_SIZE);
	return dat_ep_post_send(side->ep, 1, &triplet, (DAT_DTO_COOKIE){ .as_64 = PING_DEPTH },
				DAT_COMPLETION_SUPPRESS_FLAG);
}

static void happened(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct side *side = instance;

	if (dto->status == DAT_DTO_ERR_FLUSHED)
		return;
	if (dto->status || dto->user_cookie.as_64 >= PING_DEPTH ||
	    receive(side, dto->user_cookie.as_64)) {
		end();
		return;
	}
	if (++side->received < count || side == sides[1]) {
		if (send(side))
			end();
	} else {
		complete(&over);
	}
}

static DAT_RETURN make(DAT_PZ_HANDLE pz, struct side *side)
{
	const DAT_EP_ATTR attr = { .max_recv_dtos = 2 * PING_DEPTH, .max_request_dtos = 64 };
	const DAT_UPCALL_OBJECT upcall = { .instance_data = side, .upcall_func = happened };
	const DAT_REGION_DESCRIPTION region = { .for_va = side->memory };
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret;

	ret = dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(side->memory), pz,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			      DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &side->context,
			      NULL, NULL, NULL);
	if (!ret && bh)
		ret = kdapl_evd_create_bh(ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
					  KDAPL_MAX_UPCALL_BUDGET, DAT_EVD_DTO_FLAG, &side->dtos);
	else if (!ret)
		ret = dat_evd_kcreate(ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
				      DAT_EVD_DTO_FLAG, &side->dtos);
	ret = ret ?: dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL,
				     DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, &side->connection);
	return ret ?: dat_ep_create(ia, pz, side->dtos, side->dtos, side->connection, &attr,
				    &side->ep);
}

static DAT_RETURN expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT *event)
{
	DAT_RETURN ret = dat_evd_wait(evd, PATIENCE, 1, event, NULL);

	if (!ret && event->event_number != number)
		ret = DAT_CLASS_ERROR | DAT_INTERNAL_ERROR;
	return ret;
}

static DAT_RETURN join(struct sockaddr *address)
{
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	DAT_RETURN ret;

	ret = dat_psp_create_any(ia, &conn_qual, sides[1]->connection, DAT_PSP_CONSUMER_FLAG, &psp);
	ret = ret ?: dat_ep_connect(sides[0]->ep, address, conn_qual, PATIENCE, 0, NULL,
				    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	ret = ret ?: expect(sides[1]->connection, DAT_CONNECTION_REQUEST_EVENT, &event);
	ret = ret ?: dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, sides[1]->ep,
				   0, NULL);
	ret = ret ?: expect(sides[0]->connection, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	return ret ?: expect(sides[1]->connection, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}

static DAT_RETURN prepare(DAT_IA_ATTR *attr)
{
	DAT_PZ_HANDLE pz;
	unsigned int number, slot;
	DAT_RETURN ret;

	ret = dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, attr, DAT_PROVIDER_FIELD_NONE, NULL);
	ret = ret ?: dat_pz_create(ia, &pz);
	for (number = 0; number < 2; number++) {
		ret = ret ?: make(pz, sides[number]);
		for (slot = 0; !ret && slot < PING_DEPTH; slot++)
			ret = receive(sides[number], slot);
	}
	return ret ?: join(attr->ia_address_ptr);
}

static int measure(DAT_IA_ATTR *attr, u64 *ns)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
	int error = 0;
	u64 start;

	init_completion(&over);
	failed = false;
	if (dat_ia_open(device, 8, &async_evd, &ia))
		return -ENODEV;
	if (prepare(attr))
		error = -EIO;
	start = ktime_get_ns();
	if (!error && send(sides[0]))
		error = -EIO;
	if (!error && !wait_for_completion_timeout(&over, 60 * HZ))
		error = -ETIMEDOUT;
	*ns = (ktime_get_ns() - start) / (2 * count);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	return error ?: failed ? -EIO : 0;
}

static int ns_get(char *buffer, const struct kernel_param *parameter)
{
	static DEFINE_MUTEX(one_at_a_time);
	DAT_IA_ATTR *attr = kmalloc(sizeof(*attr), GFP_KERNEL);
	int error = -ENOMEM;
	u64 ns = 0;

	mutex_lock(&one_at_a_time);
	sides[0] = kzalloc(sizeof(*sides[0]), GFP_KERNEL);
	sides[1] = kzalloc(sizeof(*sides[1]), GFP_KERNEL);
	if (attr && sides[0] && sides[1])
		error = count ? measure(attr, &ns) : -EINVAL;
	kfree(sides[0]);
	kfree(sides[1]);
	mutex_unlock(&one_at_a_time);
	kfree(attr);
	return error ?: sysfs_emit(buffer, "%llu\n", ns);
}

static const struct kernel_param_ops ns_ops = { .get = ns_get };
module_param_cb(ns, &ns_ops, NULL, 0400);
MODULE_PARM_DESC(ns, "nanoseconds of half a round trip, measured when read");

MODULE_DESCRIPTION("kDAPL benchmark: ping-pong of upcalls");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("KDAPL");
