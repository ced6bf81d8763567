// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Upcalls of an Event Dispatcher (EVD) to a kernel consumer: `dat_evd_kcreate`,
//! `dat_evd_modify_upcall`.
//!
//! The producer of an event queues a *runner*, a work item. So an upcall may sleep, and a producer
//! only queues work. A runner takes one event after the other and makes an upcall for each. When
//! its budget is used up it queues itself again, after other work.
//! [`model::upcall`](crate::model::upcall) decides which runner is queued, and which may take an
//! event.
//!
//! An EVD may be created for upcalls in soft interrupts ([`UpcallContext::Bh`]). Its runners are
//! on a queue of the kernel that runs there. They must not sleep. So for such an EVD, and for no
//! other, the locks that a runner takes are spinlocks ([`ContextLock`]). The objects that a drain
//! looks for are found under RCU.
//!
//! Runners exist until the EVD is shut down. The shutdown waits for upcalls that have not returned.

mod context;
mod run;

pub(crate) use self::context::{
    Policy,
    UpcallContext, //
};

use self::run::Runner;
use super::Evd;
use crate::{
    dat::{
        base::Object,
        prelude::*, //
    },
    model::{
        event::Record,
        upcall::{
            RunnerDecision,
            UpcallState, //
        },
    },
    sys::{
        lock::{
            new_context_lock,
            ContextLock, //
        },
        task,
        wait::{
            new_wait_queue,
            WaitQueue, //
        },
    },
};
use kernel::sync::SetOnce;

/// Events that make upcalls after a change of the policy: `DAT_UPCALL_FLAG`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Invocation {
    /// The next event starts the upcalls. Those for the queued events come first.
    New,
    /// Upcalls for queued events start at once.
    Any,
}

/// Reason of an upcall.
pub(crate) enum UpcallReason<'a> {
    /// This event. The flag says whether more events are queued after it.
    Event(&'a Record, bool),
    /// Events are queued.
    Arrived,
}

/// Upcall function of a consumer.
pub(crate) trait Upcall: Send + Sync {
    /// Makes the upcall.
    ///
    /// Context: see [`UpcallContext`].
    fn call(&self, reason: UpcallReason<'_>);
}

/// Returns the error for upcalls of an EVD on which a thread waits.
fn has_waiter_error() -> DatError {
    DatError::new(Kind::InvalidState, Subtype::InvalidStateEvdWaiter)
}

/// Fields of [`Upcalls`] protected by its lock.
struct Settings {
    policy: Policy,
    upcall: Option<Arc<dyn Upcall>>,
    /// The EVD was shut down.
    over: bool,
}

/// Upcalls of an EVD.
#[pin_data]
pub(super) struct Upcalls {
    context: UpcallContext,
    state: UpcallState,
    #[pin]
    settings: ContextLock<Settings>,
    /// Threads that wait until all upcalls have returned.
    #[pin]
    waiting: WaitQueue,
    /// First runner, created for the first policy with upcalls.
    first: SetOnce<Arc<Runner>>,
    /// Other runners, created for the first policy with several upcalls at a time.
    others: SetOnce<KVec<Arc<Runner>>>,
}

impl Upcalls {
    /// Creates the state of an EVD without upcalls.
    pub(super) fn new(context: UpcallContext) -> impl PinInit<Self> {
        let settings = Settings {
            policy: Policy::Disable,
            upcall: None,
            over: false,
        };
        pin_init!(Self {
            context,
            state: UpcallState::new(),
            settings <- new_context_lock!(settings, context.lock_context(), "Upcalls::settings"),
            waiting <- new_wait_queue!("Upcalls::waiting"),
            first: SetOnce::new(),
            others: SetOnce::new(),
        })
    }

    /// Returns whether upcalls are enabled.
    pub(super) fn are_made(&self) -> bool {
        self.state.is_open()
    }

