// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A consumer in the kernel: sends back what it receives.
 *
 * There is no thread. All that happens comes to one EVD with upcalls, one at a
 * time: so nothing here needs a lock. An upcall may sleep, and makes any call.
 *
 *   modprobe kdapl_echo device=rxe0 port=7200
 *   kdapltest ping 10.7.0.1 ...           speaks another protocol; see
 *   userspace-test/tests/self/src/tests/kernel.rs for a client that does speak it
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/kdat.h>

#define DEPTH		16	/* messages of a connection under way */
#define MESSAGE		4096	/* bytes */

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA or network device");

static ulong port = 7200;
module_param(port, ulong, 0444);
MODULE_PARM_DESC(port, "connection qualifier to listen for");

static ulong messages;
module_param(messages, ulong, 0444);
MODULE_PARM_DESC(messages, "messages that were sent back");

static uint connections;
module_param(connections, uint, 0444);
MODULE_PARM_DESC(connections, "connections that stand");

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE evd;
static DAT_PSP_HANDLE psp;
static LIST_HEAD(all);

/* A message, on its way in or out: the cookie of its DTOs. */
struct message {
	struct connection *of;
	DAT_LMR_TRIPLET place;
};

struct connection {
	struct list_head list;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	void *memory;
	struct message message[DEPTH];
};

static void forget(struct connection *it)
{
	list_del(&it->list);
	dat_ep_free(it->ep);
	dat_lmr_free(it->lmr);
	kfree(it->memory);
	kfree(it);
}

static DAT_RETURN receive(struct message *message)
{
	message->place.segment_length = MESSAGE;
	return dat_ep_post_recv(message->of->ep, 1, &message->place,
				(DAT_DTO_COOKIE){ .as_ptr = message }, DAT_COMPLETION_DEFAULT_FLAG);
}

/* Memory, an Endpoint, and receives before anybody can send. */
static struct connection *prepare(void)
{
	struct connection *it = kzalloc(sizeof(*it), GFP_KERNEL);
	DAT_LMR_CONTEXT context;
	DAT_RETURN ret;
	unsigned int i;

	if (!it)
		return NULL;
	INIT_LIST_HEAD(&it->list);
	it->memory = kzalloc(DEPTH * MESSAGE, GFP_KERNEL);
	if (!it->memory)
		goto failed;
	ret = dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL,
			      (DAT_REGION_DESCRIPTION){ .for_va = it->memory }, DEPTH * MESSAGE, pz,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			      DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &it->lmr, &context,
			      NULL, NULL, NULL);
	if (ret)
		goto failed;
	ret = dat_ep_create(ia, pz, evd, evd, evd, NULL, &it->ep);
	for (i = 0; !ret && i < DEPTH; i++) {
		it->message[i].of = it;
		it->message[i].place.virtual_address = (DAT_VADDR)(it->memory + i * MESSAGE);
		it->message[i].place.lmr_context = context;
		ret = receive(&it->message[i]);
	}
	if (!ret)
		return it;
failed:
	forget(it);
	return NULL;
}

static void accept(const DAT_CR_ARRIVAL_EVENT_DATA *arrival)
{
	struct connection *it = prepare();

	if (!it) {
		dat_cr_reject(arrival->cr_handle, 0, NULL);
		return;
	}
	list_add(&it->list, &all);
	if (dat_cr_accept(arrival->cr_handle, it->ep, 0, NULL)) {
		dat_cr_reject(arrival->cr_handle, 0, NULL);
		forget(it);
	}
}

static struct connection *with_ep(DAT_EP_HANDLE ep)
{
	struct connection *it;

	list_for_each_entry(it, &all, list)
		if (it->ep == ep)
			return it;
	return NULL;
}

static void completed(const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct message *message = dto->user_cookie.as_ptr;

	/* The connection ends; DISCONNECTED or BROKEN comes after the last of these. */
	if (dto->status != DAT_DTO_SUCCESS)
		return;
	if (dto->operation == DAT_DTO_RECEIVE) {
		message->place.segment_length = dto->transfered_length;
		dat_ep_post_send(message->of->ep, 1, &message->place,
				 (DAT_DTO_COOKIE){ .as_ptr = message },
				 DAT_COMPLETION_DEFAULT_FLAG);
	} else {
		messages++;
		receive(message);
	}
}

static void happened(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct connection *it;

	switch (event->event_number) {
	case DAT_CONNECTION_REQUEST_EVENT:
		accept(&event->event_data.cr_arrival_event_data);
		break;
	case DAT_DTO_COMPLETION_EVENT:
		completed(&event->event_data.dto_completion_event_data);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		connections++;
		break;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
	case DAT_CONNECTION_EVENT_BROKEN:
		connections--;
		fallthrough;
	default:
		it = with_ep(event->event_data.connect_event_data.ep_handle);
		if (it)
			forget(it);
	}
}

static int __init kdapl_echo_init(void)
{
	const DAT_UPCALL_OBJECT upcall = { .upcall_func = happened };
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
	DAT_RETURN ret = dat_ia_open(device, 8, &async_evd, &ia);

	if (ret) {
		pr_err("kdapl_echo: %s cannot be opened: %08x\n", device, ret);
		return -ENODEV;
	}
	ret = dat_pz_create(ia, &pz);
	if (!ret)
		ret = dat_evd_kcreate(ia, 1024, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
				      DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG,
				      &evd);
	if (!ret)
		ret = dat_psp_create(ia, port, evd, DAT_PSP_CONSUMER_FLAG, &psp);
	if (ret) {
		pr_err("kdapl_echo: nobody can listen at %lu: %08x\n", port, ret);
		dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
		return -EADDRINUSE;
	}
	return 0;
}

static void __exit kdapl_echo_exit(void)
{
	struct connection *it, *next;

	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	/* No upcall is in progress any more, so no other thread uses the list. */
	list_for_each_entry_safe(it, next, &all, list)
		forget(it);
}

module_init(kdapl_echo_init);
module_exit(kdapl_echo_exit);
MODULE_DESCRIPTION("kDAPL sample: an echo server made of upcalls");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("KDAPL");
