// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the order of requests with a list, on a device that completes them in order.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

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
