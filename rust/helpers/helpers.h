/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * C helpers for static inline functions and macros, which Rust cannot call. bindgen generates
 * bindings for this header, and gcc checks the definitions against it.
 */
#ifndef _KDAPL_HELPERS_H
#define _KDAPL_HELPERS_H

#include <linux/if.h>
#include <linux/socket.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>
#include <rdma/kdapl.h>

struct __genradix;
struct cred;
struct dentry;
struct eventfd_ctx;
struct file;
struct ib_cq;
struct ib_device;
struct ib_pd;
struct ib_qp;
struct ib_qp_attr;
struct ib_recv_wr;
struct ib_send_wr;
struct ib_wc;
struct io_uring_cmd;
struct kiocb;
struct mem_cgroup;
struct net;
struct page;
struct pid;
struct poll_table_struct;
struct rcu_work;
struct rdma_cgroup;
struct scatterlist;
struct task_struct;
struct timer_list;
struct user_namespace;
struct wait_queue_entry;
struct wait_queue_head;
struct work_struct;
struct workqueue_struct;

/* cgroup.c */
int kdapl_helper_rdmacg_charge(struct ib_device *dev, bool handle, struct rdma_cgroup **cg);
void kdapl_helper_rdmacg_uncharge(struct ib_device *dev, bool handle, struct rdma_cgroup *cg);

/* dma.c */
#define KDAPL_ACCESS_NONE	0U
#define KDAPL_ACCESS_READ	1U
#define KDAPL_ACCESS_WRITE	2U
struct page *kdapl_helper_page_at(const void *start);
struct page *kdapl_helper_page_of(u64 address);
const void *kdapl_helper_page_address(const struct page *page);
bool kdapl_helper_is_scattered(const void *start);
u32 kdapl_helper_access_to_range(const void *start, const void *end);
u32 kdapl_helper_access_to_pages(struct page *page, u64 offset, u64 length);
const struct scatterlist *kdapl_helper_sg_entry(const struct scatterlist *sg, struct page **page,
						u32 *offset, u32 *length);
int kdapl_helper_dma_map(struct ib_device *dev, struct page *page, u64 offset, size_t length,
			 bool write, u64 *address);
void kdapl_helper_dma_unmap(struct ib_device *dev, u64 address, size_t length, bool write);

/* eventfd.c */
void kdapl_helper_eventfd_signal(struct eventfd_ctx *ctx);

/* poll.c */
void kdapl_helper_poll_wait(struct file *file, struct wait_queue_head *head,
			    struct poll_table_struct *table);
void kdapl_helper_make_stream(struct file *file);
bool kdapl_helper_iocb_may_wait(const struct kiocb *iocb);

/* mapped_posts.c */
u32 kdapl_helper_mapped_post_delay_us(void);

/* memcg.c */
struct mem_cgroup *kdapl_helper_get_current_memcg(void);
void kdapl_helper_put_memcg(struct mem_cgroup *memcg);
struct mem_cgroup *kdapl_helper_set_active_memcg(struct mem_cgroup *memcg);

/* module.c */
void kdapl_helper_stay_loaded(void);

/* pin.c */
s64 kdapl_helper_may_pin(u64 start, u64 length);
u64 kdapl_helper_machine_pages(void);

/* process.c */
#define KDAPL_COMM_LEN	16
struct pid *kdapl_helper_current_process(void);
void kdapl_helper_put_pid(struct pid *pid);
u32 kdapl_helper_pid_number(struct pid *pid);
void kdapl_helper_current_comm(u8 comm[KDAPL_COMM_LEN]);
u32 kdapl_helper_uid_number(const struct cred *cred);

/* rcu.c */
void *kdapl_helper_tree_get(struct __genradix *tree, size_t index);
bool kdapl_helper_tree_set(struct __genradix *tree, size_t index, void *pointer);
void *kdapl_helper_tree_take(struct __genradix *tree, size_t index);
void *kdapl_helper_tree_take_next(struct __genradix *tree, size_t *index);
void kdapl_helper_queue_rcu_work(struct workqueue_struct *queue, struct rcu_work *work,
				 void (*function)(struct work_struct *work));
bool kdapl_helper_may_sleep(void);
bool kdapl_helper_in_interrupt(void);

