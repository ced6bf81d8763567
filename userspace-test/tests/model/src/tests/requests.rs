// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the order of requests with a list, on a device that completes them in order.

use crate::rust::model::{
    completion::{
        CompletionFlags,
        WakeMode, //
    },
    dto::{
        Dto,
        Slot, //
    },
    event::Operation,
    requests::{
        interval,
        Posted,
        Requests, //
    },
};
use proptest::prelude::*;
use std::collections::VecDeque;

fn requests(capacity: usize) -> Requests<Vec<Slot>> {
    Requests::new(vec![Slot::vacant(); capacity], true)
}

fn numbered_after(last: u32, capacity: usize) -> Requests<Vec<Slot>> {
    Requests::numbered_after(vec![Slot::vacant(); capacity], true, last)
}

/// Returns the flags of a DTO with these bits.
fn flags(bits: u32) -> CompletionFlags {
    CompletionFlags::of_dto(bits, Operation::RdmaWrite, WakeMode::Unsignalled).expect("flags")
}

fn write(cookie: u64, bits: u32) -> Dto {
    Dto {
        cookie,
        operation: Operation::RdmaWrite,
        flags: flags(bits),
        length: 0,
        posted_at: 0,
    }
}

/// Returns a request whose success produces no event.
fn suppressed(cookie: u64) -> Dto {
    write(cookie, 1)
}

/// Posts a request, which has to find a slot.
fn post(requests: &mut Requests<Vec<Slot>>, dto: Dto) -> Posted {
    requests.post(dto).expect("a slot")
}

/// Retires all requests before the one in `slot`. Returns their cookies.
fn retired(requests: &mut Requests<Vec<Slot>>, slot: u32) -> Vec<u64> {
    std::iter::from_fn(|| requests.retire_before(slot))
        .map(|(_, dto)| dto.cookie)
        .collect()
}

#[test]
fn one_in_a_quarter_is_signalled_and_one_in_sixteen() {
    for (capacity, expected) in [
        (0, 0),
        (3, 0),
        (4, 1),
        (7, 1),
        (8, 2),
        (63, 15),
        (64, 16),
        (68, 16),
        (1 << 15, 16),
    ] {
        assert_eq!(interval(capacity), expected, "of {capacity}");
    }
    // In 40 slots one of ten is signalled, and the last.
    let mut queue = requests(40);
    let signalled: Vec<u64> = (1..=40)
        .filter(|n| post(&mut queue, suppressed(*n)).signalled)
        .collect();
    assert_eq!(signalled, [10, 20, 30, 40]);
    assert_eq!(queue.post(suppressed(41)), None);
}

#[test]
fn short_queues_are_signalled() {
    for capacity in 1..8 {
        let mut queue = requests(capacity);
        for n in 0..capacity {
            assert!(post(&mut queue, suppressed(n as u64)).signalled);
        }
    }
}

#[test]
fn only_requests_without_event_are_unsignalled() {
    let mut queue = requests(64);
    // The default, UNSIGNALLED, and BARRIER_FENCE.
    for bits in [0, 4, 8] {
        assert!(post(&mut queue, write(0, bits)).signalled);
    }
    for bits in [1, 1 | 4, 1 | 8] {
        assert!(!post(&mut queue, write(0, bits)).signalled);
    }
    for operation in [
        Operation::Send,
        Operation::SendWithInvalidate,
        Operation::RdmaRead,
        Operation::RdmaReadToRmr,
        Operation::RdmaWriteImmed,
        Operation::FetchAdd,
        Operation::CmpSwap,
    ] {
        let dto = Dto {
            operation,
            ..suppressed(0)
        };
        assert!(!post(&mut queue, dto).signalled, "{operation:?}");
    }
    for operation in [
        Operation::BindMw,
        Operation::LmrFmr,
        Operation::LmrInvalidate,
    ] {
        let dto = Dto {
            operation,
            ..suppressed(0)
        };
        assert!(post(&mut queue, dto).signalled, "{operation:?}");
    }
    assert!(post(&mut queue, Dto::marker()).signalled);
}

#[test]
fn all_are_signalled_for_other_drivers() {
    let mut queue = Requests::new(vec![Slot::vacant(); 64], false);
    for n in 0..64 {
        assert!(post(&mut queue, suppressed(n)).signalled);
        assert!(!queue.has_open_end());
    }
}

#[test]
fn a_completion_retires_the_earlier_ones_in_order() {
    let mut queue = requests(64);
    let _ = (1..=3).map(|n| post(&mut queue, suppressed(n))).count();
    let fourth = post(&mut queue, write(4, 0)).slot;
    let fifth = post(&mut queue, suppressed(5)).slot;
    let sixth = post(&mut queue, write(6, 0)).slot;
    assert_eq!(retired(&mut queue, fourth), [1, 2, 3]);
    assert_eq!(queue.complete(fourth), Some(write(4, 0)));
    assert_eq!(queue.outstanding(), 2);
    // An unsignalled one that fails completes itself.
    assert_eq!(retired(&mut queue, fifth), []);
    assert_eq!(queue.complete(fifth), Some(suppressed(5)));
    assert_eq!(retired(&mut queue, sixth), []);
    assert_eq!(queue.complete(sixth), Some(write(6, 0)));
    assert_eq!(queue.outstanding(), 0);
    // No request is in flight in this slot.
    assert_eq!(queue.retire_before(sixth), None);
}

