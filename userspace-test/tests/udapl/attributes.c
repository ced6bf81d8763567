// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Compares what the attributes of an adapter and of its provider promise with what calls do. */
#include "consumer.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* Each limit of an Endpoint is granted, and the next number refused. */
static void ep_limits(struct side *side, const DAT_IA_ATTR *ia)
{
	const struct {
		size_t offset;
		DAT_COUNT limit;
	} limits[] = {
#define LIMIT(attribute, limit) { offsetof(DAT_EP_ATTR, attribute), ia->limit },
#include "../ep_limits.h"
#undef LIMIT
	};

	for (unsigned i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		DAT_EP_ATTR attr = { .max_recv_dtos = 1, .max_request_dtos = 1 };
		DAT_COUNT *member = (DAT_COUNT *)((char *)&attr + limits[i].offset);
		DAT_EP_PARAM param;
		DAT_EP_HANDLE ep;

		*member = limits[i].limit;
		CHECK(*member > 0);
		OK(dat_ep_create(side->ia, side->pz, side->evd, side->evd, side->evd, &attr, &ep));
		OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
		CHECK(*(DAT_COUNT *)((char *)&param.ep_attr + limits[i].offset) == limits[i].limit);
		OK(dat_ep_free(ep));
		*member = limits[i].limit + 1;
		REFUSED(DAT_INVALID_PARAMETER,
			dat_ep_create(side->ia, side->pz, side->evd, side->evd, side->evd, &attr,
				      &ep));
	}
}

static void srq_limits(struct side *side, const DAT_IA_ATTR *ia, const DAT_PROVIDER_ATTR *provider)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = ia->max_recv_per_srq, .max_recv_iov = 1 };
	DAT_PZ_HANDLE other;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;

	CHECK((int)provider->srq_supported == (ia->max_srqs > 0));
	CHECK(provider->srq_watermarks_supported == (ia->max_srqs > 0));
	CHECK(provider->srq_info_supported == (ia->max_srqs > 0));
	if (!provider->srq_supported) {
		REFUSED(DAT_MODEL_NOT_SUPPORTED, dat_srq_create(side->ia, side->pz, &attr, &srq));
		return;
	}
	OK(dat_srq_create(side->ia, side->pz, &attr, &srq));
	CHECK(provider->srq_ep_pz_difference_supported == DAT_FALSE);
	OK(dat_pz_create(side->ia, &other));
	REFUSED(DAT_INVALID_PARAMETER, dat_ep_create_with_srq(side->ia, other, side->evd, side->evd,
							      side->evd, srq,
							     NULL, &ep));
	OK(dat_pz_free(other));
	OK(dat_srq_free(srq));
	attr.max_recv_dtos++;
	REFUSED(DAT_INVALID_PARAMETER, dat_srq_create(side->ia, side->pz, &attr, &srq));
}

/* Each quality of service and completion flag is supported if and only if its bit is set. */
static void flags(struct side *side, const DAT_PROVIDER_ATTR *provider)
{
	DAT_EP_HANDLE ep;

	for (unsigned bit = 1; bit < 0x100; bit <<= 1) {
		DAT_EP_ATTR attr = { .max_recv_dtos = 1, .max_request_dtos = 1, .qos = bit };

		if (provider->dat_qos_supported & bit) {
			OK(dat_ep_create(side->ia, side->pz, side->evd, side->evd, side->evd, &attr,
					 &ep));
			OK(dat_ep_free(ep));
		} else {
			REFUSED(DAT_MODEL_NOT_SUPPORTED,
				dat_ep_create(side->ia, side->pz, side->evd, side->evd, side->evd,
					      &attr, &ep));
		}
	}
	CHECK(provider->dat_qos_supported != DAT_QOS_BEST_EFFORT);
	CHECK((int)provider->completion_flags_supported ==
	      (DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
	       DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
	       DAT_COMPLETION_EVD_THRESHOLD_FLAG));
}

