// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Compares attributes of the adapter and of kDAPL with the header, and with what calls do. */
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "ktest.h"

/* Each quality of service is supported if and only if its bit is set. */
static int qualities(const struct pair *pair, u32 supported)
{
	unsigned int bit;

	SAME(supported, DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY |
	     DAT_QOS_PREMIUM);
	for (bit = 1; bit < 0x100; bit <<= 1) {
		DAT_EP_ATTR attr = { .max_recv_dtos = 1, .max_request_dtos = 1, .qos = bit };
		DAT_EP_HANDLE ep;
		DAT_RETURN ret;

		ret = dat_ep_create(ia, pz, pair->dto[0], pair->dto[0], pair->connection[0], &attr,
				    &ep);
		if (!(supported & bit)) {
			REFUSED(ret, DAT_MODEL_NOT_SUPPORTED, 0);
			continue;
		}
		OK(ret);
		OK(dat_ep_free(ep));
	}
	return 0;
}

/* A request of the longest private data is sent, and one of another byte refused. */
static int private_data(const struct pair *pair, DAT_COUNT size)
{
	static const u8 data[256];
	const DAT_IA_ADDRESS_PTR address = ia_attr.ia_address_ptr;

	/* The least of the limits that docs/ioctl/adapters.md lists. */
	SAME(size, is_iwarp ? 251 : 56);
	REFUSED(dat_ep_connect(pair->ep[0], address, 9, PATIENCE_US, size + 1, (void *)data,
			       DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(5));
	REFUSED(dat_ep_connect(pair->ep[0], address, 9, PATIENCE_US, 0, NULL, DAT_QOS_BEST_EFFORT,
			       DAT_CONNECT_MULTIPATH_REQUIRED_FLAG), DAT_MODEL_NOT_SUPPORTED, 0);
	OK(dat_ep_connect(pair->ep[0], address, 9, PATIENCE_US, size, (void *)data,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	return 0;
}

static int provider_attributes(void)
{
	DAT_PROVIDER_ATTR provider;
	struct pair pair = {};
	DAT_LMR_HANDLE lmr;

	OK(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider));
	EXPECT(!strcmp(provider.provider_name, "kdapl"));
	SAME(provider.dapl_version_major, DAT_VERSION_MAJOR);
	SAME(provider.dapl_version_minor, DAT_VERSION_MINOR);
	SAME(provider.lmr_mem_types_supported, DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_PHYSICAL |
	     DAT_MEM_TYPE_PLATFORM | DAT_MEM_TYPE_PHYSICAL_VAR_PAGES | KDAPL_MEM_TYPE_BVEC);
	SAME(provider.completion_flags_supported, DAT_COMPLETION_SUPPRESS_FLAG |
	     DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
	     DAT_COMPLETION_BARRIER_FENCE_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG |
	     DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG | KDAPL_COMPLETION_WITH_NEXT_FLAG);
	SAME(provider.is_thread_safe, DAT_TRUE);
	SAME(provider.supports_multipath, DAT_FALSE);
	SAME(provider.rdma_write_for_rdma_read_req, is_iwarp ? DAT_TRUE : DAT_FALSE);
	/* The devices of the tests register memory by requests. */
	SAME(provider.fmr_supported, DAT_TRUE);
	SAME(provider.lmr_for_fmr_scope, DAT_LMR_SCOPE_PZ);
	OK(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_PZ, &lmr));
	REFUSED(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_EP, &lmr), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_ANY, &lmr), DAT_MODEL_NOT_SUPPORTED, 0);
	TRY(pair_make(&pair));
	TRY(qualities(&pair, provider.dat_qos_supported));
	return private_data(&pair, provider.max_private_data_size);
}

