// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Upcalls: `dat_evd_kcreate` and `dat_evd_modify_upcall`, for consumers in the kernel.
//!
//! Whoever brings an event sends a *runner*, a work item: so an upcall may sleep, and whoever brings an
//! event only queues work. A runner takes event after event and hands each out, up to a budget; then it
//! queues itself again, behind whatever else there is to do. Who is sent, and who may take, is
//! [`model::upcall`](crate::model::upcall).
//!
//! What is a runner's own memory stays until the EVD is shut down; the EVD waits then for upcalls that
//! have not returned.

mod run;

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
            UpcallState,
            MAX_RUNNERS, //
        },
    },
    sys::{
        task,
        wait::{
            new_wait_queue,
            WaitQueue, //
        },
        workqueue::queue, //
    },
};
use kernel::{
    new_mutex,
    sync::{
        Mutex,
        SetOnce, //
    },
};

/// `DAT_UPCALL_POLICY`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// No upcalls.
    Disable,
    /// One upcall at a time, each with an event.
    SingleInstance,
    /// One upcall at a time, which says that there are events; the consumer takes them itself.
    Notify,
    /// Upcalls at the same time, each with an event.
    Many,
    /// No upcalls, and none that has not returned.
    Teardown,
}

impl Policy {
    /// Whether there are upcalls.
    pub(crate) fn makes_upcalls(self) -> bool {
        self.max_active() > 0
    }

    /// How many runners may be away at once.
    fn max_active(self) -> u32 {
        match self {
            Self::Disable | Self::Teardown => 0,
            Self::SingleInstance | Self::Notify => 1,
            Self::Many => MAX_RUNNERS,
        }
    }
}

/// What an upcall says.
pub(crate) enum UpcallReason<'a> {
    /// This event, and whether more are queued behind it.
    Event(&'a Record, bool),
    /// There are events.
    Arrived,
}

/// A consumer's upcall.
pub(crate) trait Upcall: Send + Sync {
    /// Context: a work item; may sleep.
    fn call(&self, reason: UpcallReason<'_>);
}

/// Fields of [`Upcalls`] protected by its lock.
struct Settings {
    policy: Policy,
    upcall: Option<Arc<dyn Upcall>>,
    /// The EVD goes.
    over: bool,
}

/// What an EVD has for upcalls.
#[pin_data]
pub(super) struct Upcalls {
    state: UpcallState,
    #[pin]
    settings: Mutex<Settings>,
    /// Who waits for upcalls to return.
    #[pin]
    waiting: WaitQueue,
    /// The first runner, made with the first policy that needs one; and the others.
    first: SetOnce<Arc<Runner>>,
    others: SetOnce<KVec<Arc<Runner>>>,
}

impl Upcalls {
    /// None.
    pub(super) fn new() -> impl PinInit<Self> {
        let settings = Settings {
            policy: Policy::Disable,
            upcall: None,
            over: false,
        };
        pin_init!(Self {
            state: UpcallState::new(),
            settings <- new_mutex!(settings, "Upcalls::settings"),
            waiting <- new_wait_queue!("Upcalls::waiting"),
            first: SetOnce::new(),
            others: SetOnce::new(),
        })
    }

    /// Whether upcalls are made.
    pub(super) fn are_made(&self) -> bool {
        self.state.is_open()
    }

    /// An event is here: somebody is sent to hand it out, unless enough are on their way.
    ///
    /// Context: any, including hard IRQ. The caller has rung the doorbell behind the event.
    #[inline]
    pub(super) fn arrived(&self) {
        if let Some(runner) = self.state.notify().and_then(|number| self.runner(number)) {
            // Never refused: it is not away.
            let _ = queue().enqueue(runner.clone());
        }
    }

    fn runner(&self, number: u32) -> Option<&Arc<Runner>> {
        match number.checked_sub(1) {
            None => self.first.as_ref(),
            Some(other) => self.others.as_ref()?.get(usize::try_from(other).ok()?),
        }
    }

    /// Every runner that was ever made.
    fn runners(&self) -> impl Iterator<Item = &Arc<Runner>> {
        let others = self.others.as_ref().into_iter().flatten();
        Iterator::chain(self.first.as_ref().into_iter(), others)
    }

    /// Sees that there are runners enough for a policy. Context: process; sleeps.
    fn prepare(&self, evd: &Arc<Evd>, policy: Policy) -> DatResult {
        if policy.max_active() > 0 && self.first.as_ref().is_none() {
            // Another thread may have been quicker: then its own stays.
            self.first.populate(Runner::new(evd, 0)?);
        }
        if policy.max_active() > 1 && self.others.as_ref().is_none() {
            let mut others = KVec::new();
            for number in 1..policy.max_active() {
                others.push(Runner::new(evd, number)?, GFP_KERNEL_ACCOUNT)?;
            }
            self.others.populate(others);
        }
        Ok(())
    }

