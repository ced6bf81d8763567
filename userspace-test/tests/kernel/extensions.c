// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the InfiniBand extensions. */
#include <linux/build_bug.h>
#include <rdma/kdat_ib_extensions.h>

#include "ktest.h"

static const DAT_DTO_COOKIE mine = { .as_64 = 0x1111 }, theirs = { .as_64 = 0x2222 };

static_assert(sizeof(DAT_IB_EXTENSION_EVENT_DATA) <=
	      sizeof_field(DAT_EVENT, event_extension_data));

/* Takes the next event, which must be the completion of an extension. */
static int next_extension(DAT_EVD_HANDLE evd, DAT_DTOS operation, DAT_IB_EXT_TYPE type,
			  DAT_DTO_COOKIE cookie, DAT_DTO_COMPLETION_STATUS status, u32 immed_data)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	const DAT_IB_EXTENSION_EVENT_DATA *more;
	DAT_EVENT event;

	TRY(next_event(evd, DAT_IB_DTO_EVENT, &event));
	dto = &event.event_data.dto_completion_event_data;
	more = (const DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data;
	SAME(dto->status, status);
	SAME(dto->operation, operation);
	SAME(dto->user_cookie.as_64, cookie.as_64);
	SAME(more->type, type);
	SAME(more->status, status == DAT_DTO_SUCCESS ? DAT_OP_SUCCESS : DAT_IB_OP_ERR);
	SAME(more->val.immed.data, immed_data);
	return 0;
}

static DAT_RETURN fetch_and_add(const struct pair *pair, const DAT_LMR_TRIPLET *local,
				const DAT_RMR_TRIPLET *remote)
{
	return dat_ib_post_fetch_and_add(pair->ep[0], 1, local, mine, remote,
					 DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN cmp_and_swap(const struct pair *pair, const DAT_LMR_TRIPLET *local,
			       const DAT_RMR_TRIPLET *remote)
{
	return dat_ib_post_cmp_and_swap(pair->ep[0], 1, 2, local, mine, remote,
					DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN write_immed(const struct pair *pair, const DAT_RMR_TRIPLET *remote)
{
	return dat_ib_post_rdma_write_immed(pair->ep[0], 0, NULL, mine, remote, 0xcafe1234,
					    DAT_COMPLETION_DEFAULT_FLAG);
}

/* Tests calls that are refused at once, and the argument numbers of their errors. */
static int refusals(const struct pair *pair)
{
	const DAT_RMR_TRIPLET aligned = { .virtual_address = 64 }, odd = { .virtual_address = 68 };
	const DAT_LMR_TRIPLET word = pair_place(pair, 0, 8), longer = pair_place(pair, 0, 9);

	REFUSED(fetch_and_add(pair, NULL, &aligned), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	REFUSED(fetch_and_add(pair, &word, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(5));
	REFUSED(fetch_and_add(pair, &word, &odd), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(5));
	REFUSED(fetch_and_add(pair, &longer, &aligned), DAT_LENGTH_ERROR, 0);
	REFUSED(cmp_and_swap(pair, NULL, &aligned), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(4));
	REFUSED(cmp_and_swap(pair, &word, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(6));
	REFUSED(cmp_and_swap(pair, &word, &odd), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(6));
	REFUSED(cmp_and_swap(pair, &longer, &aligned), DAT_LENGTH_ERROR, 0);
	REFUSED(write_immed(pair, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(5));
	return 0;
}

static int extensions(void)
{
	const DAT_RMR_TRIPLET nowhere = {};
	struct pair pair = {};
	DAT_LMR_TRIPLET word;

	TRY(pair_make(&pair));
	word = pair_place(&pair, 0, 8);
	if (ia_attr.extension_supported == DAT_EXTENSION_NONE) {
		REFUSED(write_immed(&pair, &nowhere), DAT_MODEL_NOT_SUPPORTED, 0);
		REFUSED(fetch_and_add(&pair, &word, &nowhere), DAT_MODEL_NOT_SUPPORTED, 0);
		REFUSED(cmp_and_swap(&pair, &word, &nowhere), DAT_MODEL_NOT_SUPPORTED, 0);
		return 0;
	}
	SAME(ia_attr.extension_supported, DAT_EXTENSION_IB);
	OK(dat_ep_post_recv(pair.ep[1], 0, NULL, theirs, DAT_COMPLETION_DEFAULT_FLAG));
	TRY(pair_connect(&pair));
	OK(write_immed(&pair, &nowhere));
	TRY(next_extension(pair.dto[0], DAT_IB_DTO_RDMA_WRITE_IMMED, DAT_IB_RDMA_WRITE_IMMED, mine,
			   DAT_DTO_SUCCESS, 0));
	TRY(next_extension(pair.dto[1], DAT_IB_DTO_RECV_IMMED, DAT_IB_RDMA_WRITE_IMMED_DATA, theirs,
			   DAT_DTO_SUCCESS, 0xcafe1234));
	TRY(refusals(&pair));
	/* No peer has a key to memory of the kernel. */
	OK(fetch_and_add(&pair, &word, &nowhere));
	return next_extension(pair.dto[0], DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD, mine,
			      DAT_DTO_ERR_REMOTE_ACCESS, 0);
}

const struct ktest extension_tests[] = {
	{ "extensions", extensions },
	{}
};
