/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Tracepoints of Endpoints.
 *
 * Operations, statuses and states are passed as names, with their length and without a NUL. The
 * only list of these names is in rust/model/trace/.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kdapl

#if !defined(_KDAPL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KDAPL_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(kdapl_ep_post,
	TP_PROTO(u64 ep, u32 qp, const char *operation, u32 operation_len, u32 slot, u64 cookie,
		 u64 length),
	TP_ARGS(ep, qp, operation, operation_len, slot, cookie, length),
	TP_STRUCT__entry(
		__field(u64, ep)
		__field(u64, cookie)
		__field(u64, length)
		__field(u32, qp)
		__field(u32, slot)
		__string_len(operation, operation, operation_len)
	),
	TP_fast_assign(
		__entry->ep = ep;
		__entry->cookie = cookie;
		__entry->length = length;
		__entry->qp = qp;
		__entry->slot = slot;
		__assign_str(operation);
	),
	TP_printk("ep=0x%llx qp=%u operation=%s slot=%u cookie=0x%llx length=%llu",
		  __entry->ep, __entry->qp, __get_str(operation), __entry->slot, __entry->cookie,
		  __entry->length)
);

TRACE_EVENT(kdapl_ep_complete,
	TP_PROTO(u64 ep, u32 qp, const char *operation, u32 operation_len, const char *status,
		 u32 status_len, u32 slot, u64 cookie, u64 length),
	TP_ARGS(ep, qp, operation, operation_len, status, status_len, slot, cookie, length),
	TP_STRUCT__entry(
		__field(u64, ep)
		__field(u64, cookie)
		__field(u64, length)
		__field(u32, qp)
		__field(u32, slot)
		__string_len(operation, operation, operation_len)
		__string_len(status, status, status_len)
	),
	TP_fast_assign(
		__entry->ep = ep;
		__entry->cookie = cookie;
		__entry->length = length;
		__entry->qp = qp;
		__entry->slot = slot;
		__assign_str(operation);
		__assign_str(status);
	),
	TP_printk("ep=0x%llx qp=%u operation=%s status=%s slot=%u cookie=0x%llx length=%llu",
		  __entry->ep, __entry->qp, __get_str(operation), __get_str(status),
		  __entry->slot, __entry->cookie, __entry->length)
);

TRACE_EVENT(kdapl_ep_state,
	TP_PROTO(u64 ep, u32 qp, const char *from, u32 from_len, const char *cause, u32 cause_len,
		 const char *to, u32 to_len),
	TP_ARGS(ep, qp, from, from_len, cause, cause_len, to, to_len),
	TP_STRUCT__entry(
		__field(u64, ep)
		__field(u32, qp)
		__string_len(from, from, from_len)
		__string_len(cause, cause, cause_len)
		__string_len(to, to, to_len)
	),
	TP_fast_assign(
		__entry->ep = ep;
		__entry->qp = qp;
		__assign_str(from);
		__assign_str(cause);
		__assign_str(to);
	),
	TP_printk("ep=0x%llx qp=%u from=%s cause=%s to=%s", __entry->ep, __entry->qp,
		  __get_str(from), __get_str(cause), __get_str(to))
);

#endif /* _KDAPL_TRACE_H */

/* define_trace.h includes this file again and finds it through the include path. */
#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE kdapl_trace
#include <trace/define_trace.h>
