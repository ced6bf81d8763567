// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the receives of a Shared Receive Queue with a map.

use crate::rust::model::{
    completion::CompletionFlags,
    dto::{
        Dto,
        PostMark,
        Slot, //
    },
    event::Operation,
    shared_receives::SharedReceives,
};
use proptest::prelude::*;
use std::collections::{
    BTreeMap,
    VecDeque, //
};

fn storage(count: usize) -> Vec<Slot> {
    vec![Slot::vacant(); count]
}

fn dto(cookie: u64) -> Dto {
    Dto {
        cookie,
        operation: Operation::Receive,
        flags: CompletionFlags::default(),
        length: 7,
        posted: PostMark::NONE,
    }
}

#[test]
fn a_short_queue_keeps_its_slots() {
    let mut receives = SharedReceives::new(storage(4));
    let slots: Vec<_> = (0..4).map(|cookie| receives.post(dto(cookie))).collect();
    assert_eq!(receives.post(dto(9)), None);
    assert!(!receives.set_limit(3));
    assert!(!receives.set_limit(5));
    assert_eq!(receives.limit(), 4);
    let last = slots[3].expect("a slot");
    for slot in slots[..3].iter().flatten() {
        receives.complete(*slot);
    }
    assert!(receives.set_limit(1));
    assert_eq!(receives.post(dto(9)), None);
    assert_eq!(receives.complete(last), Some((dto(3), 4)));
    assert_eq!(receives.complete(last), None);
    assert!(receives.set_limit(4));
    assert_eq!((receives.limit(), receives.capacity()), (4, 4));
}

#[test]
fn held_receives_leave_no_room() {
    let mut receives = SharedReceives::new(storage(4));
    let slots: Vec<_> = (0..4)
        .filter_map(|cookie| receives.post(dto(cookie)))
        .collect();
    for slot in &slots[..3] {
        receives.complete(*slot);
        receives.hold();
    }
    assert_eq!((receives.posted(), receives.held()), (1, 3));
    assert_eq!(receives.post(dto(4)), None);
    assert!(!receives.set_limit(3));
    receives.release(1);
    assert!(receives.set_limit(3));
    assert_eq!(receives.post(dto(4)), None);
    assert!(receives.set_limit(4));
    assert!(receives.post(dto(4)).is_some());
    assert_eq!(receives.post(dto(5)), None);
    receives.release(9);
    assert_eq!(receives.held(), 0);
    assert!(receives.post(dto(5)).is_some());
}

#[test]
fn shorter_storage_is_returned() {
    let mut receives = SharedReceives::new(storage(4));
    let slot = receives.post(dto(5)).expect("a slot");
    assert_eq!(receives.grow(storage(3)).len(), 3);
    assert_eq!(receives.grow(storage(6)).len(), 4);
    assert_eq!((receives.capacity(), receives.limit()), (6, 4));
    assert!(receives.set_limit(6));
    assert_eq!(receives.complete(slot), Some((dto(5), 1)));
}

#[derive(Clone, Debug)]
enum Step {
    Post,
    Complete(usize),
    Limit(u32),
    Grow(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Post),
        3 => any::<usize>().prop_map(Step::Complete),
        1 => (0..40_u32).prop_map(Step::Limit),
        1 => (0..40_usize).prop_map(Step::Grow),
    ]
}

proptest! {
    #[test]
    fn each_receive_keeps_its_slot(
        capacity in 1..20_usize,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut receives = SharedReceives::new(storage(capacity));
        let mut posted = BTreeMap::new();
        let (mut limit, mut capacity) = (capacity as u32, capacity as u32);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Post => {
                    let dto = dto(number as u64);
                    let slot = receives.post(dto);
                    prop_assert_eq!(slot.is_some(), (posted.len() as u32) < limit);
                    if let Some(slot) = slot {
                        prop_assert!(slot < capacity);
                        prop_assert_eq!(posted.insert(slot, dto), None);
                    }
                }
                Step::Complete(any) => {
                    let slot = posted.keys().nth(any % posted.len().max(1)).copied();
                    let slot = slot.unwrap_or(any as u32);
                    let completed = receives.complete(slot).map(|(dto, _)| dto);
                    prop_assert_eq!(completed, posted.remove(&slot));
                }
                Step::Limit(wanted) => {
                    let fits = wanted <= capacity && posted.len() as u32 <= wanted;
                    prop_assert_eq!(receives.set_limit(wanted), fits);
                    limit = if fits { wanted } else { limit };
                }
                Step::Grow(count) => {
                    receives.grow(storage(count));
                    capacity = capacity.max(count as u32);
                }
            }
            prop_assert_eq!(receives.posted() as usize, posted.len());
            prop_assert_eq!((receives.limit(), receives.capacity()), (limit, capacity));
        }
    }
}

