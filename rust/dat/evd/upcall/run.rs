// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Runners: work items that take events and make upcalls.

use super::{
    Policy,
    Upcall,
    UpcallReason, //
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
        workqueue::upcall_queue, //
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

/// Largest number of events that a runner takes before it lets other work run.
const UPCALL_BUDGET: u32 = 64;

/// Work item that makes upcalls.
#[pin_data]
pub(super) struct Runner {
    number: u32,
    /// `None` after the EVD was shut down.
    #[pin]
    evd: Mutex<Option<Arc<Evd>>>,
    /// Task that is in an upcall, or 0.
    task: Atomic<usize>,
    #[pin]
    work: Work<Runner>,
}

impl Runner {
    /// Creates a runner.
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

    /// Returns whether this task is in an upcall of the runner.
    pub(super) fn is_run_by(&self, task: usize) -> bool {
        self.task.load(Relaxed) == task
    }

    /// Releases the EVD, which was shut down.
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

/// Next upcall of a runner.
enum NextUpcall {
    /// Upcall for an event. The flag says whether more events are queued.
    Event(Arc<dyn Upcall>, Record, bool),
    /// Upcall that reports queued events.
    Arrived(Arc<dyn Upcall>),
    /// No event is queued.
    NoEvent,
    /// Upcalls are disabled, or enough other runners make them. The runner has finished.
    None,
}

impl Evd {
    /// Takes the next event for a runner, if the runner may take one.
    fn take_for(self: &Arc<Self>, runner: u32) -> NextUpcall {
        let upcalls = &self.wakeup.upcalls;
        // Hold the lock to the end: a taken event must get its upcall, even if the policy changes.
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
                self.pop_from_ring(&mut consumer, &mut popped)
                    .then_some(popped)
            });
        let Some(record) = record else {
            return NextUpcall::NoEvent;
        };
        let more = self.queue.ring.len() != 0;
        if more && settings.policy == Policy::Many {
            // Let another runner take the next event while this one makes its upcall.
            upcalls.arrived();
        }
        NextUpcall::Event(upcall.clone(), record, more)
    }

    /// Makes upcalls while events are queued, up to the budget.
    fn make_upcalls(self: &Arc<Self>, runner: &Arc<Runner>) {
        for _ in 0..UPCALL_BUDGET {
            match self.take_for(runner.number) {
                NextUpcall::Event(upcall, record, more) => {
                    runner.call(&*upcall, UpcallReason::Event(&record, more));
                    continue;
                }
                // The events stay queued until the consumer dequeues them. No further upcall
                // reports them.
                NextUpcall::Arrived(upcall) => runner.call(&*upcall, UpcallReason::Arrived),
                NextUpcall::NoEvent => {}
                NextUpcall::None => return,
            }
            if self.has_finished(runner.number) {
                return;
            }
        }
        // The runner still counts as active, so no other thread queues it.
        let _ = upcall_queue().enqueue(runner.clone());
    }

    /// Finishes a runner that has found no event. Returns `false` if an event arrived in the
    /// meantime.
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
            // The consumer may be the storage to which memory is written back.
            task::without_io(|| evd.make_upcalls(&this));
        }
    }
}
