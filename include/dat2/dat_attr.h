/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Attributes of Interface Adapters, providers, Endpoints and Shared Receive Queues. */
#pragma once

#include <dat2/dat_types.h>

/** Extensions of an IA. */
typedef enum dat_extension {
	DAT_EXTENSION_NONE = 0,
	DAT_EXTENSION_IB = 1,
	DAT_EXTENSION_IW = 2,
} DAT_EXTENSION;
#define DAT_IB_EXTENSION	1
#define DAT_IW_EXTENSION	2

/**
 * Attributes of an IA: what the device allows.
 * kDAPL also enforces limits of the user, which an IA does not show.
 */
typedef struct dat_ia_attr {
	char adapter_name[256];	/* name of the RDMA device */
	char vendor_name[256];
	DAT_UINT32 hardware_version_major;
	DAT_UINT32 hardware_version_minor;
	DAT_UINT32 firmware_version_major;
	DAT_UINT32 firmware_version_minor;
	DAT_IA_ADDRESS_PTR ia_address_ptr;	/* valid until the IA is closed */
	DAT_COUNT max_eps;
	DAT_COUNT max_dto_per_ep;
	DAT_COUNT max_rdma_read_per_ep_in;
	DAT_COUNT max_rdma_read_per_ep_out;
	DAT_COUNT max_evds;
	DAT_COUNT max_evd_qlen;
	DAT_COUNT max_iov_segments_per_dto;
	DAT_COUNT max_lmrs;
	DAT_SEG_LENGTH max_lmr_block_size;
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	DAT_SEG_LENGTH max_message_size;
	DAT_SEG_LENGTH max_rdma_size;
	DAT_COUNT max_rmrs;
	DAT_VADDR max_rmr_target_address;
	DAT_COUNT max_srqs;
	DAT_COUNT max_ep_per_srq;
	DAT_COUNT max_recv_per_srq;
	DAT_COUNT max_iov_segments_per_rdma_read;
	DAT_COUNT max_iov_segments_per_rdma_write;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
	DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
	DAT_BOOLEAN zb_supported;
	DAT_EXTENSION extension_supported;
	DAT_COUNT extension_version;	/* DAT_IB_EXTENSION_VERSION */
	DAT_COUNT num_transport_attr;
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;
	DAT_NAMED_ATTR *vendor_attr;
} DAT_IA_ATTR;

/** Fields of a query of an IA's attributes. */
typedef DAT_UINT64 DAT_IA_ATTR_MASK;
#define DAT_IA_FIELD_IA_ADAPTER_NAME	UINT64_C(0x1)
#define DAT_IA_FIELD_IA_VENDOR_NAME	UINT64_C(0x2)
#define DAT_IA_FIELD_IA_HARDWARE_MAJOR_VERSION	UINT64_C(0x4)
#define DAT_IA_FIELD_IA_HARDWARE_MINOR_VERSION	UINT64_C(0x8)
#define DAT_IA_FIELD_IA_FIRMWARE_MAJOR_VERSION	UINT64_C(0x10)
#define DAT_IA_FIELD_IA_FIRMWARE_MINOR_VERSION	UINT64_C(0x20)
#define DAT_IA_FIELD_IA_ADDRESS_PTR	UINT64_C(0x40)
#define DAT_IA_FIELD_IA_MAX_EPS	UINT64_C(0x80)
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP	UINT64_C(0x100)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN	UINT64_C(0x200)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT	UINT64_C(0x400)
#define DAT_IA_FIELD_IA_MAX_EVDS	UINT64_C(0x800)
#define DAT_IA_FIELD_IA_MAX_EVD_QLEN	UINT64_C(0x1000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO	UINT64_C(0x2000)
#define DAT_IA_FIELD_IA_MAX_LMRS	UINT64_C(0x4000)
#define DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE	UINT64_C(0x8000)
#define DAT_IA_FIELD_IA_MAX_LMR_VIRTUAL_ADDRESS	UINT64_C(0x10000)
#define DAT_IA_FIELD_IA_MAX_PZS	UINT64_C(0x20000)
#define DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE	UINT64_C(0x40000)
#define DAT_IA_FIELD_IA_MAX_RDMA_SIZE	UINT64_C(0x80000)
#define DAT_IA_FIELD_IA_MAX_RMRS	UINT64_C(0x100000)
#define DAT_IA_FIELD_IA_MAX_RMR_TARGET_ADDRESS	UINT64_C(0x200000)
#define DAT_IA_FIELD_IA_MAX_SRQS	UINT64_C(0x400000)
#define DAT_IA_FIELD_IA_MAX_EP_PER_SRQ	UINT64_C(0x800000)
#define DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ	UINT64_C(0x1000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ	UINT64_C(0x2000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE	UINT64_C(0x4000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_IN	UINT64_C(0x8000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_OUT	UINT64_C(0x10000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED	UINT64_C(0x20000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED	UINT64_C(0x40000000)
#define DAT_IA_FIELD_IA_ZB_SUPPORTED	UINT64_C(0x80000000)
#define DAT_IA_FIELD_IA_EXTENSIONS_SUPPORTED	UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_EXTENSION_VERSION	UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR	UINT64_C(0x400000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR	UINT64_C(0x800000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR	UINT64_C(0x1000000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR	UINT64_C(0x2000000000)
#define DAT_IA_FIELD_NONE	UINT64_C(0x0)
#define DAT_IA_FIELD_ALL	UINT64_C(0x3fffffffff)
/** Other names of fields. */
#define DAT_IA_FIELD_IA_EXTENSION	UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_MAX_MTU_SIZE	DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE
#define DAT_IA_ALL			DAT_IA_FIELD_ALL

