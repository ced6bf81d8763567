// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Inline functions and macros of the kernel, as functions for Rust. */
#include <linux/blk-mq.h>
#include <linux/bvec.h>
#include <linux/inet.h>
#include <linux/net.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "nvme.h"
#include "fabrics.h"
#include "helpers.h"

/*
 * Parses the addresses of the options. Without trsvcid the port is the one of NVMe, and without
 * host_traddr the family of @from is AF_UNSPEC.
 */
int kdapl_nvme_addresses(struct nvmf_ctrl_options *opts, struct __kernel_sockaddr_storage *to,
			 struct __kernel_sockaddr_storage *from)
{
	int ret;

	if (!(opts->mask & NVMF_OPT_TRSVCID)) {
		opts->trsvcid = kstrdup("4420", GFP_KERNEL);
		if (!opts->trsvcid)
			return -ENOMEM;
		opts->mask |= NVMF_OPT_TRSVCID;
	}
	ret = inet_pton_with_scope(&init_net, AF_UNSPEC, opts->traddr, opts->trsvcid, to);
	from->ss_family = AF_UNSPEC;
	if (!ret && opts->mask & NVMF_OPT_HOST_TRADDR)
		ret = inet_pton_with_scope(&init_net, AF_UNSPEC, opts->host_traddr, NULL, from);
	return ret;
}

/* Returns the source address that the routes select for a destination. */
int kdapl_nvme_source(const struct __kernel_sockaddr_storage *to,
		      struct __kernel_sockaddr_storage *from)
{
	struct socket *sock;
	int ret;

	ret = sock_create_kern(&init_net, to->ss_family, SOCK_DGRAM, 0, &sock);
	if (ret)
		return ret;
	/* Connecting a datagram socket sends nothing. */
	ret = kernel_connect(sock, (struct sockaddr_unsized *)to, sizeof(*to), 0);
	if (!ret)
		ret = kernel_getsockname(sock, (struct sockaddr *)from);
	sock_release(sock);
	return ret < 0 ? ret : 0;
}

int kdapl_nvme_address_name(const struct __kernel_sockaddr_storage *address, char *name,
			    unsigned int size)
{
	return snprintf(name, size, "%pISc", address);
}

void kdapl_nvme_init_work(struct work_struct *work, void (*function)(struct work_struct *))
{
	INIT_WORK(work, function);
}

void kdapl_nvme_init_delayed_work(struct delayed_work *work,
				  void (*function)(struct work_struct *))
{
	INIT_DELAYED_WORK(work, function);
}

void kdapl_nvme_queue_reset_work(struct work_struct *work)
{
	queue_work(nvme_reset_wq, work);
}

void kdapl_nvme_queue_delayed_work(struct delayed_work *work, unsigned int seconds)
{
	queue_delayed_work(nvme_wq, work, secs_to_jiffies(seconds));
}

unsigned long kdapl_nvme_virt_boundary(struct nvme_ctrl *ctrl, bool is_admin)
{
	return nvme_get_virt_boundary(ctrl, is_admin);
}

unsigned int kdapl_nvme_nr_io_queues(struct nvmf_ctrl_options *opts)
{
	return nvmf_nr_io_queues(opts);
}

bool kdapl_nvme_check_ready(struct nvme_ctrl *ctrl, struct request *rq, bool is_live)
{
	return nvme_check_ready(ctrl, rq, is_live);
}

void kdapl_nvme_start_request(struct request *rq)
{
	nvme_start_request(rq);
}

/* Allocations until the restore do not wait for I/O, which may be that of this disk. */
unsigned int kdapl_nvme_noio_save(void)
{
	return memalloc_noio_save();
}

void kdapl_nvme_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}

u16 kdapl_nvme_cid(struct request *rq)
{
	return nvme_cid(rq);
}

bool kdapl_nvme_is_passthrough(struct request *rq)
{
	return blk_rq_is_passthrough(rq);
}

struct kdapl_nvme_data kdapl_nvme_data(struct request *rq)
{
	unsigned int segments = blk_rq_nr_phys_segments(rq);

	return (struct kdapl_nvme_data){
		.segments = segments,
		.bytes = segments ? blk_rq_payload_bytes(rq) : 0,
		.is_write = rq_data_dir(rq) == WRITE,
	};
}

int kdapl_nvme_map(struct request *rq, struct scatterlist *list)
{
	return blk_rq_map_sg(rq, list);
}

u64 kdapl_nvme_sg_virt(struct scatterlist *list)
{
	return (uintptr_t)sg_virt(list);
}

static bool copy_bvec(struct bio_vec *bvec, void **to, unsigned int *left)
{
	if (bvec->bv_len > *left)
		return false;
	memcpy_from_bvec(*to, bvec);
	*to += bvec->bv_len;
	*left -= bvec->bv_len;
	return true;
}

/* Copies the data of a request, which must have @size bytes. */
bool kdapl_nvme_copy_data(struct request *rq, void *to, unsigned int size)
{
	struct req_iterator iter;
	struct bio_vec bvec;

	if (rq->rq_flags & RQF_SPECIAL_PAYLOAD)
		return copy_bvec(&rq->special_vec, &to, &size) && !size;
	rq_for_each_segment(bvec, rq, iter) {
		if (!copy_bvec(&bvec, &to, &size))
			return false;
	}
	return !size;
}

/* Returns whether fault injection loses the response to a request. */
bool kdapl_nvme_is_lost(struct request *rq)
{
	return blk_should_fake_timeout(rq->q);
}

/*
 * As nvme_try_complete_req(), which would ask for a lost response only now, when nobody else may
 * complete the request.
 */
bool kdapl_nvme_try_complete(struct request *rq, u16 status, u64 result)
{
	if (!(nvme_req(rq)->ctrl->quirks & NVME_QUIRK_SKIP_CID_GEN))
		nvme_req(rq)->genctr++;
	nvme_req(rq)->status = status >> 1;
	nvme_req(rq)->result.u64 = cpu_to_le64(result);
	nvme_should_fail(rq);
	return blk_mq_complete_request_remote(rq);
}

/* As nvme_host_path_error(), which also completes the request. */
void kdapl_nvme_fail_path(struct request *rq)
{
	nvme_req(rq)->status = NVME_SC_HOST_PATH_ERROR;
	blk_mq_set_request_complete(rq);
}

void kdapl_nvme_timed_out(struct request *rq)
{
	nvmf_complete_timed_out_request(rq);
}

/* An inline function that does nothing without CONFIG_NVME_HOST_AUTH. */
void kdapl_nvme_auth_stop(struct nvme_ctrl *ctrl)
{
	nvme_auth_stop(ctrl);
}

void kdapl_nvme_async_event(struct nvme_ctrl *ctrl, u16 status, u64 result)
{
	union nvme_result value = { .u64 = cpu_to_le64(result) };

	nvme_complete_async_event(ctrl, cpu_to_le16(status), &value);
}

/* Adds the attempts to connect to those of sysfs, and counts from 0 again. */
void kdapl_nvme_reconnected(struct nvme_ctrl *ctrl)
{
	atomic_long_add(ctrl->nr_reconnects, &ctrl->acc_reconnects);
	ctrl->nr_reconnects = 0;
}
