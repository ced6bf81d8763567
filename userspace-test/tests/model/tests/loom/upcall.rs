// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Upcalls: each event gets one, no more run at once than the policy allows, and none starts after
//! a teardown.

use super::{
    explore_some,
    rust::model::{
        atomic::AtomicU64,
        event::Record,
        ring::{
            words_for,
            Ring,
            RingConsumer,
            RingProducer, //
        },
        upcall::{
            take_turn,
            RunnerDecision,
            RunnerStep,
            TurnEnd,
            UpcallState, //
        },
    },
};
use loom::{
    sync::{
        atomic::{
            fence,
            AtomicBool,
            AtomicU32,
            Ordering, //
        },
        Arc,
        Mutex, //
    },
    thread, //
};

/// Events of a turn.
const BUDGET: u32 = 1;

loom::thread_local! {
    static CALLED_BY_ME: std::cell::Cell<u32> = std::cell::Cell::new(0);
}

type Words = std::sync::Arc<[AtomicU64]>;

/// Error that a test introduces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// The producer of an event reads the state without a barrier after the event.
    LooksEarly,
    /// The thread that enables upcalls does not notify afterwards.
    OpensInSilence,
    /// A runner asks whether it may stay before it takes the lock of the policy.
    StaysUnlocked,
    /// A teardown disables upcalls and does not wait for the runners.
    WaitsForNobody,
    /// A runner that has found no event leaves without checking once more when it was called.
    LeavesAnyway,
    /// A runner whose budget is used up is not queued again.
    ForgetsTheRest,
}

/// An EVD with upcalls.
struct World {
    flaw: Flaw,
    state: UpcallState,
    /// Largest number of upcalls at once, and the lock of the policy.
    policy: Mutex<u32>,
    ring: Ring,
    producer: Mutex<RingProducer<Words>>,
    consumer: Mutex<RingConsumer<Words>>,
    /// Number of upcalls that have started and not returned.
    running: AtomicU32,
    called: AtomicU32,
    /// The teardown has returned, so no upcall may run.
    gone: AtomicBool,
}

impl World {
    fn new(flaw: Flaw, max_active: u32) -> Self {
        let words = words_for(4).expect("a length");
        let storage: Words = (0..words).map(|_| AtomicU64::new(0)).collect();
        let (ring, producer, consumer) = Ring::new(storage, 4).expect("a ring");
        let state = UpcallState::new();
        if max_active > 0 {
            state.open(max_active);
        }
        Self {
            flaw,
            state,
            policy: Mutex::new(max_active),
            ring,
            producer: Mutex::new(producer),
            consumer: Mutex::new(consumer),
            running: AtomicU32::new(0),
            called: AtomicU32::new(0),
            gone: AtomicBool::new(false),
        }
    }

    /// Queues an event. Runs a runner on this thread afterwards if one has to be queued.
    fn bring(&self) {
        let record: Record = [1; 8];
        let mut producer = self.producer.lock().expect("the producers");
        self.ring.push(&mut producer, &record).expect("room");
        drop(producer);
        if self.flaw != Flaw::LooksEarly {
            // The kernel rings the EVD's doorbell here.
            fence(Ordering::SeqCst);
        }
        self.call();
    }

    fn call(&self) {
        if let Some(runner) = self.state.notify() {
            self.run(runner);
        }
    }

    /// Runs a runner in turns of the budget, until it has finished.
    fn run(&self, runner: u32) {
        loop {
            let before = self.called_by_me();
            let end = take_turn(BUDGET, || self.step(runner));
            assert!(self.called_by_me() - before <= BUDGET, "a turn is too long");
            if end == TurnEnd::Finished || self.flaw == Flaw::ForgetsTheRest {
                return;
            }
        }
    }

    fn step(&self, runner: u32) -> RunnerStep {
        match self.take(runner) {
            Some(true) => return RunnerStep::Next,
            Some(false) if self.flaw == Flaw::LeavesAnyway => {
                while self.state.try_finish(runner) == RunnerDecision::Run {}
                return RunnerStep::Finished;
            }
            Some(false) => {}
            None => return RunnerStep::Finished,
        }
        match self.state.try_finish(runner) {
            RunnerDecision::Run => RunnerStep::Next,
            RunnerDecision::Finished { .. } => RunnerStep::Finished,
        }
    }

    /// Returns the number of upcalls that this thread has made.
    fn called_by_me(&self) -> u32 {
        CALLED_BY_ME.with(|called| called.get())
    }

    /// Takes an event and makes its upcall. Returns `false` if there is no event, `None` if the
    /// runner has left.
    fn take(&self, runner: u32) -> Option<bool> {
        if self.flaw == Flaw::StaysUnlocked && self.state.may_take(runner) != RunnerDecision::Run {
            return None;
        }
        let policy = self.policy.lock().expect("the policy");
        if self.flaw != Flaw::StaysUnlocked && self.state.may_take(runner) != RunnerDecision::Run {
            return None;
        }
        let limit = *policy;
        let event = {
            let mut consumer = self.consumer.lock().expect("the consumers");
            self.ring.pop(&mut consumer)
        };
        if event.is_none() {
            return Some(false);
        }
        assert!(limit > 0, "taken after a disable");
        let before = self.running.fetch_add(1, Ordering::SeqCst);
        drop(policy);
        assert!(
            before < limit,
            "more upcalls at once than the policy allows"
        );
        assert!(!self.gone.load(Ordering::SeqCst), "called after a teardown");
        self.called.fetch_add(1, Ordering::SeqCst);
        CALLED_BY_ME.with(|called| called.set(called.get() + 1));
        // Lets another upcall start.
        thread::yield_now();
        assert!(
            !self.gone.load(Ordering::SeqCst),
            "still there after a teardown"
        );
        self.running.fetch_sub(1, Ordering::SeqCst);
        Some(true)
    }