/* Connects to an address that nobody has: the arguments are checked first. */
static void connects(struct side *side, const DAT_PROVIDER_ATTR *provider)
{
	struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	char data[4096] = { 0 };

	CHECK(provider->supports_multipath == DAT_FALSE);
	REFUSED(DAT_MODEL_NOT_SUPPORTED, dat_ep_connect(side->ep, (DAT_IA_ADDRESS_PTR)&nobody, 7,
							PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT,
							DAT_CONNECT_MULTIPATH_REQUIRED_FLAG));
	REFUSED(DAT_INVALID_PARAMETER,
		dat_ep_connect(side->ep, (DAT_IA_ADDRESS_PTR)&nobody, 7, PATIENCE, sizeof(data),
			       data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/*
 * Private data of the longest size arrive in both directions. A request, whose limit is the least,
 * carries no more.
 */
static void private_data(struct side *client, const DAT_IA_ATTR *ia,
			 const DAT_PROVIDER_ATTR *provider)
{
	const DAT_COUNT size = provider->max_private_data_size;
	DAT_CONNECTION_EVENT_DATA established;
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_CONN_QUAL qualifier;
	DAT_CR_PARAM request;
	DAT_PSP_HANDLE psp;
	struct side server;
	char data[256];

	CHECK(size > 0 && size < (int)sizeof(data));
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = i + 1;
	open_side(&server, client->ia);
	OK(dat_psp_create_any(server.ia, &qualifier, server.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	REFUSED(DAT_INVALID_PARAMETER,
		dat_ep_connect(client->ep, ia->ia_address_ptr, qualifier, PATIENCE, size + 1, data,
			       DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	arrival = call_side(client, &server, qualifier, size, data);
	OK(dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &request));
	CHECK(request.private_data_size >= size && !memcmp(request.private_data, data, size));
	OK(dat_cr_accept(arrival.cr_handle, server.ep, size, data + 1));
	expect(server.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	established = expect(client->evd, DAT_CONNECTION_EVENT_ESTABLISHED)
			      .event_data.connect_event_data;
	CHECK(established.private_data_size >= size &&
	      !memcmp(established.private_data, data + 1, size));
	disconnect_sides(client, &server);
	OK(dat_psp_free(psp));
	close_side(&server);
}

/* Each pair of streams that may share an EVD does. */
static void merging(DAT_IA_HANDLE ia, const DAT_PROVIDER_ATTR *provider)
{
	static const DAT_EVD_FLAGS streams[6] = {
		DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_DTO_FLAG,
		DAT_EVD_CONNECTION_FLAG, DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG,
	};

	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < 6; j++) {
			DAT_EVD_HANDLE evd;

			CHECK(provider->evd_stream_merging_supported[i][j] == DAT_TRUE);
			/* The asynchronous EVD comes with the adapter. */
			if (i == 5 || j == 5)
				continue;
			OK(dat_evd_create(ia, 4, DAT_HANDLE_NULL, streams[i] | streams[j], &evd));
			OK(dat_evd_free(evd));
		}
	}
}

static void memory(struct side *side, const DAT_IA_ATTR *ia, const DAT_PROVIDER_ATTR *provider)
{
	DAT_REGION_DESCRIPTION region = { .for_va = side->memory };
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN length;
	DAT_VADDR address;
	DAT_LMR_HANDLE lmr;

	/* The types of the bits that are set are tested with transfers (exchange.c). */
	CHECK((int)provider->lmr_mem_types_supported ==
	      (DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL));
	REFUSED(DAT_MODEL_NOT_SUPPORTED, dat_lmr_create(side->ia, (DAT_MEM_TYPE)4, region, 64,
							side->pz, DAT_MEM_PRIV_ALL_FLAG,
							DAT_VA_TYPE_VA, &lmr, &lmr_context,
							&rmr_context, &length, &address));
	region.for_va = side->memory;
	/* Zero-based addresses are tested with transfers (lmr.c). */
	CHECK(ia->zb_supported == DAT_TRUE);
	REFUSED(DAT_MODEL_NOT_SUPPORTED, dat_lmr_create(side->ia, DAT_MEM_TYPE_VIRTUAL, region, 64,
							side->pz, DAT_MEM_PRIV_ALL_FLAG,
							(DAT_VA_TYPE)2, &lmr, &lmr_context,
							&rmr_context, &length, &address));
	CHECK((int)provider->rmr_scope_supported == DAT_RMR_SCOPE_PZ);
	CHECK(provider->lmr_sync_req == DAT_FALSE);
	CHECK(provider->iov_ownership_on_return == DAT_IOV_CONSUMER);
}

/* RMRs exist if and only if their limit is above 0. */
static void rmrs(struct side *side, const DAT_IA_ATTR *ia)
{
	DAT_RMR_HANDLE rmr;

	if (!ia->max_rmrs) {
		REFUSED(DAT_MODEL_NOT_SUPPORTED, dat_rmr_create(side->pz, &rmr));
		return;
	}
	CHECK(ia->max_rmrs == ia->max_lmrs);
	OK(dat_rmr_create(side->pz, &rmr));
	OK(dat_rmr_free(rmr));
}

/* Returns the value of a named attribute; NULL if there is none. */
static const char *named(const DAT_PROVIDER_ATTR *provider, const char *name)
{
	for (int i = 0; i < provider->num_provider_specific_attr; i++) {
		const DAT_NAMED_ATTR *attr = provider->provider_specific_attr + i;

		if (!strcmp(attr->name, name))
			return attr->value;
	}
	return NULL;
}

/* Attributes that are the same on every device. */
static void constants(DAT_IA_HANDLE ia, DAT_BOOLEAN thread_safe)
{
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR attr;
	const char *mtu;

	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
	CHECK(attr.hardware_version_minor == 0);
	CHECK(attr.max_lmr_virtual_address == UINT64_MAX);
	CHECK(attr.max_rmr_target_address == UINT64_MAX);
	CHECK(attr.max_rdma_size == attr.max_message_size);
	CHECK(attr.max_rdma_read_in == attr.max_rdma_read_per_ep_in);
	CHECK(attr.max_rdma_read_out == attr.max_rdma_read_per_ep_out);
	CHECK(attr.max_rdma_read_per_ep_in_guaranteed == DAT_TRUE);
	CHECK(attr.max_rdma_read_per_ep_out_guaranteed == DAT_TRUE);
	CHECK(attr.max_ep_per_srq == (attr.max_srqs ? attr.max_eps : 0));
	CHECK(attr.num_transport_attr == 0 && !attr.transport_attr);
	CHECK(attr.num_vendor_attr == 0 && !attr.vendor_attr);
	CHECK(provider.dapl_version_major == 2 && provider.dapl_version_minor == 0);
	CHECK(provider.is_thread_safe == thread_safe);
	CHECK(provider.ep_creator == DAT_PSP_CREATES_EP_IFASKED);
	CHECK(provider.pz_support == DAT_PZ_UNIQUE);
	CHECK(provider.optimal_buffer_alignment == DAT_OPTIMAL_ALIGNMENT);
	CHECK(provider.is_signal_safe == DAT_FALSE);
	CHECK(provider.rdma_write_for_rdma_read_req == DAT_FALSE);
	CHECK(provider.rdma_read_lmr_rmr_context_exposure == DAT_FALSE);
	CHECK(provider.ha_supported == DAT_FALSE && provider.ha_loadbalancing == 0);
	CHECK(provider.dto_async_return_guaranteed == DAT_TRUE);
	CHECK(!strcmp(named(&provider, "DAT_IB_PROVIDER_NAME"), "kdapl"));
	CHECK(!strcmp(named(&provider, "DAT_IB_DEVICE_NAME"), attr.adapter_name));
	mtu = named(&provider, "DAT_IB_TRANSPORT_MTU");
	CHECK(mtu && atoi(mtu) >= 256 && atoi(mtu) <= 4096);
	CHECK(!named(&provider, "DAT_IB_NO_SUCH_NAME"));
}

void case_attributes(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	DAT_PROVIDER_ATTR provider;
	DAT_COUNT buffers, span;
	struct side side;
	DAT_IA_ATTR attr;
	DAT_EVD_HANDLE evd;

	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
	open_side(&side, ia);
	ep_limits(&side, &attr);
	srq_limits(&side, &attr, &provider);
	flags(&side, &provider);
	connects(&side, &provider);
	merging(ia, &provider);
	memory(&side, &attr, &provider);
	REFUSED(DAT_INVALID_PARAMETER, dat_evd_create(ia, attr.max_evd_qlen + 1, DAT_HANDLE_NULL,
						     DAT_EVD_SOFTWARE_FLAG, &evd));
	CHECK(provider.ep_recv_info_supported);
	OK(dat_ep_recv_query(side.ep, &buffers, &span));
	rmrs(&side, &attr);
	constants(ia, DAT_FALSE);
	private_data(&side, &attr, &provider);
	close_side(&side);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	ia = open_ia(place->name, DAT_TRUE);
	constants(ia, DAT_TRUE);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}