/* self_path.c */
int kdapl_helper_path_to_self(struct ib_device *dev, u32 port, struct ib_qp_attr *attr);

/* umem.c */
struct ib_umem *kdapl_helper_umem_get(struct ib_device *dev, u64 start, u64 length, int access);

/* uring.c */

/* The command posts completions until it ends. */
#define KDAPL_URING_MULTISHOT		0x01U
/* The command names a registered buffer. */
#define KDAPL_URING_FIXED_BUFFER	0x02U
/* The command must not sleep for long. */
#define KDAPL_URING_NONBLOCK		0x04U
/* The caller does not hold the lock of the ring. */
#define KDAPL_URING_UNLOCKED		0x08U
/* Completions of the ring are found by polling the device. */
#define KDAPL_URING_POLLED_RING		0x10U

/* A command of io_uring, while it is being issued. */
struct kdapl_uring_command {
	/* Identifies the ring. */
	u64 ring;
	u64 user_data;
	u64 message;
	u64 reserved;
	u32 op;
	u32 buffer_group;
	u64 flags;
};

/* A provided buffer that was selected. */
struct kdapl_uring_buffer {
	u64 address;
	u64 length;
	u64 list;
	u64 id;
};

/* Runs a pending command in the task that has submitted it; @cancel: it may only be cancelled. */
typedef void (*kdapl_uring_run_t)(void *pending, unsigned int issue_flags, bool cancel);

bool kdapl_helper_uring_is_cancel(unsigned int issue_flags);
struct file *kdapl_helper_uring_file(struct io_uring_cmd *cmd);
void kdapl_helper_uring_describe(struct io_uring_cmd *cmd, unsigned int issue_flags,
				 struct kdapl_uring_command *to);
void *kdapl_helper_uring_pending(struct io_uring_cmd *cmd);
void kdapl_helper_uring_make_pending(struct io_uring_cmd *cmd, unsigned int issue_flags,
				     void *pending, kdapl_uring_run_t run);
void kdapl_helper_uring_end_cancels(struct io_uring_cmd *cmd);
void kdapl_helper_uring_run_in_task(struct io_uring_cmd *cmd);
void kdapl_helper_uring_done(struct io_uring_cmd *cmd, s32 result, unsigned int issue_flags);
int kdapl_helper_uring_select(struct io_uring_cmd *cmd, u16 group, unsigned int issue_flags,
			      struct kdapl_uring_buffer *to);
bool kdapl_helper_uring_post(struct io_uring_cmd *cmd, const struct kdapl_uring_buffer *buffer,
			     size_t bytes, unsigned int issue_flags);

/* user.c */
enum kdapl_limit {
	KDAPL_LIMIT_ADAPTERS,
	KDAPL_LIMIT_OBJECTS,
	KDAPL_LIMIT_SERVICE_POINTS,
	KDAPL_LIMIT_QUEUE_PAIRS,
	KDAPL_LIMIT_DEVICE_SHARE,
	KDAPL_LIMIT_DRIVER_MEMORY_KB,
	KDAPL_LIMIT_MODULE_MEMORY_KB,
	KDAPL_LIMIT_PINNED_MEMORY_KB,
	KDAPL_LIMIT_PORT_SHARE,
};

u32 kdapl_helper_user_limit(enum kdapl_limit limit);
u64 kdapl_helper_current_user(struct user_namespace **held);
void kdapl_helper_put_user_ns(struct user_namespace *ns);
bool kdapl_helper_is_unlimited(void);
const struct cred *kdapl_helper_become_kernel(void);
void kdapl_helper_become_self(const struct cred *own);

/* fast_mr.c */
int kdapl_helper_map_umem(struct ib_mr *mr, struct ib_umem *umem, u64 offset, u64 length, u64 iova);
struct scatterlist *kdapl_helper_new_dma_list(int count);
void kdapl_helper_set_dma_segment(struct scatterlist *list, int index, u64 address, u32 length);
int kdapl_helper_map_dma_list(struct ib_mr *mr, struct scatterlist *list, int count, u64 length,
			      u64 iova);

/* dma_pages.c */
struct scatterlist;
#define KDAPL_PAGES_VIRTUAL	0
#define KDAPL_PAGES_PHYSICAL	1
#define KDAPL_PAGES_SCATTERLIST	2
#define KDAPL_PAGES_BVECS	3
int kdapl_helper_sg_fill(struct scatterlist *list, u32 capacity, u32 kind, u64 source, u32 count,
			 bool write, u64 *first, u64 *bytes);
