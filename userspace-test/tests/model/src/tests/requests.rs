// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests which requests are signalled, and which a completion retires.

mod device;

use crate::rust::model::{
    completion::{
        CompletionFlags,
        WakeMode, //
    },
    dto::{
        Dto,
        PostMark,
        Slot, //
    },
    event::Operation,
    requests::{
        interval,
        Posted,
        Requests,
        Signalling, //
    },
};

fn requests(capacity: usize) -> Requests<Vec<Slot>> {
    Requests::new(vec![Slot::vacant(); capacity], Signalling::Few)
}

fn numbered_after(last: u32, capacity: usize) -> Requests<Vec<Slot>> {
    Requests::numbered_after(vec![Slot::vacant(); capacity], Signalling::Few, last)
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
        posted: PostMark::NONE,
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

fn registration_with_next(n: u64) -> Dto {
    let flags = CompletionFlags::of_dto(0x41, Operation::LmrFmr, WakeMode::Threshold);
    Dto {
        operation: Operation::LmrFmr,
        flags: flags.expect("flags"),
        ..write(n, 0)
    }
}

#[test]
fn a_registration_is_retired_by_the_next_request() {
    let mut queue = requests(64);
    for _ in 0..3 {
        assert!(!post(&mut queue, registration_with_next(1)).signalled);
        assert!(queue.has_open_end());
        // Signalled, although it has no event.
        let next = post(&mut queue, suppressed(2));
        assert!(next.signalled);
        assert!(!queue.has_open_end());
        assert!(!post(&mut queue, suppressed(3)).signalled);
        let last = post(&mut queue, write(4, 0));
        assert_eq!(retired(&mut queue, next.slot), [1]);
        assert_eq!(queue.complete(next.slot), Some(suppressed(2)));
        assert_eq!(retired(&mut queue, last.slot), [3]);
        assert_eq!(queue.complete(last.slot), Some(write(4, 0)));
    }
    // So is the registration after one, and the one that completes early retires none.
    let first = post(&mut queue, registration_with_next(1));
    let second = post(&mut queue, registration_with_next(2));
    assert!(!first.signalled && second.signalled);
    assert_eq!(queue.complete(first.slot), Some(registration_with_next(1)));
    assert!(!post(&mut queue, suppressed(3)).signalled);
    assert_eq!(retired(&mut queue, second.slot), []);
}

#[test]
fn requests_after_the_end_are_signalled() {
    let mut queue = requests(64);
    for dto in [suppressed(1), registration_with_next(2)] {
        let flags = dto.flags.with(CompletionFlags::AFTER_END);
        assert!(post(&mut queue, Dto { flags, ..dto }).signalled);
        assert!(!queue.has_open_end());
    }
}

#[test]
fn a_registration_at_the_open_end_is_not_given_up() {
    let mut queue = requests(64);
    let _ = post(&mut queue, suppressed(1));
    let registration = post(&mut queue, registration_with_next(2));
    assert_eq!(queue.give_up_end(), None);
    assert_eq!(queue.outstanding(), 2);
    // The device reports it as flushed.
    assert_eq!(retired(&mut queue, registration.slot), [1]);
    assert_eq!(
        queue.complete(registration.slot),
        Some(registration_with_next(2))
    );
    assert!(!queue.has_open_end());
}

#[test]
fn all_are_signalled_for_other_drivers() {
    let mut queue = Requests::new(vec![Slot::vacant(); 64], Signalling::All);
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
        assert!(!queue.is_idle_since_last_call());
        assert!(queue.is_idle_since_last_call());
        assert!(queue.is_idle_since_last_call());
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