    /// Announces an event: queues a runner, unless enough are active.
    ///
    /// Context: any, including hard IRQ. The caller has rung the doorbell after the event was
    /// queued.
    pub(super) fn arrived(&self) {
        if let Some(runner) = self.state.notify().and_then(|number| self.runner(number)) {
            // Does not fail: an idle runner is not queued.
            let _ = self.context.queue().enqueue(runner.clone());
        }
    }

    /// Returns the runner with this number.
    fn runner(&self, number: u32) -> Option<&Arc<Runner>> {
        match number.checked_sub(1) {
            None => self.first.as_ref(),
            Some(other) => self.others.as_ref()?.get(usize::try_from(other).ok()?),
        }
    }

    /// Returns all runners that were created.
    fn runners(&self) -> impl Iterator<Item = &Arc<Runner>> {
        let others = self.others.as_ref().into_iter().flatten();
        Iterator::chain(self.first.as_ref().into_iter(), others)
    }

    /// Creates the runners that a policy needs.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    fn prepare(&self, evd: &Arc<Evd>, policy: Policy) -> DatResult {
        let needs_first = policy.max_active() > 0 && self.first.as_ref().is_none();
        let first = needs_first
            .then(|| Runner::new(evd, self.context, 0))
            .transpose()?;
        let mut others = KVec::new();
        if policy.max_active() > 1 && self.others.as_ref().is_none() {
            for number in 1..policy.max_active() {
                others.push(Runner::new(evd, self.context, number)?, GFP_KERNEL_ACCOUNT)?;
            }
        }
        // The lock is held until the runners are set, because another thread may then open the
        // policy. If it was first, its runners stay.
        let _settings = self.settings.lock();
        if let Some(first) = first {
            self.first.populate(first);
        }
        if !others.is_empty() {
            self.others.populate(others);
        }
        Ok(())
    }

    /// Returns whether the caller is in an upcall of this EVD.
    pub(super) fn is_caller(&self) -> bool {
        let caller = task::current();
        self.runners().any(|runner| runner.is_run_by(caller))
    }

    /// Wakes the threads that wait for upcalls to return, if the last runner has finished.
    fn finished(&self, decision: RunnerDecision) {
        if decision == (RunnerDecision::Finished { last: true }) {
            self.waiting.wake_all();
        }
    }

    /// Changes the policy. With `None`, the upcall stays. Returns `true` if upcalls were enabled
    /// before. Events that were queued then may not have had their upcalls.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (upcall) if the policy has upcalls but no upcall function is set;
    /// INVALID_STATE (EVD waiter) if it has upcalls and `has_waiter` returns true; INVALID_HANDLE
    /// if the EVD was shut down.
    fn change(
        &self,
        policy: Policy,
        upcall: Option<Arc<dyn Upcall>>,
        has_waiter: impl Fn() -> bool,
    ) -> DatResult<bool> {
        let (were_made, old) = {
            let mut settings = self.settings.lock();
            if settings.over {
                return Err(DatError::new(Kind::InvalidHandle, Evd::INVALID));
            }
            if policy.max_active() > 0 && upcall.is_none() && settings.upcall.is_none() {
                return Err(DatError::Invalid(Arg::Upcall));
            }
            let were_made = match policy.max_active() {
                0 => self.state.close(),
                most => self.state.open(most),
            };
            // A thread that begins to wait from now on sees the open state.
            if policy.makes_upcalls() && !were_made && has_waiter() {
                self.state.close();
                return Err(has_waiter_error());
            }
            settings.policy = policy;
            let old = match upcall {
                Some(upcall) => settings.upcall.replace(upcall),
                None => None,
            };
            (were_made, old)
        };
        drop(old);
        Ok(were_made)
    }

    /// Waits until all upcalls have returned. Upcalls are disabled.
    fn wait_until_idle(&self) {
        self.waiting.wait_for(|| self.state.is_idle());
    }