u32 kdapl_helper_sg_map(struct ib_device *dev, struct scatterlist *list, u32 count, bool write);
bool kdapl_helper_sg_is_shared(struct ib_device *dev, struct scatterlist *list, u32 segments);
void kdapl_helper_sg_unmap(struct ib_device *dev, struct scatterlist *list, u32 count, bool write);
void kdapl_helper_update_fast_reg_key(struct ib_mr *mr, u32 key);

/* lock.c */
unsigned long kdapl_helper_spin_lock_irqsave(spinlock_t *lock);
void kdapl_helper_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags);
bool kdapl_helper_spin_trylock_irqsave(spinlock_t *lock, unsigned long *flags);

/* task.c */
bool kdapl_helper_may_raw_io(void);
bool kdapl_helper_is_killed(void);
bool kdapl_helper_is_ending(void);
bool kdapl_helper_is_kernel_thread(void);
void kdapl_helper_cond_resched(void);
unsigned int kdapl_helper_begin_noio(void);
void kdapl_helper_end_noio(unsigned int flags);

/* uaccess.c */
bool kdapl_helper_can_write_back(void __user *to, const void *message, size_t size);
bool kdapl_helper_can_write(void __user *to, size_t size);

/* wait.c */
bool kdapl_helper_wq_has_sleeper(struct wait_queue_head *wq);
bool kdapl_helper_waitqueue_active(struct wait_queue_head *wq);
void kdapl_helper_init_wait_entry_func(struct wait_queue_entry *entry,
				       int (*function)(struct wait_queue_entry *entry,
						       unsigned int mode, int flags, void *key));
void kdapl_helper_init_waitqueue_head(struct wait_queue_head *wq, const char *name,
				      struct lock_class_key *key);
void kdapl_helper_prepare_to_rcuwait(struct rcuwait *wait);
bool kdapl_helper_set_interruptible(void);
void kdapl_helper_timer_setup(struct timer_list *timer, void (*function)(struct timer_list *));
unsigned long kdapl_helper_jiffies(void);
s64 kdapl_helper_monotonic_offset(void);

/* fault.c */
void kdapl_helper_create_fault_knobs(struct dentry *folder);
void kdapl_helper_forget_fault_knobs(void);
bool kdapl_helper_fails_kvmalloc(size_t size);

/* workqueue.c */
struct workqueue_struct *kdapl_helper_alloc_workqueue(const char *name, bool reclaim, int most);
struct workqueue_struct *kdapl_helper_alloc_percpu_workqueue(const char *name);
struct workqueue_struct *kdapl_helper_alloc_bh_workqueue(const char *name);
void kdapl_helper_call_in_worker(struct workqueue_struct *queue, void (*call)(void *data),
				 void *data);
unsigned long kdapl_helper_percpu_period(void);
void kdapl_helper_await_percpu_period(struct workqueue_struct *queue, unsigned long begun);

/* net.c */
struct net *kdapl_helper_current_net(void);
struct net *kdapl_helper_get_net(struct net *net);
struct net *kdapl_helper_maybe_get_net(struct net *net);
void kdapl_helper_put_net(struct net *net);
bool kdapl_helper_net_admin(struct net *net);
void kdapl_helper_local_ports(struct net *net, u16 *first, u16 *last);

/* thread.c */
int kdapl_helper_thread_run(const char *name, void (*run)(void *data), void *data);
void kdapl_helper_thread_interrupt(struct task_struct *task);
void kdapl_helper_run_as(struct net *net, const struct cred *cred, void (*run)(void *data),
			 void *data);
const struct cred *kdapl_helper_current_cred(void);

/* verbs.c */
int kdapl_helper_ib_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc);
int kdapl_helper_ib_req_notify_cq(struct ib_cq *cq, unsigned int flags);
int kdapl_helper_ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr);
int kdapl_helper_ib_post_send_chain(struct ib_qp *qp, const struct ib_send_wr *wr,
				    const struct ib_send_wr **bad_wr);