/// An operation on the queue pairs of a Shared Receive Queue. The first number selects one.
#[derive(Clone, Copy, Debug)]
enum Act {
    Create,
    Post,
    /// Lets a queue pair begin a message, if it fills none.
    Take(usize),
    /// Completes the message.
    Complete(usize),
    /// Takes the oldest completion.
    Poll,
    /// Destroys a queue pair, whose completions were all taken.
    Destroy(usize),
    /// Looks into the queue, which tells whether it holds more than one receive.
    Look,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        1 => Just(Act::Create),
        4 => Just(Act::Post),
        4 => any::<usize>().prop_map(Act::Take),
        3 => any::<usize>().prop_map(Act::Complete),
        3 => Just(Act::Poll),
        1 => any::<usize>().prop_map(Act::Destroy),
        1 => Just(Act::Look),
    ]
}

/// A queue pair.
struct Pair {
    id: u64,
    filled: Option<u32>,
    newest: u64,
}

/// A Shared Receive Queue and its queue pairs.
struct Model {
    receives: SharedReceives<Vec<Slot>>,
    pairs: Vec<Pair>,
    next_id: u64,
    /// Posted receives that no queue pair has taken.
    posted: VecDeque<u32>,
    /// Slots of completions, and their queue pairs.
    queue: VecDeque<(u32, u64)>,
    lost: usize,
}

impl Model {
    fn act(&mut self, act: Act) {
        let count = self.pairs.len();
        match act {
            Act::Create => {
                let (id, newest) = (self.next_id, self.receives.newest());
                self.next_id += 1;
                self.pairs.push(Pair {
                    id,
                    filled: None,
                    newest,
                });
            }
            Act::Post => self.posted.extend(self.receives.post(dto(0))),
            Act::Take(nth) if count != 0 => {
                let pair = &mut self.pairs[nth % count];
                pair.filled = pair.filled.or_else(|| self.posted.pop_front());
            }
            Act::Complete(nth) if count != 0 => {
                let pair = &mut self.pairs[nth % count];
                let id = pair.id;
                self.queue.extend(pair.filled.take().map(|slot| (slot, id)));
            }
            Act::Destroy(nth) if count != 0 => self.destroy(nth % count),
            Act::Poll => self.poll(),
            Act::Look => self.look(),
            Act::Take(_) | Act::Complete(_) | Act::Destroy(_) => {}
        }
    }

    fn poll(&mut self) {
        let Some((slot, id)) = self.queue.pop_front() else {
            return;
        };
        let (_, number) = self
            .receives
            .complete(slot)
            .expect("a receive is freed too early");
        for pair in self.pairs.iter_mut().filter(|pair| pair.id == id) {
            pair.newest = number;
        }
    }

    fn destroy(&mut self, nth: usize) {
        while self.queue.iter().any(|(_, id)| *id == self.pairs[nth].id) {
            self.poll();
        }
        self.lost += usize::from(self.pairs.remove(nth).filled.is_some());
        self.drop_lost();
    }

    fn look(&mut self) {
        if self.posted.len() <= 1 {
            let posts = self.receives.posts();
            self.receives.all_taken_before(posts);
        }
        self.drop_lost();
    }

    fn drop_lost(&mut self) {
        let newest = self.pairs.iter().map(|pair| pair.newest).min();
        let (number, mut next) = (newest.unwrap_or(self.receives.newest()), Some(0));
        let before = self.receives.posted();
        while let Some(from) = next {
            next = self.receives.drop_lost(from, number);
        }
        self.lost -= (before - self.receives.posted()) as usize;
    }
}

proptest! {
    /// Only lost receives are freed, and all that precede a completed one are once no queue pair is
    /// left.
    #[test]
    fn lost_receives_are_freed(acts in prop::collection::vec(act(), 0..300)) {
        let mut model = Model {
            receives: SharedReceives::new(storage(12)),
            pairs: Vec::new(),
            next_id: 0,
            posted: VecDeque::new(),
            queue: VecDeque::new(),
            lost: 0,
        };
        for act in acts {
            model.act(act);
            let filled = model.pairs.iter().filter(|pair| pair.filled.is_some()).count();
            let known = model.posted.len() + model.queue.len() + filled + model.lost;
            prop_assert_eq!(model.receives.posted() as usize, known);
        }
        // Another queue pair completes one after all others have gone.
        while !model.pairs.is_empty() {
            model.destroy(0);
        }
        // If none completes, a look into the nearly empty queue finds all but one.
        if model.posted.len() <= 1 {
            model.act(Act::Look);
            prop_assert!(model.receives.posted() <= 1, "{} receives", model.receives.posted());
        }
        if model.receives.posted() < model.receives.limit() {
            for act in [Act::Create, Act::Post] {
                model.act(act);
            }
            while !model.posted.is_empty() {
                [Act::Take(0), Act::Complete(0), Act::Poll].map(|act| model.act(act));
            }
            model.destroy(0);
            prop_assert_eq!((model.receives.posted(), model.lost), (0, 0));
        }
    }
}
