// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tracepoints of Endpoints: `kdapl:kdapl_ep_post`, `kdapl_ep_complete`, `kdapl_ep_state`.
//!
//! The kernel crate's `declare_trace!` looks up the tracepoint in the kernel's own bindings, so an
//! out-of-tree module cannot use it. The static key of a tracepoint can be used directly. A
//! disabled tracepoint is then a no-op in the instruction stream (on kernels with jump labels,
//! otherwise a load and a branch). It makes no call and builds no arguments.
//!
//! C header: `rust/helpers/kdapl_trace.h`

#[cfg(CONFIG_TRACEPOINTS)]
use kdapl_bindings as bindings;

/// Returns whether a tracepoint is enabled.
#[cfg(CONFIG_TRACEPOINTS)]
macro_rules! is_on {
    ($tracepoint:ident) => {{
        // SAFETY: The key is that of a tracepoint that `trace.c` defines.
        unsafe {
            kernel::jump_label::static_branch_unlikely!(
                bindings::$tracepoint,
                bindings::tracepoint,
                key
            )
        }
    }};
}

/// Returns false: a kernel without tracepoints never enables one.
#[cfg(not(CONFIG_TRACEPOINTS))]
macro_rules! is_on {
    ($tracepoint:ident) => {
        false
    };
}

/// Calls a tracepoint.
#[cfg(CONFIG_TRACEPOINTS)]
macro_rules! fire {
    ($function:ident($($argument:expr),+ $(,)?)) => {
        // SAFETY: A tracepoint may be called in any context. It reads the names, for the lengths
        // passed with them, before it returns.
        unsafe { bindings::$function($($argument),+) }
    };
}

/// Does nothing. It is unreachable, because `is_on` is false.
#[cfg(not(CONFIG_TRACEPOINTS))]
macro_rules! fire {
    ($function:ident($($argument:expr),+ $(,)?)) => {{
        $(let _ = $argument;)+
    }};
}

/// Returns the length of a name in bytes.
fn len(name: &str) -> u32 {
    u32::try_from(name.len()).unwrap_or(0)
}

/// Arguments of the tracepoints of a DTO (data transfer operation) that is posted or completed.
pub(crate) struct DtoFields {
    /// Handle of the Endpoint.
    pub(crate) ep: u64,
    /// Number of the queue pair.
    pub(crate) qp: u32,
    pub(crate) operation: &'static str,
    pub(crate) slot: u32,
    pub(crate) cookie: u64,
    /// Length in bytes.
    pub(crate) length: u64,
}

/// Traces a posted DTO. `dto` is called only if the tracepoint is enabled.
///
/// Context: any.
#[inline(always)]
pub(crate) fn ep_post(dto: impl FnOnce() -> DtoFields) {
    if is_on!(__tracepoint_kdapl_ep_post) {
        let dto = dto();
        fire!(rust_do_trace_kdapl_ep_post(
            dto.ep,
            dto.qp,
            dto.operation.as_ptr().cast(),
            len(dto.operation),
            dto.slot,
            dto.cookie,
            dto.length,
        ));
    }
}

/// Traces a completed DTO and its status. `dto` is called only if the tracepoint is enabled.
///
/// Context: any.
#[inline(always)]
pub(crate) fn ep_complete(dto: impl FnOnce() -> (DtoFields, &'static str)) {
    if is_on!(__tracepoint_kdapl_ep_complete) {
        let (dto, status) = dto();
        fire!(rust_do_trace_kdapl_ep_complete(
            dto.ep,
            dto.qp,
            dto.operation.as_ptr().cast(),
            len(dto.operation),
            status.as_ptr().cast(),
            len(status),
            dto.slot,
            dto.cookie,
            dto.length,
        ));
    }
}

/// Arguments of the tracepoint of a change of an Endpoint's state.
pub(crate) struct StateChange {
    /// Handle of the Endpoint.
    pub(crate) ep: u64,
    /// Number of the queue pair.
    pub(crate) qp: u32,
    pub(crate) from: &'static str,
    pub(crate) cause: &'static str,
    pub(crate) to: &'static str,
}

/// Traces a change of state. `change` is called only if the tracepoint is enabled.
///
/// Context: any.
pub(crate) fn ep_state(change: impl FnOnce() -> StateChange) {
    if is_on!(__tracepoint_kdapl_ep_state) {
        let change = change();
        fire!(rust_do_trace_kdapl_ep_state(
            change.ep,
            change.qp,
            change.from.as_ptr().cast(),
            len(change.from),
            change.cause.as_ptr().cast(),
            len(change.cause),
            change.to.as_ptr().cast(),
            len(change.to),
        ));
    }
}
