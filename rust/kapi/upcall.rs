// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A consumer's functions: upcalls, and the agents of CNOs.

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
        Tidings,
        Upcall, //
    },
    prelude::*, //
};
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

/// `DAT_UPCALL_POLICY`, for argument `argument`.
pub(super) fn policy(policy: i32, argument: u8) -> DatResult<Policy> {
    match policy {
        bindings::DAT_UPCALL_TEARDOWN => Ok(Policy::Teardown),
        0.. => match policy.unsigned_abs() {
            bindings::DAT_UPCALL_DISABLE => Ok(Policy::Disable),
            bindings::DAT_UPCALL_SINGLE_INSTANCE => Ok(Policy::SingleInstance),
            bindings::DAT_UPCALL_NOTIFY => Ok(Policy::Notify),
            bindings::DAT_UPCALL_MANY => Ok(Policy::Many),
            _ => Err(DatError::invalid_parameter(argument)),
        },
        _ => Err(DatError::invalid_parameter(argument)),
    }
}

/// DAT's number of a policy.
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

/// An upcall of a consumer in the kernel.
///
/// # Invariants
///
/// The function may be called, with the data, until the EVD has parted with this: so the header says, and
/// the consumer's module goes later than its adapter.
struct KernelUpcall {
    adapter: Adapter,
    data: *mut c_void,
    function: unsafe extern "C" fn(*mut c_void, *const bindings::DAT_EVENT, i32),
}

// SAFETY: The data are the consumer's, who has to expect the call from any thread.
unsafe impl Send for KernelUpcall {}
// SAFETY: As above; of a policy that allows it, from several at once.
unsafe impl Sync for KernelUpcall {}

impl Upcall for KernelUpcall {
    fn call(&self, tidings: Tidings<'_>) {
        match tidings {
            Tidings::Event(record, more) => {
                // Never an error: what is queued was made from an event.
                let _ = deliver(self.adapter.number(), record, |event| {
                    // SAFETY: By the invariant; the event lives as long as the call takes.
                    unsafe { (self.function)(self.data, &raw const event, more.into()) };
                });
            }
            Tidings::Arrived => {
                // SAFETY: By the invariant; the header says that NULL may come.
                unsafe { (self.function)(self.data, core::ptr::null(), 1) };
            }
        }
    }
}

/// The upcall that a consumer gave.
///
/// # Errors
///
/// INVALID_PARAMETER (`argument`) without a function.
pub(super) fn upcall(
    adapter: &Adapter,
    object: Option<bindings::DAT_UPCALL_OBJECT>,
    argument: u8,
) -> DatResult<Option<Arc<dyn Upcall>>> {
    let Some(object) = object else {
        return Ok(None);
    };
    let function = object.upcall_func;
    let upcall: Arc<dyn Upcall> = Arc::new(
        // INVARIANT: The consumer keeps to the header.
        KernelUpcall {
            adapter: adapter.clone(),
            data: object.instance_data,
            function: function.ok_or(DatError::invalid_parameter(argument))?,
        },
        GFP_KERNEL,
    )?;
    Ok(Some(upcall))
}

/// An agent of a consumer in the kernel.
///
/// # Invariants
///
/// The function may be called, with the data, until the CNO has parted with this.
struct KernelProxy {
    adapter: u32,
    data: *mut c_void,
    function: unsafe extern "C" fn(*mut c_void, *mut c_void),
}

// SAFETY: The data are the consumer's, who has to expect the call in any context.
unsafe impl Send for KernelProxy {}
// SAFETY: As above.
unsafe impl Sync for KernelProxy {}

impl Proxy for KernelProxy {
    fn call(&self, evd: u64) {
        let evd = Adapter::raw_of(self.adapter, evd);
        // SAFETY: By the invariant.
        unsafe { (self.function)(self.data, evd) };
    }
}

/// The agent that a consumer gave; none without a function.
pub(super) fn agent(
    adapter: &Adapter,
    agent: bindings::DAT_OS_WAIT_PROXY_AGENT,
) -> DatResult<Option<Agent>> {
    let Some(function) = agent.proxy_agent_func else {
        return Ok(None);
    };
    let proxy: KBox<dyn Proxy> = KBox::new(
        // INVARIANT: The consumer keeps to the header.
        KernelProxy {
            adapter: adapter.number(),
            data: agent.instance_data,
            function,
        },
        GFP_KERNEL,
    )?;
    Ok(Some(Agent::Proxy(proxy)))
}