/* Each limit of an Endpoint is granted, and the next number refused. */
static int ep_limits(const struct pair *pair)
{
	const struct {
		size_t offset;
		DAT_COUNT limit;
	} limits[] = {
#define LIMIT(attribute, limit) { offsetof(DAT_EP_ATTR, attribute), ia_attr.limit },
#include "../ep_limits.h"
#undef LIMIT
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		DAT_EP_ATTR attr = { .max_recv_dtos = 1, .max_request_dtos = 1 };
		DAT_COUNT *member = (void *)&attr + limits[i].offset;
		DAT_EP_HANDLE ep;

		EXPECT(limits[i].limit > 0);
		*member = limits[i].limit;
		OK(dat_ep_create(ia, pz, pair->dto[0], pair->dto[0], pair->connection[0], &attr,
				 &ep));
		OK(dat_ep_free(ep));
		*member = limits[i].limit + 1;
		REFUSED(dat_ep_create(ia, pz, pair->dto[0], pair->dto[0], pair->connection[0],
				      &attr, &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(6));
	}
	return 0;
}

static int adapter_attributes(void)
{
	struct pair pair = {};
	DAT_EVD_HANDLE evd;

	EXPECT(!strncmp(ia_attr.vendor_name, "0x", 2) && strlen(ia_attr.vendor_name) == 10);
	SAME(ia_attr.hardware_version_minor, 0);
	SAME(ia_attr.max_lmr_virtual_address, U64_MAX);
	SAME(ia_attr.max_rdma_size, ia_attr.max_message_size);
	SAME(ia_attr.max_rmrs, ia_attr.max_lmrs);
	EXPECT(ia_attr.max_rmr_size >= PAGE_SIZE && ia_attr.max_lmr_block_size >= PAGE_SIZE);
	EXPECT(ia_attr.max_eps > 0 && ia_attr.max_evds > 0 && ia_attr.max_pzs > 0);
	SAME(ia_attr.max_ep_per_srq, ia_attr.max_srqs ? ia_attr.max_eps : 0);
	SAME(ia_attr.zb_supported, DAT_TRUE);
	SAME(ia_attr.reserved_lmr_supported, DAT_TRUE);
	SAME(ia_attr.extension_supported, is_iwarp ? DAT_EXTENSION_NONE : DAT_EXTENSION_IB);
	TRY(make_evd(ia_attr.max_evd_qlen, DAT_UPCALL_DISABLE, NULL, &evd));
	OK(dat_evd_free(evd));
	REFUSED(dat_evd_kcreate(ia, ia_attr.max_evd_qlen + 1, DAT_UPCALL_DISABLE, NULL,
				DAT_EVD_SOFTWARE_FLAG, &evd), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(2));
	TRY(pair_make(&pair));
	return ep_limits(&pair);
}

static uint default_keepalive;
module_param(default_keepalive, uint, 0444);
MODULE_PARM_DESC(default_keepalive, "keepalive_ms of the module, or 0 for none");

/* Returns the keepalive that an Endpoint has after a create with @keepalive_ms. */
static int create_kept_alive(const struct pair *pair, u32 keepalive_ms, DAT_EP_HANDLE *ep,
			     DAT_EP_PARAM *param)
{
	DAT_EP_ATTR attr = { .peer_timeout_ms = 5000, .keepalive_ms = keepalive_ms };

	OK(dat_ep_create(ia, pz, pair->dto[0], pair->dto[0], pair->connection[0], &attr, ep));
	OK(dat_ep_query(*ep, DAT_EP_FIELD_ALL, param));
	SAME(param->ep_attr.peer_timeout_ms, 5000);
	return 0;
}

/* Time-outs that are no attributes of DAT, and their defaults, which are module parameters. */
static int keepalive(void)
{
	const u32 wrong[] = { 1, KDAPL_KEEPALIVE_MIN - 1, KDAPL_KEEPALIVE_MAX + 1 };
	DAT_EP_ATTR attr = {};
	struct pair pair = {};
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;
	unsigned int i;

	TRY(pair_make(&pair));
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		attr.keepalive_ms = wrong[i];
		REFUSED(dat_ep_create(ia, pz, pair.dto[0], pair.dto[0], pair.connection[0], &attr,
				      &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(6));
	}
	TRY(create_kept_alive(&pair, KDAPL_KEEPALIVE_NONE, &ep, &param));
	SAME(param.ep_attr.keepalive_ms, KDAPL_KEEPALIVE_NONE);
	TRY(create_kept_alive(&pair, KDAPL_KEEPALIVE_MIN, &ep, &param));
	SAME(param.ep_attr.keepalive_ms, KDAPL_KEEPALIVE_MIN);
	param.ep_attr.peer_timeout_ms = 1;
	param.ep_attr.keepalive_ms = KDAPL_KEEPALIVE_MAX;
	OK(dat_ep_modify(ep, KDAPL_EP_FIELD_KEEPALIVE, &param));
	OK(dat_ep_query(ep, KDAPL_EP_FIELD_KEEPALIVE, &param));
	SAME(param.ep_attr.keepalive_ms, KDAPL_KEEPALIVE_MAX);
	SAME(param.ep_attr.peer_timeout_ms, 5000);
	param.ep_attr.keepalive_ms = 1;
	REFUSED(dat_ep_modify(ep, KDAPL_EP_FIELD_KEEPALIVE, &param), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(3));
	/* The other Endpoints have the default. */
	TRY(create_kept_alive(&pair, 0, &ep, &param));
	SAME(param.ep_attr.keepalive_ms, default_keepalive ?: KDAPL_KEEPALIVE_NONE);
	OK(dat_ep_query(pair.ep[0], DAT_EP_FIELD_ALL, &param));
	SAME(param.ep_attr.keepalive_ms, default_keepalive ?: KDAPL_KEEPALIVE_NONE);
	return 0;
}

const struct ktest attribute_tests[] = {
	{ "provider_attributes", provider_attributes },
	{ "adapter_attributes", adapter_attributes },
	{ "keepalive", keepalive },
	{}
};