    /// Whether the caller is in an upcall of this EVD.
    pub(super) fn is_caller(&self) -> bool {
        let caller = task::current();
        self.runners().any(|runner| runner.is_run_by(caller))
    }

    /// A runner has left.
    fn finished(&self, decision: RunnerDecision) {
        if decision == (RunnerDecision::Finished { last: true }) {
            self.waiting.wake_all();
        }
    }

    /// Changes the policy; with `None` the upcall stays. Says whether events that lie here may be due from
    /// before.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 3): there is no upcall to be made. INVALID_HANDLE: the EVD goes.
    fn change(&self, policy: Policy, upcall: Option<Arc<dyn Upcall>>) -> DatResult<bool> {
        let (were_made, old) = {
            let mut settings = self.settings.lock();
            if settings.over {
                return Err(DatError::new(Kind::InvalidHandle, Evd::INVALID));
            }
            if policy.max_active() > 0 && upcall.is_none() && settings.upcall.is_none() {
                return Err(DatError::invalid_parameter(3));
            }
            let were_made = self.state.close();
            settings.policy = policy;
            let old = match upcall {
                Some(upcall) => settings.upcall.replace(upcall),
                None => None,
            };
            if policy.max_active() > 0 {
                self.state.open(policy.max_active());
            }
            (were_made, old)
        };
        drop(old);
        Ok(were_made)
    }

    /// Waits until every upcall has returned. Upcalls are disabled.
    fn wait_until_idle(&self) {
        self.waiting.wait_for(|| self.state.is_idle());
    }

    /// No upcalls any more, and none that has not returned; the EVD goes.
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
    /// `dat_evd_modify_upcall`. With `None` the upcall stays as it is. With `any` what lies here has an
    /// upcall as well; without, only what comes makes one, and hands out what lies here before it.
    ///
    /// A teardown waits until every upcall has returned.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 3) if there is no upcall, INVALID_STATE (EVD waiter) if somebody waits,
    /// or (EVD in use) for a teardown by an upcall of this EVD, which would wait for itself.
    pub(crate) fn modify_upcall(
        self: &Arc<Self>,
        policy: Policy,
        upcall: Option<Arc<dyn Upcall>>,
        any: bool,
    ) -> DatResult {
        let refused = |subtype| Err(DatError::new(Kind::InvalidState, subtype));
        if policy == Policy::Teardown && self.wakeup.upcalls.is_caller() {
            return refused(Subtype::InvalidStateEvdInUse);
        }
        if policy.max_active() > 0 && self.wakeup.waiter.is_taken() {
            return refused(Subtype::InvalidStateEvdWaiter);
        }
        self.wakeup.upcalls.prepare(self, policy)?;
        let were_made = match self.wakeup.upcalls.change(policy, upcall) {
            Ok(were_made) => were_made,
            Err(error) => {
                if error.kind == Kind::InvalidHandle {
                    // Runners that were made too late must not keep it.
                    self.end_upcalls();
                }
                return Err(error);
            }
        };
        match policy {
            Policy::Disable => {}
            Policy::Teardown => self.wakeup.upcalls.wait_until_idle(),
            // What came before may have been told to nobody.
            _ if any || were_made => self.wakeup.upcalls.arrived(),
            _ => self.await_upcall(),
        }
        Ok(())
    }

    /// Which upcalls it makes. Context: process; sleeps.
    pub(crate) fn upcall_policy(&self) -> Policy {
        self.wakeup.upcalls.settings.lock().policy
    }

    /// Sees that what comes from now on makes an upcall.
    fn await_upcall(self: &Arc<Self>) {
        self.drain_now();
        let mut consumer = self.consumer.lock();
        let before = self.queue.ring.len();
        self.arm_and_drain(&mut consumer);
        // Before others take events.
        let is_more = self.queue.ring.len() > before;
        drop(consumer);
        if is_more {
            self.wakeup.upcalls.arrived();
        }
    }

    /// No upcalls any more, and none that has not returned. Context: process; sleeps.
    pub(super) fn end_upcalls(&self) {
        self.wakeup.upcalls.end();
    }

    /// Whether the caller is in an upcall of this EVD, which whoever ends the EVD would wait for.
    pub(in crate::dat) fn is_called_by_me(&self) -> bool {
        self.wakeup.upcalls.is_caller()
    }
}
