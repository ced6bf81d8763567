// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Event Dispatchers (EVDs).

use super::{
    event::Delivery,
    export::{
        count,
        export,
        raw_handle,
        In,
        Out, //
    },
    registry::Adapter,
    upcall::{
        policy,
        policy_number,
        upcall, //
    },
};
use crate::{
    dat::{
        base::Object,
        evd::{
            deadline,
            Evd,
            Invocation,
            Policy,
            Upcall,
            UpcallContext, //
        },
        prelude::*, //
    },
    model::{
        direct_event::DrainLimit,
        handle::KernelHandle,
        upcall::MAX_BUDGET,
        vector::Placement, //
    },
    sys::task,
};
use kdapl_bindings as bindings;
use kernel::{
    ffi::c_void,
    sync::rcu, //
};

/// Creates an EVD, and enables its upcalls. Returns its handle.
///
/// # Errors
///
/// Those of [`Ia::create_evd`](crate::dat::ia::Ia::create_evd) and [`Evd::modify_upcall`].
fn create(
    adapter: &Adapter,
    qlen: i32,
    flags: u32,
    context: UpcallContext,
    policy: Policy,
    upcall: Option<Arc<dyn Upcall>>,
) -> DatResult<u64> {
    let ia = &adapter.ia;
    let (handle, _) = ia.create_evd_with(qlen, 0, flags, Placement::ANY, context)?;
    let created = ia.get::<Evd>(handle)?;
    if let Err(error) = created.modify_upcall(policy, upcall, Invocation::Any) {
        ia.free::<Evd>(handle)?;
        return Err(error);
    }
    Ok(handle)
}

/// Resolves the handle of an EVD.
///
/// Context: any. A caller that cannot sleep is an RCU reader, so it does not drop the last
/// reference.
///
/// # Errors
///
/// INVALID_HANDLE (EVD).
fn find_in_any_context(handle: KernelHandle) -> DatResult<Arc<Evd>> {
    let guard = rcu::read_lock();
    let found = Adapter::borrow::<Evd>(&guard, handle)?;
    match found.is_hidden() {
        true => Err(DatError::new(Kind::InvalidHandle, Evd::INVALID)),
        false => Ok(found.clone()),
    }
}

/// Refuses a call that sleeps, in an interrupt: for example in an upcall in a soft interrupt.
///
/// # Errors
///
/// INVALID_STATE with `subtype`.
pub(super) fn must_be_in_thread(subtype: Subtype) -> DatResult {
    match task::is_in_interrupt() {
        true => Err(DatError::new(Kind::InvalidState, subtype)),
        false => Ok(()),
    }
}