    /// Disables upcalls for good, and waits until all have returned. Releases the runners.
    fn end(&self) {
        let upcall = {
            let mut settings = self.settings.lock();
            settings.over = true;
            self.state.close();
            settings.upcall.take()
        };
        self.wait_until_idle();
        drop(upcall);
        for runner in self.runners() {
            runner.end();
        }
    }
}

impl Evd {
    /// Changes the upcall policy and function: `dat_evd_modify_upcall`. With `None`, the function
    /// stays.
    ///
    /// A teardown waits until all upcalls have returned.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// * INVALID_PARAMETER (upcall policy) for several upcalls at a time in a soft interrupt;
    /// * INVALID_PARAMETER (upcall) if no upcall function is set;
    /// * INVALID_STATE (EVD waiter) if a thread waits on the EVD;
    /// * INVALID_STATE (EVD in use) for a teardown by an upcall of this EVD, which would wait for
    ///   itself;
    /// * INVALID_HANDLE if the EVD was shut down;
    /// * INSUFFICIENT_RESOURCES (memory) without memory.
    pub(crate) fn modify_upcall(
        self: &Arc<Self>,
        policy: Policy,
        upcall: Option<Arc<dyn Upcall>>,
        invocation: Invocation,
    ) -> DatResult {
        if policy == Policy::Teardown && self.wakeup.upcalls.is_caller() {
            let in_use = Subtype::InvalidStateEvdInUse;
            return Err(DatError::new(Kind::InvalidState, in_use));
        }
        if !self.wakeup.upcalls.context.supports(policy) {
            return Err(DatError::Invalid(Arg::UpcallPolicy));
        }
        self.wakeup.upcalls.prepare(self, policy)?;
        let has_waiter = || self.wakeup.waiter.is_taken();
        let were_made = match self.wakeup.upcalls.change(policy, upcall, has_waiter) {
            Ok(were_made) => were_made,
            Err(error) => {
                if error.kind() == Kind::InvalidHandle {
                    // Runners refer to the EVD. Release those that were created after it was shut
                    // down.
                    self.end_upcalls();
                }
                return Err(error);
            }
        };
        match policy {
            Policy::Disable => {}
            Policy::Teardown => self.wakeup.upcalls.wait_until_idle(),
            // Events that were queued before may have gone unannounced.
            _ if were_made => self.wakeup.upcalls.arrived(),
            _ => match invocation {
                Invocation::Any => self.wakeup.upcalls.arrived(),
                Invocation::New => self.await_upcall(),
            },
        }
        Ok(())
    }

    /// Returns whether events may be dequeued in any context: whether upcalls are made in soft
    /// interrupts.
    pub(crate) fn is_for_any_context(&self) -> bool {
        self.wakeup.upcalls.context != UpcallContext::Process
    }

    /// Returns the upcall policy.
    ///
    /// Context: process; sleeps.
    pub(crate) fn upcall_policy(&self) -> Policy {
        self.wakeup.upcalls.settings.lock().policy
    }

    /// Drains and arms the completion queues, so that the next event makes an upcall.
    fn await_upcall(self: &Arc<Self>) {
        self.drain_all();
        let mut consumer = self.consumer.lock();
        let before = self.queue.ring.len();
        self.arm_and_drain(&mut consumer);
        // Compare the lengths before other threads can take events.
        let is_more = self.queue.ring.len() > before;
        drop(consumer);
        if is_more {
            self.wakeup.upcalls.arrived();
        }
    }

    /// Disables upcalls for good, and waits until all have returned.
    ///
    /// Context: process; sleeps.
    pub(super) fn end_upcalls(&self) {
        self.wakeup.upcalls.end();
    }

    /// Returns whether the caller is in an upcall of this EVD. Ending the EVD would wait for that
    /// upcall.
    pub(in crate::dat) fn is_called_by_me(&self) -> bool {
        self.wakeup.upcalls.is_caller()
    }
}
