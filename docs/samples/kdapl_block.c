// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A disk in memory, and its client: consumers of kDAPL in the kernel, in C. rust_block.rs has the
 * same protocol and the same parameters, and is explained there.
 */
#include <linux/inet.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/kdat.h>

#define BLOCK		4096
#define BLOCKS		16
#define RECEIVES	2
#define PATIENCE_US	30000000

static uint address = 0x0a070001;	/* IPv4 address of the RDMA device */
module_param(address, uint, 0444);
static uint port = 7300;		/* connection qualifier to listen for */
module_param(port, uint, 0444);
static uint peer;			/* IPv4 address of a server to test, or 0 */
module_param(peer, uint, 0444);
static uint peer_port = 7300;		/* its connection qualifier */
module_param(peer_port, uint, 0444);

/* Request of a client, which names its memory. The answer is an empty message. */
struct request {
	u32 is_write, block;
	u64 address;
	u32 length, context;
};

/* Endpoint with its memory, for both sides. The cookie of a receive is its request. */
struct side {
	struct list_head list;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	u8 *data;			/* BLOCK bytes, and then the requests */
	u32 block;
};

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE evd, test_evd;
static DAT_PSP_HANDLE psp;
static u8 disk[BLOCKS][BLOCK];
static LIST_HEAD(sides);		/* of upcalls, which come one at a time */

static void forget(struct side *side)
{
	list_del(&side->list);
	dat_ep_free(side->ep);
	dat_lmr_free(side->lmr);
	kfree(side->data);
	kfree(side);
}

static DAT_RETURN post(struct side *side, DAT_DTOS operation, void *data, DAT_SEG_LENGTH length,
		       DAT_RMR_TRIPLET remote)
{
	const DAT_LMR_TRIPLET local = { (DAT_VADDR)data, length, side->local };
	const DAT_LIST_DTO dto = { .operation = operation, .segments = !!length, .local = &local,
				   .cookie.as_ptr = data, .remote = remote };

	return kdapl_ep_post_list(side->ep, 1, &dto, NULL);
}

static DAT_RETURN receive(struct side *side, void *request)
{
	return post(side, DAT_DTO_RECEIVE, request, sizeof(struct request), (DAT_RMR_TRIPLET){});
}

/* The memory is zeroed. Peers get access to that of a client. */
static struct side *make(DAT_EVD_HANDLE of, DAT_MEM_PRIV_FLAGS privileges)
{
	const size_t size = BLOCK + (RECEIVES + 1) * sizeof(struct request);
	struct side *side = kzalloc(sizeof(*side), GFP_KERNEL);
	DAT_RETURN ret;

	if (!side)
		return NULL;
	INIT_LIST_HEAD(&side->list);
	side->data = kzalloc(size, GFP_KERNEL);
	privileges |= DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	ret = !side->data ? DAT_INSUFFICIENT_RESOURCES :
	      dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL,
			      (DAT_REGION_DESCRIPTION){ .for_va = side->data }, size, pz,
			      privileges, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &side->lmr,
			      &side->local, &side->remote, NULL, NULL);
	if (!ret)
		ret = dat_ep_create(ia, pz, of, of, of, NULL, &side->ep);
	for (int i = 0; !ret && i < RECEIVES; i++)
		ret = receive(side, side->data + BLOCK + i * sizeof(struct request));
	if (!ret)
		return side;
	forget(side);
	return NULL;
}

static void accept(DAT_CR_HANDLE cr)
{
	struct side *side = make(evd, 0);

	if (side && !dat_cr_accept(cr, side->ep, 0, NULL)) {
		list_add(&side->list, &sides);
		return;
	}
	dat_cr_reject(cr, 0, NULL);
	if (side)
		forget(side);
}