int kdapl_helper_ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr);
int kdapl_helper_ib_post_recv_chain(struct ib_qp *qp, const struct ib_recv_wr *wr,
				    const struct ib_recv_wr **bad_wr);
int kdapl_helper_ib_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr);
bool kdapl_helper_has_srqs(const struct ib_device *dev);
bool kdapl_helper_pd_is_used(const struct ib_pd *pd);
u32 kdapl_helper_device_transport(const struct ib_device *dev, u32 port);
u64 kdapl_helper_device_guid(const struct ib_device *dev);
void kdapl_helper_warn_port_taken(struct ib_device *dev, u16 port);

/* address.c */

/* An address through which a port of an RDMA device can be reached. */
struct kdapl_port_address {
	struct kdapl_sockaddr addr;
	u8 netdev[IFNAMSIZ];
	u32 ifindex;
	/* Bits of the address that name its network. */
	u32 prefix;
	/* The network device is above that of the port, such as a VLAN. */
	u32 is_upper;
};

size_t kdapl_helper_port_addresses(struct ib_device *dev, u32 port, struct net *net,
				   struct kdapl_port_address *to, size_t room);
bool kdapl_helper_port_netdev(struct ib_device *dev, u32 port, struct net *net, char *name,
			      size_t size);
void kdapl_helper_ports(const struct ib_device *dev, u32 *first, u32 *last);

/* Errnos that the kernel crate lacks. */
enum {
	KDAPL_EOPNOTSUPP = EOPNOTSUPP,
	KDAPL_EADDRNOTAVAIL = EADDRNOTAVAIL,
	KDAPL_ECANCELED = ECANCELED,
};

/*
 * The ioctl numbers as enumerators. bindgen cannot evaluate _IOWR(), a macro with a sizeof, but it
 * can evaluate an enumerator.
 */