    /// Changes the policy as the kernel does. Runners that exceed the new maximum leave
    /// first.
    fn change(&self, max_active: u32) {
        {
            let mut policy = self.policy.lock().expect("the policy");
            self.state.close();
            *policy = max_active;
            if max_active > 0 {
                self.state.open(max_active);
            }
        }
        fence(Ordering::SeqCst);
        if max_active > 0 && self.flaw != Flaw::OpensInSilence {
            self.call();
        }
    }

    fn tear_down(&self) {
        self.change(0);
        while self.flaw != Flaw::WaitsForNobody && !self.state.is_idle() {
            thread::yield_now();
        }
        self.gone.store(true, Ordering::SeqCst);
    }

    fn left(&self) -> u32 {
        self.ring.len()
    }
}

type Act = fn(&World);

/// Runs the actions concurrently, then checks the result.
fn play(flaw: Flaw, max_active: u32, acts: &'static [Act], check: fn(&World)) {
    explore_some(move || {
        let world = Arc::new(World::new(flaw, max_active));
        let threads: Vec<_> = acts
            .iter()
            .map(|act| {
                let world = world.clone();
                thread::spawn(move || act(&world))
            })
            .collect();
        for thread in threads {
            thread.join().expect("an action");
        }
        assert!(world.state.is_idle(), "a runner never leaves");
        check(&world);
    });
}

fn bring(world: &World) {
    world.bring();
}

fn bring_two(world: &World) {
    world.bring();
    world.bring();
}

fn disable_and_enable(world: &World) {
    world.change(0);
    world.change(1);
}

fn enable(world: &World) {
    world.change(1);
}

fn tear_down(world: &World) {
    world.tear_down();
}

fn two_called(world: &World) {
    assert_eq!(
        world.called.load(Ordering::SeqCst),
        2,
        "an event is forgotten"
    );
}

fn two_called_or_left(world: &World) {
    let called = world.called.load(Ordering::SeqCst);
    assert_eq!(called + world.left(), 2, "an event is lost");
}

fn one_at_a_time(flaw: Flaw) {
    play(flaw, 1, &[bring, bring], two_called);
}

#[test]
fn one_upcall_at_a_time_for_each_event() {
    one_at_a_time(Flaw::None);
}

#[test]
#[should_panic(expected = "an event is forgotten")]
fn a_runner_that_leaves_without_a_recheck_loses_an_event() {
    one_at_a_time(Flaw::LeavesAnyway);
}

#[test]
fn two_upcalls_at_once_for_each_event() {
    play(Flaw::None, 2, &[bring, bring], two_called);
}

fn enabled_during_arrivals(flaw: Flaw) {
    play(flaw, 0, &[bring_two, enable], two_called);
}

#[test]
fn enabling_reports_events_that_arrived_before() {
    enabled_during_arrivals(Flaw::None);
}

#[test]
#[should_panic(expected = "an event is forgotten")]
fn without_a_barrier_after_the_event_it_is_lost() {
    enabled_during_arrivals(Flaw::LooksEarly);
}

#[test]
#[should_panic(expected = "an event is forgotten")]
fn enabling_without_a_notification_loses_events() {
    enabled_during_arrivals(Flaw::OpensInSilence);
}

fn disabled_during_arrivals(flaw: Flaw) {
    play(flaw, 1, &[bring_two, disable_and_enable], two_called);
}

#[test]
fn a_short_disable_loses_no_event() {
    disabled_during_arrivals(Flaw::None);
}

#[test]
#[should_panic(expected = "taken after a disable")]
fn a_runner_that_checks_without_the_lock_takes_an_event_after_a_disable() {
    disabled_during_arrivals(Flaw::StaysUnlocked);
}

#[test]
fn a_lower_maximum_is_never_exceeded() {
    play(Flaw::None, 2, &[bring, bring, enable], two_called);
}

fn torn_down(flaw: Flaw) {
    play(flaw, 1, &[bring, bring, tear_down], two_called_or_left);
}

#[test]
fn no_upcall_follows_a_teardown() {
    torn_down(Flaw::None);
}

#[test]
#[should_panic(expected = "after a teardown")]
fn a_teardown_that_does_not_wait_is_followed_by_an_upcall() {
    torn_down(Flaw::WaitsForNobody);
}

#[test]
#[should_panic(expected = "a runner never leaves")]
fn a_runner_that_is_not_queued_again_after_its_budget_forgets_events() {
    one_at_a_time(Flaw::ForgetsTheRest);
}
