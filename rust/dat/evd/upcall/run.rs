// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Runners: work items that take events and make upcalls.

use super::{
    Policy,
    Upcall,
    UpcallContext,
    UpcallReason, //
};
use crate::{
    dat::{
        evd::{
            dequeue::TakeResult,
            Evd, //
        },
        prelude::*, //
    },
    model::{
        direct_event::DrainLimit,
        event::Record,
        upcall::{
            take_turn,
            RunnerDecision,
            RunnerStep,
            TurnEnd, //
        },
    },
    sys::{
        lock::{
            new_spinlock_irq,
            SpinLockIrq, //
        },
        task,
        workqueue::cancel_sync, //
    },
};
use kernel::{
    impl_has_work, static_lock_class,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};

/// Work item that makes upcalls.
#[pin_data]
pub(super) struct Runner {
    number: u32,
    context: UpcallContext,
    /// `None` after the EVD was shut down.
    #[pin]
    evd: SpinLockIrq<Option<Arc<Evd>>>,
    /// Task that is in an upcall, or 0.
    task: Atomic<usize>,
    #[pin]
    work: Work<Runner>,
}

impl Runner {
    /// Creates a runner.
    pub(super) fn new(evd: &Arc<Evd>, context: UpcallContext, number: u32) -> Result<Arc<Self>> {
        // A thread waits for the end of those in soft interrupts, also in an upcall that sleeps.
        let class = match context {
            UpcallContext::Process => static_lock_class!(),
            UpcallContext::Bh { .. } => static_lock_class!(),
        };
        Arc::pin_init(
            pin_init!(Self {
                number,
                context,
                evd <- new_spinlock_irq!(Some(evd.clone()), "Runner::evd"),
                task: Atomic::new(0),
                work <- Work::new(c"Runner::work", class),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns whether this task is in an upcall of the runner.
    pub(super) fn is_run_by(&self, task: usize) -> bool {
        self.task.load(Relaxed) == task
    }

    /// Releases the EVD, which was shut down. All upcalls have returned.
    ///
    /// Context: process; sleeps.
    pub(super) fn end(self: &Arc<Self>) {
        if self.context != UpcallContext::Process {
            // The last reference to an EVD must not be dropped in a soft interrupt.
            cancel_sync(self);
        }
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
    /// No event was found before the drain used up its budget. More completions may be queued.
    LookAgain,
    /// Upcalls are disabled, or enough other runners make them. The runner has finished.
    None,
}

impl Evd {
    /// Takes the next event for a runner, if the runner may take one. If none `was_left` after the
    /// last one, the completion queues are armed before they are polled again.
    fn take_for(self: &Arc<Self>, runner: u32, was_left: bool) -> NextUpcall {
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
        // With a CNO, an event that follows the arming would trigger it.
        let found = match was_left || self.wakeup.link.is_live() {
            true => self.pop(&mut consumer, DrainLimit::All, &mut popped),
            false => TakeResult::Nothing,
        };
        if matches!(found, TakeResult::BudgetExhausted) {
            return NextUpcall::LookAgain;
        }
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

    /// Makes the next upcall of a runner, if there is an event for it. Sets `is_left` to whether
    /// another event is queued.
    fn step(self: &Arc<Self>, runner: &Runner, is_left: &mut bool) -> RunnerStep {
        match self.take_for(runner.number, core::mem::replace(is_left, true)) {
            NextUpcall::Event(upcall, record, more) => {
                runner.call(&*upcall, UpcallReason::Event(&record, more));
                *is_left = more;
                return RunnerStep::Next;
            }
            // The events stay queued until the consumer dequeues them. No further upcall reports
            // them.
            NextUpcall::Arrived(upcall) => runner.call(&*upcall, UpcallReason::Arrived),
            NextUpcall::NoEvent => {}
            NextUpcall::LookAgain => return RunnerStep::Next,
            NextUpcall::None => return RunnerStep::Finished,
        }
        match self.has_finished(runner.number) {
            true => RunnerStep::Finished,
            false => RunnerStep::Next,
        }
    }

    /// Makes upcalls while events are queued, up to the budget.
    fn make_upcalls(self: &Arc<Self>, runner: &Arc<Runner>) {
        let mut is_left = true;
        match take_turn(runner.context.budget(), || self.step(runner, &mut is_left)) {
            TurnEnd::Finished => {}
            // The runner still counts as active, so no other thread queues it.
            TurnEnd::QueueAgain => {
                let _ = runner.context.queue().enqueue(runner.clone());
            }
        }
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
        let Some(evd) = evd else {
            return;
        };
        match this.context {
            // The consumer may be the storage to which memory is written back.
            UpcallContext::Process => task::without_io(|| evd.make_upcalls(&this)),
            UpcallContext::Bh { .. } => evd.make_upcalls(&this),
        }
    }
}
