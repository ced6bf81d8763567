// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The runners: work items that take events and make upcalls of them.

use super::{
    Policy,
    Upcall, //
    UpcallReason,
};
use crate::{
    dat::{
        evd::Evd,
        prelude::*, //
    },
    model::{
        direct_event::DrainLimit,
        event::Record,
        upcall::RunnerDecision, //
    },
    sys::{
        task,
        workqueue::queue, //
    },
};
use kernel::{
    impl_has_work, new_mutex, new_work,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};

/// Events that a runner hands out before it makes way for other work.
const BUDGET: u32 = 64;

/// A work item that makes upcalls.
#[pin_data]
pub(super) struct Runner {
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
    pub(super) fn new(evd: &Arc<Evd>, number: u32) -> Result<Arc<Self>> {
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

    /// Whether it is in an upcall that this task makes.
    pub(super) fn is_run_by(&self, task: usize) -> bool {
        self.task.load(Relaxed) == task
    }

    /// Lets go of the EVD, which is shut down.
    pub(super) fn end(&self) {
        let evd = self.evd.lock().take();
        drop(evd);
    }

    /// Makes an upcall.
    fn call(&self, upcall: &dyn Upcall, reason: UpcallReason<'_>) {
        self.task.store(task::current(), Relaxed);
        upcall.call(reason);
        self.task.store(0, Relaxed);
    }
}

/// What a runner finds.
enum NextUpcall {
    /// An event to hand out, and whether more are queued.
    Event(Arc<dyn Upcall>, Record, bool),
    /// Events of which the consumer is to be told.
    Arrived(Arc<dyn Upcall>),
    NoEvent,
    /// No upcalls, or enough others who make them: the runner has left.
    None,
}

impl Evd {
    /// Takes what a runner is to hand out, if it may.
    fn take_for(self: &Arc<Self>, runner: u32) -> NextUpcall {
        let upcalls = &self.wakeup.upcalls;
        // To the end: who takes an event is to hand it out, whatever the policy is then.
        let settings = upcalls.settings.lock();
        let decision = upcalls.state.may_take(runner);
        let (RunnerDecision::Run, Some(upcall)) = (decision, &settings.upcall) else {
            drop(settings);
            upcalls.finished(decision);
            return NextUpcall::None;
        };
        let mut consumer = self.consumer.lock();
        if settings.policy == Policy::Notify {
            self.arm_and_drain(&mut consumer);
            return match self.queue.ring.len() {
                0 => NextUpcall::NoEvent,
                _ => NextUpcall::Arrived(upcall.clone()),
            };
        }
        let mut popped = Record::default();
        let found = self.pop(&mut consumer, DrainLimit::All, &mut popped);
        let record = found
            .is_event()
            .then_some(popped)
            .or_else(|| self.check_and_pop(&mut consumer))
            .or_else(|| {
                self.arm_and_drain(&mut consumer);
                self.pop_queued(&mut consumer, &mut popped)
                    .then_some(popped)
            });
        let Some(record) = record else {
            return NextUpcall::NoEvent;
        };
        let more = self.queue.ring.len() != 0;
        if more && settings.policy == Policy::Many {
            // Another one takes the next while this one is in its upcall.
            upcalls.arrived();
        }
        NextUpcall::Event(upcall.clone(), record, more)
    }

    /// Makes upcalls for as long as there are events, up to the budget.
    fn make_upcalls(self: &Arc<Self>, runner: &Arc<Runner>) {
        for _ in 0..BUDGET {
            match self.take_for(runner.number) {
                NextUpcall::Event(upcall, record, more) => {
                    runner.call(&*upcall, UpcallReason::Event(&record, more));
                    continue;
                }
                // What the consumer leaves it knows of.
                NextUpcall::Arrived(upcall) => runner.call(&*upcall, UpcallReason::Arrived),
                NextUpcall::NoEvent => {}
                NextUpcall::None => return,
            }
            if self.has_finished(runner.number) {
                return;
            }
        }
        // Still away: it may be queued again.
        let _ = queue().enqueue(runner.clone());
    }

    /// A runner has nothing to do any more, unless something came meanwhile.
    fn has_finished(&self, runner: u32) -> bool {
        let decision = self.wakeup.upcalls.state.try_finish(runner);
        self.wakeup.upcalls.finished(decision);
        decision != RunnerDecision::Run
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
            evd.make_upcalls(&this);
        }
    }
}