#[test]
fn a_slot_that_is_taken_again_is_not_retired_by_an_earlier_request() {
    let mut queue = requests(64);
    let first = post(&mut queue, suppressed(1)).slot;
    let second = post(&mut queue, write(2, 0)).slot;
    assert_eq!(queue.complete(first), Some(suppressed(1)));
    assert_eq!(post(&mut queue, suppressed(3)).slot, first);
    assert_eq!(retired(&mut queue, second), []);
    assert_eq!(queue.outstanding(), 2);
}

#[test]
fn numbers_wrap() {
    for last in [0, u32::MAX / 2 - 9, u32::MAX - 20] {
        let mut queue = numbered_after(last, 64);
        for n in 0..40 {
            post(&mut queue, suppressed(n));
            assert!(queue.has_open_end());
            let last = post(&mut queue, write(n, 0)).slot;
            assert!(!queue.has_open_end());
            assert_eq!(retired(&mut queue, last), [n]);
            queue.complete(last);
        }
    }
}

#[test]
fn a_marker_closes_an_open_end() {
    let mut queue = requests(8);
    assert!(!queue.has_open_end());
    assert!(!post(&mut queue, suppressed(1)).signalled);
    assert!(queue.has_open_end());
    let marker = post(&mut queue, Dto::marker()).slot;
    assert!(!queue.has_open_end());
    assert_eq!(queue.outstanding(), 2);
    assert_eq!(queue.outstanding_of_consumer(), 1);
    assert_eq!(retired(&mut queue, marker), [1]);
    assert_eq!(queue.outstanding_of_consumer(), 0);
    assert_eq!(queue.complete(marker), Some(Dto::marker()));
    assert_eq!(queue.outstanding(), 0);
    assert_eq!(queue.outstanding_of_consumer(), 0);
}

#[test]
fn requests_rest_between_posts() {
    let mut queue = requests(8);
    for _ in 0..2 {
        post(&mut queue, suppressed(1));
        assert!(!queue.rests());
        assert!(queue.rests());
        assert!(queue.rests());
    }
}

#[test]
fn an_end_without_marker_is_given_up() {
    let mut queue = requests(64);
    assert_eq!(queue.give_up_end(), None);
    for n in [1, 2] {
        post(&mut queue, suppressed(n));
    }
    let third = post(&mut queue, write(3, 0)).slot;
    for n in [4, 5] {
        post(&mut queue, suppressed(n));
    }
    let end: Vec<u64> = std::iter::from_fn(|| queue.give_up_end())
        .map(|(_, dto)| dto.cookie)
        .collect();
    assert_eq!(end, [5, 4]);
    assert!(!queue.has_open_end());
    assert_eq!(retired(&mut queue, third), [1, 2]);
}

#[test]
fn the_end_is_open_again_if_the_last_signalled_request_is_cancelled() {
    let mut queue = requests(64);
    for n in [1, 2] {
        post(&mut queue, suppressed(n));
    }
    let third = post(&mut queue, write(3, 0)).slot;
    assert!(!queue.has_open_end());
    queue.cancel(third);
    assert!(queue.has_open_end());
    // A cancelled request that is not the last signalled one changes nothing.
    let signalled = post(&mut queue, write(4, 0)).slot;
    let fifth = post(&mut queue, suppressed(5)).slot;
    queue.cancel(fifth);
    assert!(!queue.has_open_end());
    assert_eq!(retired(&mut queue, signalled), [1, 2]);
}

/// A refused request that should have been signalled does not lengthen the interval.
#[test]
fn a_cancelled_request_is_not_counted_as_signalled() {
    let mut queue = requests(64);
    for n in 1..16 {
        assert!(!post(&mut queue, suppressed(n)).signalled);
    }
    for _ in 0..3 {
        let refused = post(&mut queue, suppressed(16));
        assert!(refused.signalled);
        queue.cancel(refused.slot);
    }
    // Without unsignalled requests a new interval begins.
    let mut empty = requests(64);
    let refused = post(&mut empty, write(1, 0)).slot;
    empty.cancel(refused);
    assert!(!empty.has_open_end());
    let run = (0..15).filter(|n| !post(&mut empty, suppressed(*n)).signalled);
    assert_eq!(run.count(), 15);
    assert!(post(&mut empty, suppressed(16)).signalled);
}

/// A step of a test. The number selects a request.
#[derive(Clone, Copy, Debug)]
enum Act {
    Post {
        suppressed: bool,
    },
    /// A post that the device refuses.
    Refused {
        suppressed: bool,
    },
    /// The device completes the next requests.
    Complete(usize),
    /// The device completes a request as failed, and then flushes all others.
    Fail,
    Mark,
    /// All are given up, in any order.
    GiveUp(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => prop::bool::weighted(0.8).prop_map(|suppressed| Act::Post { suppressed }),
        1 => any::<bool>().prop_map(|suppressed| Act::Refused { suppressed }),
        3 => (1..6_usize).prop_map(Act::Complete),
        1 => Just(Act::Mark),
        1 => Just(Act::Fail),
        1 => any::<usize>().prop_map(Act::GiveUp),
    ]
}

