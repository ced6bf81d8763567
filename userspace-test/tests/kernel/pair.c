// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Shared by several tests: numbered events, and two connected Endpoints. */
#include <linux/sched.h>
#include <linux/string.h>

#include "ktest.h"

DAT_RETURN post_number(DAT_EVD_HANDLE evd, unsigned long number)
{
	const DAT_EVENT event = {
		.event_number = DAT_SOFTWARE_EVENT,
		.event_data.software_event_data.pointer = (void *)number,
	};

	return dat_evd_post_se(evd, &event);
}

unsigned long number_of(const DAT_EVENT *event)
{
	return (unsigned long)event->event_data.software_event_data.pointer;
}

int post_surely(DAT_EVD_HANDLE evd, unsigned long number)
{
	DAT_RETURN ret;

	while (DAT_GET_TYPE(ret = post_number(evd, number)) == DAT_QUEUE_FULL)
		usleep_range(10, 50);
	OK(ret);
	return 0;
}

static struct {
	DAT_EVD_HANDLE evd;
	unsigned int count;
} posted;

static int post_every(unsigned int first)
{
	unsigned long number;

	for (number = first; number < posted.count; number += POSTERS)
		TRY(post_surely(posted.evd, number));
	return 0;
}

int post_from_threads(DAT_EVD_HANDLE evd, unsigned int count)
{
	struct ktest_thread threads[POSTERS];
	unsigned int number;
	int error = 0;

	posted.evd = evd;
	posted.count = count;
	for (number = 0; number < POSTERS; number++)
		error = ktest_start(&threads[number], post_every, number) ?: error;
	for (number = 0; number < POSTERS; number++)
		error = ktest_join(&threads[number]) ?: error;
	return error;
}

int make_evd(DAT_COUNT qlen, DAT_UPCALL_POLICY policy, const DAT_UPCALL_OBJECT *upcall,
	     DAT_EVD_HANDLE *evd)
{
	OK(dat_evd_kcreate(ia, qlen, policy, upcall, DAT_EVD_SOFTWARE_FLAG, evd));
	return 0;
}

int pair_make(struct pair *pair)
{
	const DAT_MEM_PRIV_FLAGS local =
		DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	DAT_LMR_HANDLE lmr;
	unsigned int side;

	memset(pair_memory, 0, PAIR_MEMORY);
	pair->memory = pair_memory;
	OK(register_memory(pair_memory, PAIR_MEMORY, local, &lmr, &pair->context));
	for (side = 0; side < 2; side++) {
		OK(dat_evd_kcreate(ia, 128, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
				   &pair->dto[side]));
		OK(dat_evd_kcreate(ia, 16, DAT_UPCALL_DISABLE, NULL,
				   DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG,
				   &pair->connection[side]));
		OK(dat_ep_create(ia, pz, pair->dto[side], pair->dto[side], pair->connection[side],
				 NULL, &pair->ep[side]));
	}
	return 0;
}

int next_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT *event)
{
	OK(dat_evd_wait(evd, PATIENCE_US, 1, event, NULL));
	SAME(event->event_number, number);
	EXPECT(event->evd_handle == evd);
	return 0;
}

int pair_establish(struct pair *pair)
{
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	OK(dat_psp_create_any(ia, &conn_qual, pair->connection[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(pair->ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(pair->connection[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair->ep[1], 0, NULL));
	TRY(next_event(pair->connection[1], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	OK(dat_psp_free(psp));
	return 0;
}

int pair_connect(struct pair *pair)
{
	DAT_EVENT event;

	TRY(pair_establish(pair));
	return next_event(pair->connection[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}

DAT_LMR_TRIPLET pair_place(const struct pair *pair, size_t offset, DAT_SEG_LENGTH length)
{
	return (DAT_LMR_TRIPLET){
		.virtual_address = (DAT_VADDR)(pair->memory + offset),
		.segment_length = length,
		.lmr_context = pair->context,
	};
}

DAT_RETURN register_memory(const void *start, DAT_VLEN length, DAT_MEM_PRIV_FLAGS privileges,
			   DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *context)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = (void *)start };

	return dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, length, pz, privileges,
			       DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, lmr, context, NULL, NULL,
			       NULL);
}

int next_dto(DAT_EVD_HANDLE evd, DAT_DTOS operation, u64 value, DAT_SEG_LENGTH length)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	TRY(next_event(evd, DAT_DTO_COMPLETION_EVENT, &event));
	dto = &event.event_data.dto_completion_event_data;
	SAME(dto->status, DAT_DTO_SUCCESS);
	SAME(dto->operation, operation);
	SAME(dto->user_cookie.as_64, value);
	SAME(dto->transfered_length, length);
	return 0;
}

DAT_RETURN lmr_make(DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
		    DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, struct lmr *lmr)
{
	return dat_lmr_kcreate(ia, type, region, length, pz, privileges, va_type,
			       DAT_MEM_OPTIMIZE_DONT_CARE, &lmr->handle, &lmr->local, &lmr->remote,
			       &lmr->size, &lmr->address);
}

DAT_RETURN lmr_make_virtual(const void *start, DAT_VLEN length, DAT_MEM_PRIV_FLAGS privileges,
			    struct lmr *lmr)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = (void *)start };

	return lmr_make(DAT_MEM_TYPE_VIRTUAL, region, length, privileges, DAT_VA_TYPE_VA, lmr);
}

static int post_rdma(const struct pair *pair, DAT_DTOS operation, const DAT_RMR_TRIPLET *remote,
		     size_t offset, DAT_SEG_LENGTH length)
{
	const DAT_LMR_TRIPLET local = pair_place(pair, offset, length);

	if (operation == DAT_DTO_RDMA_WRITE)
		OK(dat_ep_post_rdma_write(pair->ep[0], 1, &local, cookie(length), remote,
					  DAT_COMPLETION_DEFAULT_FLAG));
	else
		OK(dat_ep_post_rdma_read(pair->ep[0], 1, &local, cookie(length), remote,
					 DAT_COMPLETION_DEFAULT_FLAG));
	return 0;
}

int pair_rdma(const struct pair *pair, DAT_DTOS operation, const DAT_RMR_TRIPLET *remote,
	      size_t offset, DAT_SEG_LENGTH length)
{
	TRY(post_rdma(pair, operation, remote, offset, length));
	return next_dto(pair->dto[0], operation, length, length);
}

int pair_rdma_refused(const struct pair *pair, DAT_DTOS operation, const DAT_RMR_TRIPLET *remote,
		      DAT_SEG_LENGTH length)
{
	DAT_EVENT event;

	TRY(post_rdma(pair, operation, remote, 0, length));
	TRY(next_event(pair->dto[0], DAT_DTO_COMPLETION_EVENT, &event));
	SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_REMOTE_ACCESS);
	return next_event(pair->connection[0], DAT_CONNECTION_EVENT_BROKEN, &event);
}