enum kdapl_ioctl {
	KDAPL_IOC_DEVICE_GET = KDAPL_DEVICE_GET,
	KDAPL_IOC_IA_OPEN = KDAPL_IA_OPEN,
	KDAPL_IOC_IA_QUERY = KDAPL_IA_QUERY,
	KDAPL_IOC_IA_CLOSE = KDAPL_IA_CLOSE,
	KDAPL_IOC_PORT_GET = KDAPL_PORT_GET,
	KDAPL_IOC_IA_STAT = KDAPL_IA_STAT,
	KDAPL_IOC_PZ_CREATE = KDAPL_PZ_CREATE,
	KDAPL_IOC_PZ_FREE = KDAPL_PZ_FREE,
	KDAPL_IOC_EVD_CREATE = KDAPL_EVD_CREATE,
	KDAPL_IOC_EVD_FREE = KDAPL_EVD_FREE,
	KDAPL_IOC_EVD_QUERY = KDAPL_EVD_QUERY,
	KDAPL_IOC_EVD_WAIT = KDAPL_EVD_WAIT,
	KDAPL_IOC_EVD_DEQUEUE = KDAPL_EVD_DEQUEUE,
	KDAPL_IOC_EVD_POST_SE = KDAPL_EVD_POST_SE,
	KDAPL_IOC_EVD_MODIFY_CNO = KDAPL_EVD_MODIFY_CNO,
	KDAPL_IOC_EVD_ENABLE = KDAPL_EVD_ENABLE,
	KDAPL_IOC_EVD_DISABLE = KDAPL_EVD_DISABLE,
	KDAPL_IOC_EVD_SET_UNWAITABLE = KDAPL_EVD_SET_UNWAITABLE,
	KDAPL_IOC_EVD_CLEAR_UNWAITABLE = KDAPL_EVD_CLEAR_UNWAITABLE,
	KDAPL_IOC_EVD_RESIZE = KDAPL_EVD_RESIZE,
	KDAPL_IOC_EVD_FD = KDAPL_EVD_FD,
	KDAPL_IOC_CNO_CREATE = KDAPL_CNO_CREATE,
	KDAPL_IOC_URING_CANCEL = KDAPL_URING_CANCEL,
	KDAPL_IOC_URING_STREAM = KDAPL_URING_STREAM,
	KDAPL_IOC_CNO_FREE = KDAPL_CNO_FREE,
	KDAPL_IOC_CNO_QUERY = KDAPL_CNO_QUERY,
	KDAPL_IOC_CNO_WAIT = KDAPL_CNO_WAIT,
	KDAPL_IOC_CNO_TRIGGER = KDAPL_CNO_TRIGGER,
	KDAPL_IOC_CNO_MODIFY_AGENT = KDAPL_CNO_MODIFY_AGENT,
	KDAPL_IOC_CNO_FD = KDAPL_CNO_FD,
	KDAPL_IOC_EP_CREATE = KDAPL_EP_CREATE,
	KDAPL_IOC_EP_FREE = KDAPL_EP_FREE,
	KDAPL_IOC_EP_QUERY = KDAPL_EP_QUERY,
	KDAPL_IOC_EP_GET_STATUS = KDAPL_EP_GET_STATUS,
	KDAPL_IOC_EP_CONNECT = KDAPL_EP_CONNECT,
	KDAPL_IOC_EP_DISCONNECT = KDAPL_EP_DISCONNECT,
	KDAPL_IOC_EP_PRIVATE_DATA = KDAPL_EP_PRIVATE_DATA,
	KDAPL_IOC_EP_POST = KDAPL_EP_POST,
	KDAPL_IOC_EP_SUBMIT = KDAPL_EP_SUBMIT,
	KDAPL_IOC_EP_SET_WATERMARK = KDAPL_EP_SET_WATERMARK,
	KDAPL_IOC_EP_RECV_QUERY = KDAPL_EP_RECV_QUERY,
	KDAPL_IOC_EP_READY = KDAPL_EP_READY,
	KDAPL_IOC_EP_MODIFY = KDAPL_EP_MODIFY,
	KDAPL_IOC_EP_RESET = KDAPL_EP_RESET,
	KDAPL_IOC_EP_DUP_CONNECT = KDAPL_EP_DUP_CONNECT,
	KDAPL_IOC_EP_COMMON_CONNECT = KDAPL_EP_COMMON_CONNECT,
	KDAPL_IOC_PSP_CREATE = KDAPL_PSP_CREATE,
	KDAPL_IOC_PSP_FREE = KDAPL_PSP_FREE,
	KDAPL_IOC_PSP_QUERY = KDAPL_PSP_QUERY,
	KDAPL_IOC_RSP_CREATE = KDAPL_RSP_CREATE,
	KDAPL_IOC_RSP_FREE = KDAPL_RSP_FREE,
	KDAPL_IOC_RSP_QUERY = KDAPL_RSP_QUERY,
	KDAPL_IOC_CSP_CREATE = KDAPL_CSP_CREATE,
	KDAPL_IOC_CSP_FREE = KDAPL_CSP_FREE,
	KDAPL_IOC_CSP_QUERY = KDAPL_CSP_QUERY,
	KDAPL_IOC_CR_QUERY = KDAPL_CR_QUERY,
	KDAPL_IOC_CR_ACCEPT = KDAPL_CR_ACCEPT,
	KDAPL_IOC_CR_REJECT = KDAPL_CR_REJECT,
	KDAPL_IOC_CR_HANDOFF = KDAPL_CR_HANDOFF,
	KDAPL_IOC_LMR_CREATE = KDAPL_LMR_CREATE,
	KDAPL_IOC_LMR_FREE = KDAPL_LMR_FREE,
	KDAPL_IOC_LMR_QUERY = KDAPL_LMR_QUERY,
	KDAPL_IOC_RMR_CREATE = KDAPL_RMR_CREATE,
	KDAPL_IOC_RMR_FREE = KDAPL_RMR_FREE,
	KDAPL_IOC_RMR_BIND = KDAPL_RMR_BIND,
	KDAPL_IOC_RMR_QUERY = KDAPL_RMR_QUERY,
	KDAPL_IOC_SRQ_CREATE = KDAPL_SRQ_CREATE,
	KDAPL_IOC_SRQ_FREE = KDAPL_SRQ_FREE,
	KDAPL_IOC_SRQ_POST_RECV = KDAPL_SRQ_POST_RECV,
	KDAPL_IOC_SRQ_QUERY = KDAPL_SRQ_QUERY,
	KDAPL_IOC_SRQ_RESIZE = KDAPL_SRQ_RESIZE,
	KDAPL_IOC_SRQ_SET_LW = KDAPL_SRQ_SET_LW,
};

#endif /* _KDAPL_HELPERS_H */