/** Whether a provider changes the segments of a DTO after the call that posts it. */
typedef enum dat_iov_ownership {
	DAT_IOV_CONSUMER = 0,
	DAT_IOV_PROVIDER_NOMOD = 1,
	DAT_IOV_PROVIDER_MOD = 2,
} DAT_IOV_OWNERSHIP;

/** Whether Endpoints of a PSP come from the consumer. */
typedef enum dat_ep_creator_for_psp {
	DAT_PSP_CREATES_EP_NEVER = 0,
	DAT_PSP_CREATES_EP_IFASKED = 1,
	DAT_PSP_CREATES_EP_ALWAYS = 2,
} DAT_EP_CREATOR_FOR_PSP;

/** Whether a Protection Zone belongs to one adapter. */
typedef enum dat_pz_support {
	DAT_PZ_UNIQUE = 0,
	DAT_PZ_SHAREABLE = 1,
} DAT_PZ_SUPPORT;

/** Distribution of a connection's traffic over paths. */
typedef DAT_UINT32 DAT_HA_LB;
#define DAT_HA_LB_NONE		((DAT_HA_LB)0)
#define DAT_HA_LB_INTERCOMM	((DAT_HA_LB)1)
#define DAT_HA_LB_INTRACOMM	((DAT_HA_LB)2)

/** Attributes of a provider: what the implementation allows. */
typedef struct dat_provider_attr {
	char provider_name[256];
	DAT_UINT32 provider_version_major;
	DAT_UINT32 provider_version_minor;
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_MEM_TYPE lmr_mem_types_supported;
	DAT_IOV_OWNERSHIP iov_ownership_on_return;
	DAT_QOS dat_qos_supported;
	DAT_COMPLETION_FLAGS completion_flags_supported;
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size;	/* bytes that each kind of message can carry */
	DAT_BOOLEAN supports_multipath;
	DAT_EP_CREATOR_FOR_PSP ep_creator;
	DAT_PZ_SUPPORT pz_support;
	DAT_UINT32 optimal_buffer_alignment;
	DAT_BOOLEAN evd_stream_merging_supported[6][6];	/* by stream, as bits of DAT_EVD_FLAGS */
	DAT_BOOLEAN srq_supported;
	DAT_COUNT srq_watermarks_supported;
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	DAT_COUNT srq_info_supported;
	DAT_COUNT ep_recv_info_supported;
	DAT_BOOLEAN lmr_sync_req;
	DAT_BOOLEAN dto_async_return_guaranteed;
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
	DAT_BOOLEAN rdma_read_lmr_rmr_context_exposure;
	DAT_RMR_SCOPE rmr_scope_supported;
	DAT_BOOLEAN is_signal_safe;
	DAT_BOOLEAN ha_supported;
	DAT_HA_LB ha_loadbalancing;
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
} DAT_PROVIDER_ATTR;