/// Requests in the order of their posts, as the device has them.
#[derive(Default)]
struct Device {
    queue: VecDeque<(Posted, Dto)>,
    /// Requests that have succeeded without a completion.
    silent: VecDeque<(u32, Dto)>,
}

impl Device {
    /// The device completes its oldest request. Checks what the completion retires, if there is
    /// one.
    fn complete(&mut self, requests: &mut Requests<Vec<Slot>>, failed: bool) {
        let Some((posted, dto)) = self.queue.pop_front() else {
            return;
        };
        if !posted.signalled && !failed {
            self.silent.push_back((posted.slot, dto));
            return;
        }
        let retired: Vec<_> = std::iter::from_fn(|| requests.retire_before(posted.slot)).collect();
        assert_eq!(retired, Vec::from(std::mem::take(&mut self.silent)));
        assert_eq!(requests.complete(posted.slot), Some(dto));
    }

    fn outstanding(&self) -> usize {
        self.queue.len() + self.silent.len()
    }

    /// Returns the number of the last unsignalled requests.
    fn open_end(&self) -> usize {
        let in_queue = self.queue.iter().rev();
        let run = in_queue.take_while(|(posted, _)| !posted.signalled).count();
        match run == self.queue.len() {
            true => run + self.silent.len(),
            false => run,
        }
    }

    fn markers(&self) -> usize {
        let is_marker = |dto: &Dto| dto.flags.has(CompletionFlags::MARKER);
        self.queue.iter().filter(|(_, dto)| is_marker(dto)).count()
    }
}

proptest! {
    #[test]
    fn like_a_device_that_completes_in_order(
        capacity in 0..70_usize,
        last in prop_oneof![Just(0), Just(u32::MAX - 30), Just(u32::MAX / 2 - 30)],
        acts in prop::collection::vec(act(), 0..300),
    ) {
        let mut requests = numbered_after(last, capacity);
        let mut device = Device::default();
        for (n, act) in acts.into_iter().enumerate() {
            let dto = |quiet| write(n as u64, u32::from(quiet));
            match act {
                Act::Post { suppressed } => {
                    let posted = requests.post(dto(suppressed));
                    prop_assert_eq!(posted.is_some(), device.outstanding() < capacity);
                    if let Some(posted) = posted {
                        prop_assert!(posted.signalled || suppressed);
                        device.queue.push_back((posted, dto(suppressed)));
                    }
                }
                Act::Refused { suppressed } => {
                    if let Some(posted) = requests.post(dto(suppressed)) {
                        requests.cancel(posted.slot);
                    }
                }
                Act::Complete(count) => {
                    for _ in 0..count {
                        device.complete(&mut requests, false);
                    }
                }
                Act::Fail => {
                    while !device.queue.is_empty() {
                        device.complete(&mut requests, true);
                    }
                }
                Act::Mark => {
                    if requests.has_open_end() {
                        // By the rules there is a slot.
                        let posted = requests.post(Dto::marker()).expect("a slot for the marker");
                        prop_assert!(posted.signalled);
                        device.queue.push_back((posted, Dto::marker()));
                        prop_assert!(!requests.has_open_end());
                    }
                }
                Act::GiveUp(seed) => {
                    let queued = device.queue.drain(..).map(|(posted, dto)| (posted.slot, dto));
                    let mut all: Vec<_> = queued.chain(device.silent.drain(..)).collect();
                    all.sort_by_key(|(slot, _)| (*slot as usize).wrapping_mul(seed | 1));
                    for (slot, dto) in all {
                        prop_assert_eq!(requests.complete(slot), Some(dto));
                    }
                }
            }
            prop_assert_eq!(requests.outstanding() as usize, device.outstanding());
            let of_consumer = device.outstanding() - device.markers();
            prop_assert_eq!(requests.outstanding_of_consumer() as usize, of_consumer);
            let unsignalled = device.queue.iter().any(|(posted, _)| !posted.signalled);
            prop_assert_eq!(requests.has_unsignalled(), unsignalled || !device.silent.is_empty());
            // After a refused post the end may count as open, which costs a marker only.
            prop_assert!(requests.has_open_end() || device.open_end() == 0);
            // At least one in an interval is signalled, and an open end leaves a slot.
            prop_assert!(device.open_end() < (interval(capacity as u32) as usize).max(1));
            prop_assert!(device.open_end() == 0 || device.outstanding() < capacity);
        }
        // What is left completes.
        if requests.has_open_end() {
            let posted = requests.post(Dto::marker()).expect("a slot for the marker");
            device.queue.push_back((posted, Dto::marker()));
        }
        while !device.queue.is_empty() {
            device.complete(&mut requests, false);
        }
        prop_assert_eq!(requests.outstanding(), 0);
    }
}
