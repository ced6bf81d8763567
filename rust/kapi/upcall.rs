// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Functions that a kernel consumer supplies: upcalls of Event Dispatchers (EVDs), and proxy agents
//! of Consumer Notification Objects (CNOs).

use super::{
    event::deliver,
    registry::Adapter, //
};
use crate::dat::{
    cno::{
        Agent,
        Proxy, //
    },
    evd::{
        Policy,
        Upcall,
        UpcallReason, //
    },
    prelude::*, //
};
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

/// Converts a `DAT_UPCALL_POLICY`.
///
/// # Errors
///
/// INVALID_PARAMETER (upcall policy) for an unknown policy.
pub(super) fn policy(policy: i32) -> DatResult<Policy> {
    match policy {
        bindings::DAT_UPCALL_TEARDOWN => Ok(Policy::Teardown),
        0.. => match policy.unsigned_abs() {
            bindings::DAT_UPCALL_DISABLE => Ok(Policy::Disable),
            bindings::DAT_UPCALL_SINGLE_INSTANCE => Ok(Policy::SingleInstance),
            bindings::DAT_UPCALL_NOTIFY => Ok(Policy::Notify),
            bindings::DAT_UPCALL_MANY => Ok(Policy::Many),
            _ => Err(DatError::Invalid(Arg::UpcallPolicy)),
        },
        _ => Err(DatError::Invalid(Arg::UpcallPolicy)),
    }
}

/// Returns DAT's number of an upcall policy.
pub(super) fn policy_number(policy: Policy) -> i32 {
    let number = match policy {
        Policy::Teardown => return bindings::DAT_UPCALL_TEARDOWN,
        Policy::Disable => bindings::DAT_UPCALL_DISABLE,
        Policy::SingleInstance => bindings::DAT_UPCALL_SINGLE_INSTANCE,
        Policy::Notify => bindings::DAT_UPCALL_NOTIFY,
        Policy::Many => bindings::DAT_UPCALL_MANY,
    };
    number as i32
}

/// Upcall function of a kernel consumer.
///
/// # Invariants
///
/// `function` may be called with `data` until the EVD has dropped this value. The header obliges
/// the consumer to that, and the consumer's module is unloaded only after its adapter is closed.
struct KernelUpcall {
    adapter: Adapter,
    data: *mut c_void,
    function: unsafe extern "C" fn(*mut c_void, *const bindings::DAT_EVENT, i32),
}

// SAFETY: `data` belongs to the consumer. The header says that the upcall may come from any thread.
unsafe impl Send for KernelUpcall {}
// SAFETY: As above. Concurrent calls are made only under a policy that allows them.
unsafe impl Sync for KernelUpcall {}

impl Upcall for KernelUpcall {
    fn call(&self, reason: UpcallReason<'_>) {
        match reason {
            UpcallReason::Event(record, more) => {
                // Never fails, since every queued record was encoded from an event.
                let _ = deliver(self.adapter.number(), record, |event| {
                    // SAFETY: By the type invariant, `function` may be called with `data`. `event`
                    // outlives the call.
                    unsafe { (self.function)(self.data, &raw const event, more.into()) };
                });
            }
            UpcallReason::Arrived => {
                // SAFETY: By the type invariant, `function` may be called with `data`. The header
                // says that the event may be NULL.
                unsafe { (self.function)(self.data, core::ptr::null(), 1) };
            }
        }
    }
}

/// Wraps the upcall object of a consumer.
///
/// # Errors
///
/// INVALID_PARAMETER (upcall) if the object has no function; INSUFFICIENT_RESOURCES.
pub(super) fn upcall(
    adapter: &Adapter,
    object: Option<bindings::DAT_UPCALL_OBJECT>,
) -> DatResult<Option<Arc<dyn Upcall>>> {
    let Some(object) = object else {
        return Ok(None);
    };
    let function = object.upcall_func;
    let upcall: Arc<dyn Upcall> = Arc::new(
        // INVARIANT: The header obliges the consumer to keep `function` and `data` valid.
        KernelUpcall {
            adapter: adapter.clone(),
            data: object.instance_data,
            function: function.ok_or(DatError::Invalid(Arg::Upcall))?,
        },
        GFP_KERNEL,
    )?;
    Ok(Some(upcall))
}

/// Proxy agent of a kernel consumer.
///
/// # Invariants
///
/// `function` may be called with `data` until the CNO has dropped this value.
struct KernelProxy {
    adapter: u32,
    data: *mut c_void,
    function: unsafe extern "C" fn(*mut c_void, *mut c_void),
}

// SAFETY: `data` belongs to the consumer. The header says that the agent may be called in any
// context.
unsafe impl Send for KernelProxy {}
// SAFETY: As above.
unsafe impl Sync for KernelProxy {}

impl Proxy for KernelProxy {
    fn call(&self, evd: u64) {
        let evd = Adapter::raw_of(self.adapter, evd);
        // SAFETY: By the type invariant, `function` may be called with `data`.
        unsafe { (self.function)(self.data, evd) };
    }
}

/// Wraps the proxy agent of a consumer. Returns `None` if it has no function.
pub(super) fn agent(
    adapter: &Adapter,
    agent: bindings::DAT_OS_WAIT_PROXY_AGENT,
) -> DatResult<Option<Agent>> {
    let Some(function) = agent.proxy_agent_func else {
        return Ok(None);
    };
    let proxy: KBox<dyn Proxy> = KBox::new(
        // INVARIANT: The header obliges the consumer to keep `function` and `data` valid.
        KernelProxy {
            adapter: adapter.number(),
            data: agent.instance_data,
            function,
        },
        GFP_KERNEL,
    )?;
    Ok(Some(Agent::Proxy(proxy)))
}