/** Fields of a query of a provider's attributes. */
typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;
#define DAT_PROVIDER_FIELD_PROVIDER_NAME	UINT64_C(0x1)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR	UINT64_C(0x2)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR	UINT64_C(0x4)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR	UINT64_C(0x8)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR	UINT64_C(0x10)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED	UINT64_C(0x20)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP	UINT64_C(0x40)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED	UINT64_C(0x80)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED	UINT64_C(0x100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE	UINT64_C(0x200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE	UINT64_C(0x400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH	UINT64_C(0x800)
#define DAT_PROVIDER_FIELD_EP_CREATOR	UINT64_C(0x1000)
#define DAT_PROVIDER_FIELD_PZ_SUPPORT	UINT64_C(0x2000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT	UINT64_C(0x4000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED	UINT64_C(0x8000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED	UINT64_C(0x10000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED	UINT64_C(0x20000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED	UINT64_C(0x40000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED	UINT64_C(0x80000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED	UINT64_C(0x100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ	UINT64_C(0x200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED	UINT64_C(0x400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ	UINT64_C(0x800000)
#define DAT_PROVIDER_FIELD_RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE	UINT64_C(0x1000000)
#define DAT_PROVIDER_FIELD_RMR_SCOPE_SUPPORTED	UINT64_C(0x2000000)
#define DAT_PROVIDER_FIELD_IS_SIGNAL_SAFE	UINT64_C(0x4000000)
#define DAT_PROVIDER_FIELD_HA_SUPPORTED	UINT64_C(0x8000000)
#define DAT_PROVIDER_FIELD_HA_LB	UINT64_C(0x10000000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x20000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x40000000)
#define DAT_PROVIDER_FIELD_NONE	UINT64_C(0x0)
#define DAT_PROVIDER_FIELD_ALL	UINT64_C(0x7fffffff)

/** Services of a connection. kDAPL has reliable connections. */
typedef enum dat_service_type {
	DAT_SERVICE_TYPE_RC = 0,
	DAT_SERVICE_TYPE_EXTENSION_BASE = 1,
} DAT_SERVICE_TYPE;

/**
 * Attributes of an Endpoint. A size of 0 asks for a default. The provider-specific ones are
 * KDAPL_PEER_TIMEOUT_MS, after which a peer that does not answer makes the connection BROKEN, and
 * KDAPL_KEEPALIVE_MS, the same for an idle connection whose peer is silent: milliseconds, or none.
 * A query returns both; an Endpoint without them has the module's parameters of these names.
 */
typedef struct dat_ep_attr {
	DAT_SERVICE_TYPE service_type;
	DAT_SEG_LENGTH max_message_size;
	DAT_SEG_LENGTH max_rdma_size;
	DAT_QOS qos;
	DAT_COMPLETION_FLAGS recv_completion_flags;
	DAT_COMPLETION_FLAGS request_completion_flags;
	DAT_COUNT max_recv_dtos;	/* receives that may be outstanding */
	DAT_COUNT max_request_dtos;	/* other DTOs that may be outstanding */
	DAT_COUNT max_recv_iov;
	DAT_COUNT max_request_iov;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_COUNT srq_soft_hw;
	DAT_COUNT max_rdma_read_iov;
	DAT_COUNT max_rdma_write_iov;
	DAT_COUNT ep_transport_specific_count;
	DAT_NAMED_ATTR *ep_transport_specific;
	DAT_COUNT ep_provider_specific_count;
	DAT_NAMED_ATTR *ep_provider_specific;
} DAT_EP_ATTR;

#define DAT_WATERMARK_INFINITE	((DAT_COUNT)~0)
#define DAT_HW_DEFAULT		DAT_WATERMARK_INFINITE
#define DAT_SRQ_LW_DEFAULT	0

/** Attributes of a Shared Receive Queue. */
typedef struct dat_srq_attr {
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
} DAT_SRQ_ATTR;

/** Relations of two adapters. */
typedef enum dat_ha_relationship {
	DAT_HA_FALSE = 0,
	DAT_HA_TRUE = 1,
	DAT_HA_UNKNOWN = 2,
	DAT_HA_CONFLICTING = 3,
	DAT_HA_EXTENSION_BASE = 4,
} DAT_HA_RELATIONSHIP;

/** A name that dat_ia_open() takes. */
typedef struct dat_provider_info {
	char ia_name[256];
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_BOOLEAN is_thread_safe;
} DAT_PROVIDER_INFO;
