// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The count of the receives in a Shared Receive Queue, beside a queue.

use crate::bmi::engine::SharedReceives;
use proptest::prelude::*;

/// Receives that the queue can hold.
const LIMIT: usize = 12;
/// Receives for each connection.
const WINDOW: usize = 5;

/// A step of the queue's device, or of the home.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Messages arrive.
    Arrive(usize),
    /// A connection takes receives with it.
    Lose(usize),
    /// The waiting thread dequeues events, which are not processed yet.
    Dequeue(usize),
    /// An event is processed: its receive is posted again.
    Process,
    /// The same without memory, so that no receive is posted.
    Fail,
    /// A connection begins, and posts the receives that are lacking.
    Begin,
    /// A connection ends, and the receives are counted again.
    End,
}

/// The queue, its events and the home.
struct Scene {
    count: SharedReceives,
    /// Whether the count includes the events that are dequeued.
    complete: bool,
    posted: usize,
    queued: usize,
    dequeued: usize,
    connections: usize,
    refused: usize,
}

impl Scene {
    fn new(complete: bool) -> Self {
        Self {
            count: SharedReceives::new(LIMIT),
            complete,
            posted: 0,
            queued: 0,
            dequeued: 0,
            connections: 0,
            refused: 0,
        }
    }

    /// Posts a receive. Returns whether the queue takes it: those with queued events have room.
    fn post(&mut self) -> bool {
        let taken = self.posted + self.queued < LIMIT;
        if taken {
            self.posted += 1;
            self.count.was_posted();
        } else {
            self.refused += 1;
        }
        taken
    }

    /// Posts the receives that are lacking. Returns whether the queue takes all of them.
    fn fill(&mut self) -> bool {
        let wanted = WINDOW * self.connections;
        while self.count.lacking(wanted) > 0 {
            if !self.post() {
                return false;
            }
        }
        true
    }

    /// Returns the receives that exist: those of the queue, and those with events.
    fn existing(&self) -> usize {
        self.posted + self.queued + self.dequeued
    }

    /// Returns the receives that are counted.
    fn counted(&self) -> usize {
        LIMIT - self.count.lacking(LIMIT)
    }

    fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Arrive(most) => {
                let arrived = most.min(self.posted);
                self.posted -= arrived;
                self.queued += arrived;
            }
            Step::Lose(most) => self.posted -= most.min(self.posted),
            Step::Dequeue(most) => {
                let taken = most.min(self.queued);
                self.queued -= taken;
                self.dequeued += taken;
            }
            Step::Process if self.dequeued > 0 => {
                self.dequeued -= 1;
                self.count.has_ended();
                return self.post();
            }
            Step::Process => {}
            Step::Fail if self.dequeued > 0 => {
                self.dequeued -= 1;
                self.count.has_ended();
            }
            Step::Fail => {}
            Step::Begin => {
                self.connections += 1;
                return self.fill();
            }
            Step::End => {
                self.connections = self.connections.saturating_sub(1);
                let dequeued = if self.complete { self.dequeued } else { 0 };
                self.count.recount(self.posted + self.queued, dequeued);
                return self.fill();
            }
        }
        true
    }
}

fn steps(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..LIMIT).prop_map(Step::Arrive),
        (1..WINDOW).prop_map(Step::Lose),
        (1..LIMIT).prop_map(Step::Dequeue),
        Just(Step::Process),
        Just(Step::Process),
        Just(Step::Fail),
        Just(Step::Begin),
        Just(Step::End),
    ];
    proptest::collection::vec(step, count)
}

proptest! {
    #[test]
    fn the_queue_refuses_no_receive(steps in steps(0..100)) {
        let mut scene = Scene::new(true);
        for step in steps {
            prop_assert!(scene.step(step), "{step:?}");
        }
        // After a new count, the queue has what its connections need.
        scene.connections += 1;
        prop_assert!(scene.step(Step::End));
        prop_assert!(scene.existing() >= LIMIT.min(WINDOW * scene.connections));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Between two counts only lost receives differ.
    #[test]
    fn the_count_agrees_after_many_failures(steps in steps(500..1500)) {
        let mut scene = Scene::new(true);
        let mut lost = 0;
        for step in steps {
            let before = scene.existing();
            prop_assert!(scene.step(step), "{step:?}");
            lost = match step {
                Step::Lose(_) => lost + before - scene.existing(),
                Step::End => 0,
                _ => lost,
            };
            prop_assert_eq!(scene.counted(), scene.existing() + lost, "{:?}", step);
        }
    }
}

/// Ends connections while a batch of events is processed, and begins others.
fn end_amid_batches(scene: &mut Scene) -> bool {
    let began = (0..3).all(|_| scene.step(Step::Begin));
    for _ in 0..3 {
        for step in [
            Step::Arrive(LIMIT),
            Step::Dequeue(LIMIT),
            Step::End,
            Step::Begin,
        ] {
            scene.step(step);
        }
        while scene.dequeued > 0 {
            scene.step(Step::Process);
        }
    }
    began && scene.step(Step::Begin)
}

#[test]
fn dequeued_receives_are_posted_still() {
    let mut scene = Scene::new(true);
    assert!(end_amid_batches(&mut scene));
    assert_eq!(scene.refused, 0);
}

#[test]
fn without_dequeued_receives_the_count_drifts() {
    let mut scene = Scene::new(false);
    assert!(
        !end_amid_batches(&mut scene),
        "the last connection finds the queue full"
    );
    // Each refusal tells the home that all receives are there.
    scene.count.was_refused();
    assert!(scene.step(Step::Begin));
}
