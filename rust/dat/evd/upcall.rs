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

use super::{
    Consumer,
    Evd, //
};
use crate::{
    dat::objects::Noun,
    model::{
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        event::Record,
        upcall::{
            Gate,
            Stay,
            MAX_CREW, //
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
    impl_has_work, new_mutex, new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex,
        SetOnce, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};

/// Events that a runner hands out before it makes way for other work.
const BUDGET: u32 = 64;

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
        self.crew() > 0
    }

    /// How many runners may be away at once.
    fn crew(self) -> u32 {
        match self {
            Self::Disable | Self::Teardown => 0,
            Self::SingleInstance | Self::Notify => 1,
            Self::Many => MAX_CREW,
        }
    }
}

/// What an upcall says.
pub(crate) enum Tidings<'a> {
    /// This event, and whether more are queued behind it.
    Event(&'a Record, bool),
    /// There are events.
    Arrived,
}

/// A consumer's upcall.
pub(crate) trait Upcall: Send + Sync {
    /// Context: a work item; may sleep.
    fn call(&self, tidings: Tidings<'_>);
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
    gate: Gate,
    #[pin]
    settings: Mutex<Settings>,
    /// Who waits for upcalls to return.
    #[pin]
    waiting: WaitQueue,
    /// The first runner, made with the first policy that needs one; and the others.
    first: SetOnce<Arc<Runner>>,
    others: SetOnce<KVec<Arc<Runner>>>,
}

/// A work item that makes upcalls.
#[pin_data]
struct Runner {
    number: u32,
    /// `None` once the EVD is shut down.
    #[pin]
    evd: Mutex<Option<Arc<Evd>>>,
    /// The task that is in an upcall just now, or 0.
    task: Atomic<usize>,
    #[pin]
    work: Work<Runner>,
}

impl Runner {
    fn new(evd: &Arc<Evd>, number: u32) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                number,
                evd <- new_mutex!(Some(evd.clone()), "Runner::evd"),
                task: Atomic::new(0),
                work <- new_work!("Runner::work"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Makes an upcall.
    fn call(&self, upcall: &dyn Upcall, tidings: Tidings<'_>) {
        self.task.store(task::current(), Relaxed);
        upcall.call(tidings);
        self.task.store(0, Relaxed);
    }
}

/// What a runner finds.
enum Found {
    /// An event to hand out, and whether more are queued.
    Event(Arc<dyn Upcall>, Record, bool),
    /// Events of which the consumer is to be told.
    Arrived(Arc<dyn Upcall>),
    Nothing,
    /// No upcalls, or enough others who make them: the runner has left.
    Left,
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
            gate: Gate::new(),
            settings <- new_mutex!(settings, "Upcalls::settings"),
            waiting <- new_wait_queue!("Upcalls::waiting"),
            first: SetOnce::new(),
            others: SetOnce::new(),
        })
    }

    /// Whether upcalls are made.
    pub(super) fn are_made(&self) -> bool {
        self.gate.is_open()
    }

    /// An event is here: somebody is sent to hand it out, unless enough are on their way.
    ///
    /// Context: any, including hard IRQ. The caller has rung the bell behind the event.
    pub(super) fn arrived(&self) {
        if let Some(runner) = self.gate.call().and_then(|number| self.runner(number)) {
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
        if policy.crew() > 0 && self.first.as_ref().is_none() {
            // Another thread may have been quicker: then its own stays.
            self.first.populate(Runner::new(evd, 0)?);
        }
        if policy.crew() > 1 && self.others.as_ref().is_none() {
            let mut others = KVec::new();
            for number in 1..policy.crew() {
                others.push(Runner::new(evd, number)?, GFP_KERNEL_ACCOUNT)?;
            }
            self.others.populate(others);
        }
        Ok(())
    }

    /// Whether the caller is in an upcall of this EVD.
    pub(super) fn is_caller(&self) -> bool {
        let caller = task::current();
        self.runners()
            .any(|runner| runner.task.load(Relaxed) == caller)
    }

    /// A runner has left.
    fn left(&self, stay: Stay) {
        if stay == (Stay::Left { last: true }) {
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
            if policy.crew() > 0 && upcall.is_none() && settings.upcall.is_none() {
                return Err(DatError::invalid_parameter(3));
            }
            let were_made = self.gate.close();
            settings.policy = policy;
            let old = match upcall {
                Some(upcall) => settings.upcall.replace(upcall),
                None => None,
            };
            if policy.crew() > 0 {
                self.gate.open(policy.crew());
            }
            (were_made, old)
        };
        drop(old);
        Ok(were_made)
    }

    /// Waits until every upcall has returned. The gate is closed.
    fn wait_until_idle(&self) {
        self.waiting.wait_for(|| self.gate.is_idle());
    }

    /// No upcalls any more, and none that has not returned; the EVD goes.
    fn end(&self) {
        let upcall = {
            let mut settings = self.settings.lock();
            settings.over = true;
            self.gate.close();
            settings.upcall.take()
        };
        self.wait_until_idle();
        drop(upcall);
        for runner in self.runners() {
            let evd = runner.evd.lock().take();
            drop(evd);
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
        this: &Arc<Self>,
        policy: Policy,
        upcall: Option<Arc<dyn Upcall>>,
        any: bool,
    ) -> DatResult {
        let refused = |subtype| Err(DatError::new(Kind::InvalidState, subtype));
        if policy == Policy::Teardown && this.upcalls.is_caller() {
            return refused(Subtype::InvalidStateEvdInUse);
        }
        if policy.crew() > 0 && this.waited_on.load_acquire() {
            return refused(Subtype::InvalidStateEvdWaiter);
        }
        this.upcalls.prepare(this, policy)?;
        let were_made = match this.upcalls.change(policy, upcall) {
            Ok(were_made) => were_made,
            Err(error) => {
                if error.kind == Kind::InvalidHandle {
                    // Runners that were made too late must not keep it.
                    this.end_upcalls();
                }
                return Err(error);
            }
        };
        match policy {
            Policy::Disable => {}
            Policy::Teardown => this.upcalls.wait_until_idle(),
            // What came before may have been told to nobody.
            _ if any || were_made => this.upcalls.arrived(),
            _ => this.await_upcall(),
        }
        Ok(())
    }

    /// Which upcalls it makes. Context: process; sleeps.
    pub(crate) fn upcall_policy(&self) -> Policy {
        self.upcalls.settings.lock().policy
    }

    /// Sees that what comes from now on makes an upcall.
    fn await_upcall(&self) {
        let mut consumer = self.consumer.lock();
        self.drain(&mut consumer);
        let before = self.ring.len();
        self.arm_and_drain(&mut consumer);
        drop(consumer);
        if self.ring.len() > before {
            self.upcalls.arrived();
        }
    }

    /// Asks for a notification, and drains what came before that.
    fn arm_and_drain(&self, consumer: &mut Consumer) {
        // What they have missed the drain finds.
        let _ = consumer.queues.arm(false);
        self.drain(consumer);
    }

    /// Takes what a runner is to hand out, if it may.
    fn take_for(this: &Arc<Self>, runner: u32) -> Found {
        let upcalls = &this.upcalls;
        // To the end: who takes an event is to hand it out, whatever the policy is then.
        let settings = upcalls.settings.lock();
        let stay = upcalls.gate.stay(runner);
        let (Stay::Take, Some(upcall)) = (stay, &settings.upcall) else {
            drop(settings);
            upcalls.left(stay);
            return Found::Left;
        };
        let mut consumer = this.consumer.lock();
        if settings.policy == Policy::Notify {
            this.arm_and_drain(&mut consumer);
            return match this.ring.len() {
                0 => Found::Nothing,
                _ => Found::Arrived(upcall.clone()),
            };
        }
        let record = Self::pop(this, &mut consumer)
            .or_else(|| Self::pop_or_settle(this, &mut consumer))
            .or_else(|| {
                this.arm_and_drain(&mut consumer);
                this.ring.pop(&mut consumer.slots)
            });
        let Some(record) = record else {
            return Found::Nothing;
        };
        let more = this.ring.len() != 0;
        if more && settings.policy == Policy::Many {
            // Another one takes the next while this one is in its upcall.
            upcalls.arrived();
        }
        Found::Event(upcall.clone(), record, more)
    }

    /// Makes upcalls for as long as there are events, up to the budget.
    fn make_upcalls(this: &Arc<Self>, runner: &Arc<Runner>) {
        for _ in 0..BUDGET {
            match Self::take_for(this, runner.number) {
                Found::Event(upcall, record, more) => {
                    runner.call(&*upcall, Tidings::Event(&record, more));
                }
                Found::Arrived(upcall) => {
                    runner.call(&*upcall, Tidings::Arrived);
                    // What it leaves it knows of.
                    if this.has_left(runner.number) {
                        return;
                    }
                }
                Found::Nothing => {
                    if this.has_left(runner.number) {
                        return;
                    }
                }
                Found::Left => return,
            }
        }
        // Still away: it may be queued again.
        let _ = queue().enqueue(runner.clone());
    }

    /// A runner has nothing to do any more, unless something came meanwhile.
    fn has_left(&self, runner: u32) -> bool {
        let stay = self.upcalls.gate.leave(runner);
        self.upcalls.left(stay);
        stay != Stay::Take
    }

    /// No upcalls any more, and none that has not returned. Context: process; sleeps.
    pub(super) fn end_upcalls(&self) {
        self.upcalls.end();
    }

    /// Whether the caller is in an upcall of this EVD, which whoever ends the EVD would wait for.
    pub(in crate::dat) fn is_called_by_me(&self) -> bool {
        self.upcalls.is_caller()
    }
}

impl_has_work! {
    impl HasWork<Self> for Runner { self.work }
}

impl WorkItem for Runner {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let evd = this.evd.lock().clone();
        if let Some(evd) = evd {
            Evd::make_upcalls(&evd, &this);
        }
    }
}
