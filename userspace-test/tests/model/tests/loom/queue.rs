// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waiters of a CNO. Each trigger wakes one waiter. A waiter that leaves while triggers remain
//! wakes another one.

use super::{
    explore_some,
    rust::model::cno::{
        EvdSlot,
        EvdTable,
        SlotIndex, //
    },
};
use loom::{
    sync::{
        Arc,
        Mutex, //
    },
    thread,
};
use std::collections::VecDeque;

/// A CNO and its wait queue, whose waiters are woken one at a time.
struct Scene {
    /// Whether a waiter that leaves wakes another one for the remaining triggers.
    tells_on: bool,
    table: Mutex<EvdTable<Vec<EvdSlot>>>,
    /// Waiters in the wait queue.
    queue: Mutex<VecDeque<usize>>,
}

/// Result of a wait.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Found,
    GaveUp,
    /// Asleep until it is removed from the queue. (loom cannot continue if a thread sleeps for
    /// ever.)
    Asleep,
}

impl Scene {
    /// Returns a CNO with two EVDs, whose waiters are in the queue, and the slots of the EVDs.
    fn new(tells_on: bool) -> (Arc<Self>, [SlotIndex; 2]) {
        let mut table = EvdTable::new();
        assert_eq!(table.grow(vec![EvdSlot::VACANT; 16]), Ok(()));
        let slots = [7, 8].map(|evd| table.attach(evd).expect("a slot"));
        let scene = Self {
            tells_on,
            table: Mutex::new(table),
            queue: Mutex::new(VecDeque::from([0, 1])),
        };
        (Arc::new(scene), slots)
    }

    fn trigger(&self, slot: SlotIndex) {
        self.table.lock().expect("the CNO").trigger(slot);
        self.wake_one();
    }

    /// Removes the first waiter from the queue, even if it is about to leave.
    fn wake_one(&self) {
        self.queue.lock().expect("the queue").pop_front();
    }

    fn is_anything_left(&self) -> bool {
        self.table.lock().expect("the CNO").triggered() != 0
    }

    /// Runs a waiter that is in the queue. With `hurry` its time-out expires where it would sleep.
    fn wait(&self, me: usize, hurry: bool) -> End {
        let found = self.table.lock().expect("the CNO").take().is_some();
        if !found && !hurry {
            return End::Asleep;
        }
        let mut queue = self.queue.lock().expect("the queue");
        queue.retain(|other| *other != me);
        drop(queue);
        if self.tells_on && self.is_anything_left() {
            self.wake_one();
        }
        if found {
            End::Found
        } else {
            End::GaveUp
        }
    }

    /// Continues the waiters that fell asleep and were woken. Then checks that no waiter sleeps
    /// while there are triggers.
    fn go_on(&self, ends: &mut [End]) {
        let mut is_over = false;
        while !is_over {
            is_over = true;
            for (me, end) in ends.iter_mut().enumerate() {
                let sleeps = self.queue.lock().expect("the queue").contains(&me);
                if *end == End::Asleep && !sleeps {
                    self.queue.lock().expect("the queue").push_back(me);
                    *end = self.wait(me, false);
                    is_over = false;
                }
            }
        }
        let sleeps = ends.contains(&End::Asleep);
        assert!(!sleeps || !self.is_anything_left(), "a waiter sleeps on");
    }
}

/// Two waiters start while one EVD has triggered and another one triggers.
fn two_begin_to_wait(tells_on: bool) {
    explore_some(move || {
        let (scene, [first, second]) = Scene::new(tells_on);
        scene.table.lock().expect("the CNO").trigger(first);
        let waiters = [0, 1].map(|me| {
            let scene = scene.clone();
            thread::spawn(move || scene.wait(me, false))
        });
        let bringer = {
            let scene = scene.clone();
            thread::spawn(move || scene.trigger(second))
        };
        bringer.join().expect("the producer");
        scene.go_on(&mut waiters.map(|waiter| waiter.join().expect("a waiter")));
    });
}

#[test]
fn each_trigger_wakes_a_waiter() {
    two_begin_to_wait(true);
}

#[test]
#[should_panic(expected = "a waiter sleeps on")]
fn if_a_waiter_with_an_evd_wakes_no_other_one_sleeps_on() {
    two_begin_to_wait(false);
}

/// A waiter times out while an EVD triggers. Another one sleeps after it in the queue.
fn one_times_out(tells_on: bool) {
    explore_some(move || {
        let (scene, [slot, _]) = Scene::new(tells_on);
        let hasty = {
            let scene = scene.clone();
            thread::spawn(move || scene.wait(0, true))
        };
        let bringer = {
            let scene = scene.clone();
            thread::spawn(move || scene.trigger(slot))
        };
        bringer.join().expect("the producer");
        scene.go_on(&mut [hasty.join().expect("the waiter"), End::Asleep]);
    });
}

#[test]
fn a_waiter_that_times_out_leaves_the_trigger_to_another() {
    one_times_out(true);
}

#[test]
#[should_panic(expected = "a waiter sleeps on")]
fn if_a_waiter_that_times_out_wakes_no_other_one_sleeps_on() {
    one_times_out(false);
}