/* Takes the next step of a request. The receive of the next one comes before the answer. */
static DAT_RETURN completed(struct side *side, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	const struct request *request = dto->user_cookie.as_ptr;
	DAT_RMR_TRIPLET memory;
	DAT_DTOS operation = DAT_DTO_RDMA_READ;

	if (dto->operation == DAT_DTO_RECEIVE) {
		memory = (DAT_RMR_TRIPLET){ request->address, request->length, request->context };
		if (dto->transfered_length != sizeof(*request) || request->block >= BLOCKS)
			return DAT_ABORT;
		side->block = request->block;
		if (!request->is_write) {
			memcpy(side->data, disk[side->block], BLOCK);
			operation = DAT_DTO_RDMA_WRITE;
		}
		return receive(side, (void *)request) ?:
		       post(side, operation, side->data, BLOCK, memory);
	}
	if (dto->operation == DAT_DTO_RDMA_READ)
		memcpy(disk[side->block], side->data, BLOCK);
	if (dto->operation == DAT_DTO_SEND)
		return DAT_SUCCESS;
	return post(side, DAT_DTO_SEND, NULL, 0, (DAT_RMR_TRIPLET){});
}

static void happened(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	struct side *side, *next;

	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		return accept(event->event_data.cr_arrival_event_data.cr_handle);
	/* The EP is the first member of the data of both other events. */
	list_for_each_entry_safe(side, next, &sides, list) {
		if (side->ep != ep || event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED ||
		    (event->event_number == DAT_DTO_COMPLETION_EVENT &&
		     (dto->status || !completed(side, dto))))
			continue;
		forget(side);
	}
}

static int next(DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;

	if (dat_evd_wait(test_evd, PATIENCE_US, 1, &event, NULL) || event.event_number != number ||
	    (number == DAT_DTO_COMPLETION_EVENT &&
	     event.event_data.dto_completion_event_data.status))
		return -EIO;
	return 0;
}

/* Client: writes all blocks of a server, and reads and compares them. */
static int test_server(struct side *side)
{
	struct request *request = (void *)side->data + BLOCK + RECEIVES * sizeof(*request);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(peer) };
	int error, n;

	if (dat_ep_connect(side->ep, (DAT_IA_ADDRESS_PTR)&to, peer_port, PATIENCE_US, 0, NULL,
			   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG))
		return -EIO;
	error = next(DAT_CONNECTION_EVENT_ESTABLISHED);
	for (n = 0; !error && n < 2 * BLOCKS; n++) {
		*request = (struct request){ n < BLOCKS, n % BLOCKS,
					     (u64)side->data, BLOCK, side->remote };
		memset(side->data, n < BLOCKS ? n + 1 : 0, BLOCK);
		if (post(side, DAT_DTO_SEND, request, sizeof(*request), (DAT_RMR_TRIPLET){}))
			return -EIO;
		/* The send, and the answer, whose receive is posted for the next one. */
		error = next(DAT_DTO_COMPLETION_EVENT) ?: next(DAT_DTO_COMPLETION_EVENT);
		if (!error && (receive(side, side->data + BLOCK) ||
			       memchr_inv(side->data, n % BLOCKS + 1, BLOCK)))
			error = -EIO;
	}
	return error;
}

static void kdapl_block_exit(void)
{
	struct side *side, *next;

	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	/* No upcall is in progress any more. */
	list_for_each_entry_safe(side, next, &sides, list)
		forget(side);
}

static int __init kdapl_block_init(void)
{
	const DAT_UPCALL_OBJECT upcall = { .upcall_func = happened };
	const DAT_EVD_FLAGS streams = DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG;
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
	struct side *side = NULL;
	char name[16];
	int error = 0;
	DAT_RETURN ret;

	snprintf(name, sizeof(name), "%pI4", &(__be32){ htonl(address) });
	if (dat_ia_open(name, 8, &async_evd, &ia))
		return -ENODEV;
	ret = dat_pz_create(ia, &pz) ?:
	      dat_evd_kcreate(ia, 256, DAT_UPCALL_SINGLE_INSTANCE, &upcall, streams, &evd) ?:
	      dat_evd_kcreate(ia, 64, DAT_UPCALL_DISABLE, NULL, streams, &test_evd) ?:
	      dat_psp_create(ia, port, evd, DAT_PSP_CONSUMER_FLAG, &psp);
	if (!ret && peer) {
		side = make(test_evd, DAT_MEM_PRIV_REMOTE_READ_FLAG |
				      DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
		error = side ? test_server(side) : -ENOMEM;
	}
	if (side)
		forget(side);
	error = ret ? -EIO : error;
	if (error)
		kdapl_block_exit();
	return error;
}

module_init(kdapl_block_init);
module_exit(kdapl_block_exit);
MODULE_DESCRIPTION("kDAPL sample: a disk in memory and its client");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("KDAPL");
