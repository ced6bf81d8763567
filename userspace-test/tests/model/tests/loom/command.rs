// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Asynchronous commands: each is completed once, by its only owner, and none misses its event.

use super::{
    explore, explore_some,
    rust::model::command::{
        CancelResult,
        CommandState,
        WakeResult, //
    },
};
use loom::{
    sync::{
        atomic::{
            AtomicU32,
            Ordering, //
        },
        Arc,
        Mutex, //
    },
    thread, //
};

/// Error that a test introduces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// The producer wakes the command before it queues the event.
    WakesEarly,
    /// The owner clears the note after it has looked for events.
    ClearsLate,
    /// The canceller completes a command that it does not own.
    CompletesUnowned,
}

/// How a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Events,
    Cancelled,
    Expired,
}

/// A command that waits for a number of events.
struct World {
    flaw: Flaw,
    state: CommandState,
    threshold: u32,
    queued: AtomicU32,
    /// The command itself, which only the owner may touch; how it has ended.
    command: Mutex<Option<End>>,
}

impl World {
    /// Creates a command that its creator owns.
    fn new(flaw: Flaw, threshold: u32) -> Arc<Self> {
        Arc::new(Self {
            flaw,
            state: CommandState::owned(),
            threshold,
            queued: AtomicU32::new(0),
            command: Mutex::new(None),
        })
    }

    fn finish(&self, end: End) {
        let mut command = self.command.try_lock().expect("two owners");
        assert_eq!(*command, None, "completed twice");
        *command = Some(end);
        drop(command);
        self.state.finish();
    }

    /// Runs the command until it is parked or complete. The caller owns it.
    fn advance(&self) {
        loop {
            let notes = self.state.begin();
            let command = self.command.try_lock().expect("two owners");
            assert_eq!(*command, None, "runs although it is complete");
            let enough = self.queued.load(Ordering::Relaxed) >= self.threshold;
            drop(command);
            if enough {
                return self.finish(End::Events);
            }
            if notes.cancelled {
                return self.finish(End::Cancelled);
            }
            if notes.expired {
                return self.finish(End::Expired);
            }
            if self.flaw == Flaw::ClearsLate {
                self.state.begin();
            }
            if self.state.park() {
                return;
            }
        }
    }

    /// Acts on a wake-up. The task that runs the command takes place in the thread of the waker.
    fn woken(&self, result: WakeResult) {
        if result == WakeResult::Schedule {
            self.advance();
        }
    }

    fn produce(&self) {
        if self.flaw == Flaw::WakesEarly {
            let result = self.state.wake();
            self.queued.fetch_add(1, Ordering::Relaxed);
            return self.woken(result);
        }
        self.queued.fetch_add(1, Ordering::Relaxed);
        self.woken(self.state.wake());
    }

    fn expire(&self) {
        self.woken(self.state.expire());
    }

    fn cancel(&self) {
        match self.state.cancel() {
            CancelResult::Complete => self.finish(End::Cancelled),
            CancelResult::Noted if self.flaw == Flaw::CompletesUnowned => {
                self.finish(End::Cancelled)
            }
            CancelResult::Noted | CancelResult::Done => {}
        }
    }
}

/// Runs these parties beside the thread that issues the command. Returns how it has ended.
fn outcome(world: &Arc<World>, parties: &[fn(&World)]) -> Option<End> {
    let mut threads = Vec::new();
    for party in parties {
        let (world, party) = (world.clone(), *party);
        threads.push(thread::spawn(move || party(&world)));
    }
    let issuer = world.clone();
    threads.push(thread::spawn(move || issuer.advance()));
    for thread in threads {
        thread.join().expect("a thread");
    }
    let end = *world.command.lock().expect("no thread has panicked");
    end
}

fn no_event_is_missed(flaw: Flaw) {
    explore(move || {
        let world = World::new(flaw, 1);
        assert_eq!(outcome(&world, &[World::produce]), Some(End::Events));
    });
}

#[test]
fn an_event_completes_the_command() {
    no_event_is_missed(Flaw::None);
}

#[test]
#[should_panic]
fn a_wake_up_before_the_event_is_not_enough() {
    no_event_is_missed(Flaw::WakesEarly);
}

#[test]
#[should_panic]
fn a_note_that_is_cleared_after_the_look_is_lost() {
    no_event_is_missed(Flaw::ClearsLate);
}

#[test]
fn two_producers_reach_the_threshold() {
    explore_some(|| {
        let world = World::new(Flaw::None, 2);
        let end = outcome(&world, &[World::produce, World::produce]);
        assert_eq!(end, Some(End::Events));
    });
}

#[test]
fn a_command_without_its_event_stays_parked() {
    explore(|| {
        let world = World::new(Flaw::None, 2);
        assert_eq!(outcome(&world, &[World::produce]), None);
        // It is parked, not lost.
        assert_eq!(world.state.wake(), WakeResult::Schedule);
    });
}

fn cancel_beside_an_event(flaw: Flaw) {
    explore_some(move || {
        let world = World::new(flaw, 1);
        let end = outcome(&world, &[World::produce, World::cancel]);
        assert!(matches!(end, Some(End::Events | End::Cancelled)), "{end:?}");
    });
}

#[test]
fn a_cancel_beside_an_event_completes_the_command_once() {
    cancel_beside_an_event(Flaw::None);
}

#[test]
#[should_panic]
fn a_canceller_that_is_not_the_owner_must_not_complete() {
    cancel_beside_an_event(Flaw::CompletesUnowned);
}

#[test]
fn two_cancels_complete_the_command_once() {
    explore_some(|| {
        let world = World::new(Flaw::None, 1);
        let end = outcome(&world, &[World::cancel, World::cancel]);
        assert_eq!(end, Some(End::Cancelled));
    });
}

#[test]
fn a_time_out_beside_a_cancel_completes_the_command_once() {
    explore_some(|| {
        let world = World::new(Flaw::None, 1);
        let end = outcome(&world, &[World::expire, World::cancel]);
        assert!(
            matches!(end, Some(End::Expired | End::Cancelled)),
            "{end:?}"
        );
    });
}

#[test]
fn a_time_out_beside_an_event_completes_the_command_once() {
    explore_some(|| {
        let world = World::new(Flaw::None, 1);
        let end = outcome(&world, &[World::expire, World::produce]);
        assert!(matches!(end, Some(End::Expired | End::Events)), "{end:?}");
    });
}