export! {
    /// `dat_evd_kcreate`.
    fn dat_evd_kcreate(
        ia: KernelHandle,
        qlen: i32,
        upcalls: i32,
        object: In<bindings::DAT_UPCALL_OBJECT>,
        flags: u32,
        evd: Out<*mut c_void>,
    ) {
        evd.needed(Arg::Handle)?;
        let policy = policy(upcalls)?;
        let adapter = Adapter::of(ia)?;
        let upcall = upcall(&adapter, object.get())?;
        if upcall.is_none() && policy.makes_upcalls() {
            return Err(DatError::Invalid(Arg::Upcall));
        }
        let handle = create(&adapter, qlen, flags, UpcallContext::Process, policy, upcall)?;
        evd.put(adapter.raw(handle));
        Ok(())
    }

    /// `kdapl_evd_create_bh`.
    fn kdapl_evd_create_bh(
        ia: KernelHandle,
        qlen: i32,
        upcalls: i32,
        object: In<bindings::DAT_UPCALL_OBJECT>,
        budget: i32,
        flags: u32,
        evd: Out<*mut c_void>,
    ) {
        evd.needed(Arg::Handle)?;
        let policy = policy(upcalls)?;
        let budget = u32::try_from(budget)
            .ok()
            .filter(|budget| (1..=MAX_BUDGET).contains(budget))
            .ok_or(DatError::Invalid(Arg::Budget))?;
        let adapter = Adapter::of(ia)?;
        let upcall = upcall(&adapter, object.get())?;
        if upcall.is_none() && policy.makes_upcalls() {
            return Err(DatError::Invalid(Arg::Upcall));
        }
        let context = UpcallContext::Bh { budget };
        let handle = create(&adapter, qlen, flags, context, policy, upcall)?;
        evd.put(adapter.raw(handle));
        Ok(())
    }

    /// `dat_evd_modify_upcall`.
    fn dat_evd_modify_upcall(
        evd: KernelHandle,
        upcalls: i32,
        object: In<bindings::DAT_UPCALL_OBJECT>,
        flag: u32,
    ) {
        must_be_in_thread(Subtype::InvalidStateEvdInUse)?;
        let policy = policy(upcalls)?;
        let invocation = match flag {
            bindings::DAT_UPCALL_INVOC_NEW => Invocation::New,
            bindings::DAT_UPCALL_INVOC_ANY => Invocation::Any,
            _ => return Err(DatError::Invalid(Arg::Flags)),
        };
        let (adapter, evd) = Adapter::find::<Evd>(evd)?;
        let upcall = upcall(&adapter, object.get())?;
        evd.modify_upcall(policy, upcall, invocation)
    }

    /// `dat_evd_query`.
    fn dat_evd_query(evd: KernelHandle, _mask: u64, result: Out<bindings::DAT_EVD_PARAM>) {
        result.needed(Arg::Param)?;
        let (adapter, evd) = Adapter::find::<Evd>(evd)?;
        let param = evd.query();
        result.put(bindings::DAT_EVD_PARAM {
            ia_handle: raw_handle(adapter.handle()),
            evd_qlen: count(param.qlen),
            evd_state: param.state,
            cno_handle: adapter.raw(param.cno),
            evd_flags: param.flags.bits(),
            upcall_policy: policy_number(evd.upcall_policy()),
        });
        Ok(())
    }

    /// `dat_evd_modify_cno`.
    fn dat_evd_modify_cno(evd: KernelHandle, cno: KernelHandle) {
        let (adapter, evd) = Adapter::find::<Evd>(evd)?;
        adapter.ia.modify_cno(&evd, adapter.inner(cno))
    }

    /// `dat_evd_enable`.
    fn dat_evd_enable(evd: KernelHandle) {
        let evd = Adapter::object::<Evd>(evd)?;
        evd.enable();
        Ok(())
    }

    /// `dat_evd_disable`.
    fn dat_evd_disable(evd: KernelHandle) {
        let evd = Adapter::object::<Evd>(evd)?;
        evd.disable();
        Ok(())
    }

    /// `dat_evd_set_unwaitable`.
    fn dat_evd_set_unwaitable(evd: KernelHandle) {
        let evd = Adapter::object::<Evd>(evd)?;
        evd.set_unwaitable();
        Ok(())
    }

    /// `dat_evd_clear_unwaitable`.
    fn dat_evd_clear_unwaitable(evd: KernelHandle) {
        let evd = Adapter::object::<Evd>(evd)?;
        evd.clear_unwaitable();
        Ok(())
    }

    /// `dat_evd_wait`.
    fn dat_evd_wait(
        evd: KernelHandle,
        timeout: u32,
        threshold: i32,
        taken: Out<bindings::DAT_EVENT>,
        nmore: Out<i32>,
    ) {
        // The time-out counts from the entry of the call.
        let deadline = deadline(timeout);
        taken.needed(Arg::Event)?;
        let (waited, _waiting) = Adapter::waited::<Evd>(evd)?;
        let mut delivery = Delivery::new(evd.adapter(), &taken);
        // Without `nmore`, the wait need not drain the completion queues to count the remaining
        // events.
        let limit = match nmore.is_needed() {
            true => DrainLimit::All,
            false => DrainLimit::One,
        };
        let left = waited.wait(deadline, threshold, limit, &mut delivery)?;
        nmore.put(count(left));
        delivery.finish()
    }

    /// `dat_evd_dequeue`.
    fn dat_evd_dequeue(evd: KernelHandle, taken: Out<bindings::DAT_EVENT>) {
        taken.needed(Arg::Event)?;
        let queue = find_in_any_context(evd)?;
        if !queue.is_for_any_context() {
            must_be_in_thread(Subtype::InvalidStateEvdInUse)?;
        }
        let mut delivery = Delivery::new(evd.adapter(), &taken);
        queue.dequeue(DrainLimit::One, &mut delivery)?;
        delivery.finish()
    }

    /// `dat_evd_resize`.
    fn dat_evd_resize(evd: KernelHandle, qlen: i32) {
        let (adapter, evd) = Adapter::find::<Evd>(evd)?;
        evd.resize(adapter.ia.attr(), qlen).map(drop)
    }

    /// `dat_evd_post_se`.
    fn dat_evd_post_se(evd: KernelHandle, posted: In<bindings::DAT_EVENT>) {
        let evd = find_in_any_context(evd)?;
        let posted = posted.get().ok_or(DatError::Invalid(Arg::Event))?;
        if posted.event_number != bindings::DAT_SOFTWARE_EVENT {
            return Err(DatError::Invalid(Arg::Event));
        }
        // SAFETY: Every bit pattern is a valid pointer value. The pointer is not dereferenced.
        let pointer = unsafe { posted.event_data.software_event_data }.pointer;
        evd.post_se(pointer.addr() as u64)
    }

    /// `dat_evd_free`.
    fn dat_evd_free(evd: KernelHandle) {
        must_be_in_thread(Subtype::InvalidStateEvdInUse)?;
        let (adapter, evd) = Adapter::of_object::<Evd>(evd)?;
        adapter.ia.free::<Evd>(evd)
    }
}
