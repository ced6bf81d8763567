// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The tracepoints of Endpoints: `kdapl:kdapl_ep_post`, `kdapl_ep_complete`, `kdapl_ep_state`.
//!
//! The kernel crate's `declare_trace!` looks for a tracepoint in the kernel's own bindings, so a
//! module that is built outside of the kernel cannot use it. The static key below it can be used: a
//! tracepoint that is off is a no-op in the instruction stream (on kernels with jump labels, else a
//! load and a branch), with no call and no argument put together.
//!
//! C header: `rust/helpers/kdapl_trace.h`

#[cfg(CONFIG_TRACEPOINTS)]
use kdapl_bindings as bindings;

/// Whether somebody listens to a tracepoint.
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

/// Nobody listens in a kernel without tracepoints.
#[cfg(not(CONFIG_TRACEPOINTS))]
macro_rules! is_on {
    ($tracepoint:ident) => {
        false
    };
}

/// Fires a tracepoint.
#[cfg(CONFIG_TRACEPOINTS)]
macro_rules! fire {
    ($function:ident($($argument:expr),+ $(,)?)) => {
        // SAFETY: A tracepoint may fire in any context. Names are read, for the length that is given
        // with them, before this returns.
        unsafe { bindings::$function($($argument),+) }
    };
}

/// Cannot be reached.
#[cfg(not(CONFIG_TRACEPOINTS))]
macro_rules! fire {
    ($function:ident($($argument:expr),+ $(,)?)) => {{
        $(let _ = $argument;)+
    }};
}

/// Does what is done for listeners only, out of the way of the code for which there are none.
#[cold]
#[inline(never)]
fn aside(tell: impl FnOnce()) {
    tell();
}

/// The length of a name; none is longer than a word or two.
fn len(name: &str) -> u32 {
    u32::try_from(name.len()).unwrap_or(0)
}

/// A posted or completed DTO, as its tracepoints tell of it.
pub(crate) struct Dto {
    /// Handle of the Endpoint.
    pub(crate) ep: u64,
    /// Number of the QP.
    pub(crate) qp: u32,
    pub(crate) operation: &'static str,
    pub(crate) slot: u32,
    pub(crate) cookie: u64,
    /// Bytes.
    pub(crate) length: u64,
}

/// Tells of a posted DTO; `dto` is only called if somebody listens.
///
/// Context: any.
#[inline(always)]
pub(crate) fn ep_post(dto: impl FnOnce() -> Dto) {
    if is_on!(__tracepoint_kdapl_ep_post) {
        aside(|| {
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
        });
    }
}

/// Tells of a completed DTO and its status; `dto` is only called if somebody listens.
///
/// Context: any.
#[inline(always)]
pub(crate) fn ep_complete(dto: impl FnOnce() -> (Dto, &'static str)) {
    if is_on!(__tracepoint_kdapl_ep_complete) {
        aside(|| {
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
        });
    }
}

/// A change of an Endpoint's state, as its tracepoint tells of it.
pub(crate) struct Change {
    /// Handle of the Endpoint.
    pub(crate) ep: u64,
    /// Number of the QP.
    pub(crate) qp: u32,
    pub(crate) from: &'static str,
    pub(crate) cause: &'static str,
    pub(crate) to: &'static str,
}

/// Tells of a change of state; `change` is only called if somebody listens.
///
/// Context: any.
#[inline(always)]
pub(crate) fn ep_state(change: impl FnOnce() -> Change) {
    if is_on!(__tracepoint_kdapl_ep_state) {
        aside(|| {
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
        });
    }
}
