// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The ping-pong over DAT. */
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/kdat.h>

#include "ping.h"

#define PATIENCE	(10 * USEC_PER_SEC)

struct ping_side {
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE receives, requests, connection;
	DAT_LMR_CONTEXT context;
	u8 memory[PING_DEPTH + 1][PING_SIZE];
};

static DAT_IA_HANDLE ia;

void *ping_receive_buffer(struct ping_side *side, unsigned int slot)
{
	return side->memory[slot];
}

void *ping_send_buffer(struct ping_side *side)
{
	return side->memory[PING_DEPTH];
}

static DAT_LMR_TRIPLET place(struct ping_side *side, const void *memory)
{
	return (DAT_LMR_TRIPLET){
		.virtual_address = (DAT_VADDR)memory,
		.segment_length = PING_SIZE,
		.lmr_context = side->context,
	};
}

int ping_post_receive(struct ping_side *side, unsigned int slot)
{
	DAT_LMR_TRIPLET triplet = place(side, side->memory[slot]);

	return dat_ep_post_recv(side->ep, 1, &triplet, (DAT_DTO_COOKIE){ .as_64 = slot },
				DAT_COMPLETION_DEFAULT_FLAG) ? -EIO : 0;
}

int ping_post_send(struct ping_side *side)
{
	DAT_LMR_TRIPLET triplet = place(side, side->memory[PING_DEPTH]);

	return dat_ep_post_send(side->ep, 1, &triplet, (DAT_DTO_COOKIE){ .as_64 = 0 },
				DAT_COMPLETION_DEFAULT_FLAG) ? -EIO : 0;
}

int ping_wait(struct ping_side *side)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	if (dat_evd_wait(side->receives, PATIENCE, 1, &event, NULL))
		return -ETIMEDOUT;
	dto = &event.event_data.dto_completion_event_data;
	return dto->status == DAT_DTO_SUCCESS ? (int)dto->user_cookie.as_64 : -EIO;
}

int ping_take_sent(struct ping_side *side, unsigned int count)
{
	DAT_EVENT event;

	while (count-- > 0) {
		/* The last completions may not have arrived. */
		DAT_RETURN ret = dat_evd_dequeue(side->requests, &event);

		if (DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY)
			ret = dat_evd_wait(side->requests, PATIENCE, 1, &event, NULL);
		if (ret || event.event_data.dto_completion_event_data.status)
			return -EIO;
	}
	return 0;
}

static DAT_RETURN make(DAT_PZ_HANDLE pz, struct ping_side *side)
{
	const DAT_EP_ATTR attr = { .max_recv_dtos = 2 * PING_DEPTH,
				   .max_request_dtos = 2 * PING_BATCH };
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret;

	ret = dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL,
			      (DAT_REGION_DESCRIPTION){ .for_va = side->memory },
			      sizeof(side->memory), pz,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			      DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &side->context,
			      NULL, NULL, NULL);
	ret = ret ?: dat_evd_kcreate(ia, 64, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
				     &side->receives);
	ret = ret ?: dat_evd_kcreate(ia, 64, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
				     &side->requests);
	ret = ret ?: dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL,
				     DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, &side->connection);
	return ret ?: dat_ep_create(ia, pz, side->receives, side->requests, side->connection, &attr,
				    &side->ep);
}

static DAT_RETURN expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT *event)
{
	DAT_RETURN ret = dat_evd_wait(evd, PATIENCE, 1, event, NULL);

	if (!ret && event->event_number != number)
		ret = DAT_CLASS_ERROR | DAT_INTERNAL_ERROR;
	return ret;
}

static DAT_RETURN join(struct ping_side *side[2])
{
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	DAT_IA_ATTR *attr;
	DAT_EVENT event;
	DAT_RETURN ret;

	attr = kmalloc(sizeof(*attr), GFP_KERNEL);
	if (!attr)
		return DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES;
	ret = dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, attr, DAT_PROVIDER_FIELD_NONE, NULL);
	ret = ret ?: dat_psp_create_any(ia, &conn_qual, side[1]->connection, DAT_PSP_CONSUMER_FLAG,
					&psp);
	ret = ret ?: dat_ep_connect(side[0]->ep, attr->ia_address_ptr, conn_qual, PATIENCE, 0, NULL,
				    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	ret = ret ?: expect(side[1]->connection, DAT_CONNECTION_REQUEST_EVENT, &event);
	ret = ret ?: dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, side[1]->ep, 0,
				   NULL);
	ret = ret ?: expect(side[0]->connection, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	ret = ret ?: expect(side[1]->connection, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	kfree(attr);
	return ret;
}

int ping_connect(const char *device, struct ping_side *side[2])
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
	DAT_PZ_HANDLE pz;
	DAT_RETURN ret;

	ret = dat_ia_open(device, 8, &async_evd, &ia);
	if (ret)
		return -ENODEV;
	side[0] = kzalloc(sizeof(*side[0]), GFP_KERNEL);
	side[1] = kzalloc(sizeof(*side[1]), GFP_KERNEL);
	if (!side[0] || !side[1])
		return -ENOMEM;
	ret = dat_pz_create(ia, &pz);
	ret = ret ?: make(pz, side[0]) ?: make(pz, side[1]) ?: join(side);
	return ret ? -EIO : 0;
}

void ping_disconnect(struct ping_side *side[2])
{
	if (!ia)
		return;
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	ia = DAT_HANDLE_NULL;
	kfree(side[0]);
	kfree(side[1]);
}

MODULE_DESCRIPTION("kDAPL benchmark: ping-pong over DAT");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("KDAPL");
