/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Inline functions and macros of the kernel that kdapl_nvme.ko needs. */
#ifndef KDAPL_NVME_HELPERS_H
#define KDAPL_NVME_HELPERS_H

#include <linux/blk_types.h>

struct __kernel_sockaddr_storage;
struct delayed_work;
struct nvme_ctrl;
struct nvmf_ctrl_options;
struct request;
struct scatterlist;
struct work_struct;

/* Results of queue_rq. */
enum {
	KDAPL_NVME_OK = (__force int)BLK_STS_OK,
	KDAPL_NVME_RESOURCE = (__force int)BLK_STS_RESOURCE,
};

/* Data of a request. */
struct kdapl_nvme_data {
	unsigned int segments;
	unsigned int bytes;
	bool is_write;
};

int kdapl_nvme_addresses(struct nvmf_ctrl_options *opts, struct __kernel_sockaddr_storage *to,
			 struct __kernel_sockaddr_storage *from);
int kdapl_nvme_source(const struct __kernel_sockaddr_storage *to,
		      struct __kernel_sockaddr_storage *from);
int kdapl_nvme_address_name(const struct __kernel_sockaddr_storage *address, char *name,
			    unsigned int size);

void kdapl_nvme_init_work(struct work_struct *work, void (*function)(struct work_struct *));
void kdapl_nvme_init_delayed_work(struct delayed_work *work,
				  void (*function)(struct work_struct *));
void kdapl_nvme_queue_reset_work(struct work_struct *work);
void kdapl_nvme_queue_delayed_work(struct delayed_work *work, unsigned int seconds);

unsigned long kdapl_nvme_virt_boundary(struct nvme_ctrl *ctrl, bool is_admin);
unsigned int kdapl_nvme_nr_io_queues(struct nvmf_ctrl_options *opts);

bool kdapl_nvme_check_ready(struct nvme_ctrl *ctrl, struct request *rq, bool is_live);
void kdapl_nvme_start_request(struct request *rq);
unsigned int kdapl_nvme_noio_save(void);
void kdapl_nvme_noio_restore(unsigned int flags);
u16 kdapl_nvme_cid(struct request *rq);
bool kdapl_nvme_is_passthrough(struct request *rq);
struct kdapl_nvme_data kdapl_nvme_data(struct request *rq);
int kdapl_nvme_map(struct request *rq, struct scatterlist *list);
u64 kdapl_nvme_sg_virt(struct scatterlist *list);
bool kdapl_nvme_copy_data(struct request *rq, void *to, unsigned int size);
bool kdapl_nvme_is_lost(struct request *rq);
bool kdapl_nvme_try_complete(struct request *rq, u16 status, u64 result);
void kdapl_nvme_fail_path(struct request *rq);
void kdapl_nvme_timed_out(struct request *rq);
void kdapl_nvme_reconnected(struct nvme_ctrl *ctrl);
void kdapl_nvme_auth_stop(struct nvme_ctrl *ctrl);
void kdapl_nvme_async_event(struct nvme_ctrl *ctrl, u16 status, u64 result);

#endif
