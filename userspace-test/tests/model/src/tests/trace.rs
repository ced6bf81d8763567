// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares journals with a list that keeps all entries.

use crate::rust::model::{
    completion::CompletionFlags,
    dto::{
        Dto,
        DtoSlots,
        PostMark,
        Scan,
        Slot, //
    },
    ep::{
        Call,
        Close,
        Configuration,
        FinalEvent,
        GatedSide,
        Input,
        Network,
        Paths,
        Phase,
        Progress, //
    },
    event::{
        DtoStatus,
        Operation, //
    },
    trace::{
        entries_for,
        Journal,
        JournalEntry,
        Seconds,
        TraceEvent, //
    },
};
use proptest::prelude::*;
use std::collections::HashSet;

type Kept = Journal<Vec<JournalEntry>>;

fn journal(entries: usize) -> Kept {
    Journal::new(vec![JournalEntry::EMPTY; entries])
}

fn dto(operation: Operation, cookie: u64) -> Dto {
    Dto {
        cookie,
        operation,
        flags: CompletionFlags::default(),
        length: cookie + 1,
        posted: PostMark::NONE,
    }
}

/// Returns all entries from this number on that can be read.
fn read(journal: &Kept, mut next: u64) -> Vec<(u64, JournalEntry)> {
    let mut found = Vec::new();
    while let Some((number, entry)) = journal.entry_from(next) {
        found.push((number, entry));
        next = number + 1;
    }
    found
}

#[test]
fn the_number_of_entries_is_a_power_of_two_within_bounds() {
    for (asked, entries) in [
        (0, Some(0)),
        (1, Some(1)),
        (2, Some(2)),
        (3, Some(4)),
        (100, Some(128)),
        (65_535, Some(65_536)),
        (65_536, Some(65_536)),
        (65_537, None),
        (u32::MAX, None),
    ] {
        assert_eq!(entries_for(asked), entries, "{asked}");
    }
}

#[test]
fn a_journal_without_entries_keeps_nothing() {
    let mut none = journal(0);
    none.post(7, 0, &dto(Operation::Send, 1));
    assert_eq!(none.recorded(), 0);
    assert_eq!(none.entry_from(0), None);
}

#[test]
fn lines_are_those_of_the_documentation() {
    let mut three = journal(4);
    let receive = dto(Operation::Receive, 0x1f);
    three.post(1_000_000_001, 0, &receive);
    three.complete(2_500_000_000, 0, &receive, DtoStatus::Flushed, 0);
    let (from, to) = (Phase::Connected(Paths::Plain), Phase::Draining);
    three.step(3, from, Input::Call(Call::Disconnect(Close::Graceful)), to);
    let lines: Vec<_> = read(&three, 0)
        .iter()
        .map(|(_, entry)| entry.to_string())
        .collect();
    assert_eq!(
        lines,
        [
            "[1.000000001] post operation=RECEIVE slot=0 cookie=0x1f length=32",
            "[2.500000000] complete operation=RECEIVE status=FLUSHED slot=0 cookie=0x1f length=0",
            "[0.000000003] state from=CONNECTED cause=DISCONNECT_GRACEFUL \
             to=DISCONNECT_PENDING_REQUESTS",
        ]
    );
    assert_eq!(Seconds(u64::MAX).to_string(), "18446744073.709551615");
}

/// Checks that the names differ and contain no blanks, since scripts compare them.
fn distinct(names: &[&str]) {
    let set: HashSet<_> = names.iter().collect();
    assert_eq!(set.len(), names.len(), "{names:?}");
    for name in names {
        let plain = |c: char| c.is_ascii_uppercase() || c == '_';
        assert!(!name.is_empty() && name.chars().all(plain), "{name}");
    }
}

#[test]
fn operations_and_statuses_have_different_names() {
    let operations: Vec<_> = (0..13)
        .filter_map(Operation::from_number)
        .map(Operation::name)
        .collect();
    assert_eq!(operations.len(), 13);
    distinct(&operations);
    let statuses: Vec<_> = (0..13)
        .filter_map(DtoStatus::from_number)
        .map(DtoStatus::name)
        .collect();
    assert_eq!(statuses.len(), 13);
    distinct(&statuses);
}

#[test]
fn phases_and_inputs_have_different_names() {
    use Configuration::{
        Complete,
        Incomplete, //
    };
    distinct(
        &[
            Phase::Unconnected(Complete),
            Phase::Unconnected(Incomplete),
            Phase::Reserved(Complete),
            Phase::Reserved(Incomplete),
            Phase::Passive(Complete),
            Phase::Passive(Incomplete),
            Phase::Tentative(Complete),
            Phase::Tentative(Incomplete),
            Phase::Connecting(Paths::Plain),
            Phase::Accepting(crate::rust::model::ep::AcceptFrom::Unconnected),
            Phase::Gated(GatedSide::Active(Paths::Plain)),
            Phase::Gated(GatedSide::Passive),
            Phase::GatedEnded(FinalEvent::Disconnected),
            Phase::GatedEnded(FinalEvent::Broken),
            Phase::Connected(Paths::Plain),
            Phase::Connected(Paths::Single),
            Phase::Draining,
            Phase::Flushing(FinalEvent::Disconnected),
            Phase::Flushing(FinalEvent::Broken),
            Phase::Disconnected,
            Phase::Freed,
        ]
        .map(Phase::name),
    );
    distinct(
        &[
            Input::Call(Call::Connect(Paths::Plain)),
            Input::Call(Call::ConnectAborted),
            Input::Call(Call::Accept),
            Input::Call(Call::AcceptAborted),
            Input::Call(Call::Ready),
            Input::Call(Call::Disconnect(Close::Abrupt)),
            Input::Call(Call::Disconnect(Close::Graceful)),
            Input::Call(Call::Reset),
            Input::Call(Call::Free),
            Input::Call(Call::Configured),
            Input::Call(Call::Reserve),
            Input::Call(Call::Release),
            Input::Call(Call::Requested),
            Input::Network(Network::Established),
            Input::Network(Network::EstablishedGated),
            Input::Network(Network::PeerRejected),
            Input::Network(Network::NonPeerRejected),
            Input::Network(Network::Unreachable),
            Input::Network(Network::TimedOut),
            Input::Network(Network::AcceptFailed),
            Input::Network(Network::PeerDisconnected),
            Input::Network(Network::Broken),
            Input::Progress(Progress::RequestsIdle),
            Input::Progress(Progress::Idle),
            Input::Network(Network::DeviceRemoved),
        ]
        .map(Input::name),
    );
    assert_eq!(Phase::Draining.name(), "DISCONNECT_PENDING_REQUESTS");
    assert_eq!(Phase::Disconnected.name(), "DISCONNECTED");
}

/// An operation on the journal. The slot may be out of bounds.
#[derive(Clone, Copy, Debug)]
enum Act {
    Post(Operation, u32),
    Complete(Operation, u32),
    Step,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let operation = || prop_oneof![Just(Operation::Send), Just(Operation::Receive)];
    prop::collection::vec(
        prop_oneof![
            (operation(), 0..5_u32).prop_map(|(operation, slot)| Act::Post(operation, slot)),
            (operation(), 0..5_u32).prop_map(|(operation, slot)| Act::Complete(operation, slot)),
            Just(Act::Step),
        ],
        0..100,
    )
}

proptest! {
    #[test]
    fn like_the_end_of_a_list(
        entries in 1..20_usize,
        from in 0..120_u64,
        acts in acts(),
    ) {
        let mut journal = journal(entries);
        let mut list: Vec<JournalEntry> = Vec::new();
        for (n, act) in acts.into_iter().enumerate() {
            let at = n as u64 + 1;
            let what = match act {
                Act::Post(operation, slot) => {
                    let dto = dto(operation, at);
                    journal.post(at, slot, &dto);
                    TraceEvent::Post { operation, slot, cookie: dto.cookie, length: dto.length }
                }
                Act::Complete(operation, slot) => {
                    let (dto, status) = (dto(operation, at), DtoStatus::Success);
                    journal.complete(at, slot, &dto, status, 5);
                    TraceEvent::Complete { operation, status, slot, cookie: dto.cookie, length: 5 }
                }
                Act::Step => {
                    let (from, cause, to) =
                        (Phase::Unconnected(Configuration::Complete), Input::Call(Call::Connect(Paths::Plain)), Phase::Connecting(Paths::Plain));
                    journal.step(at, from, cause, to);
                    TraceEvent::Step { from, cause, to }
                }
            };
            list.push(JournalEntry { time_ns: at, event: what });
        }
        let oldest = list.len().saturating_sub(entries) as u64;
        prop_assert_eq!(journal.recorded(), list.len() as u64);
        prop_assert_eq!(journal.first_kept(), oldest);
        let expected: Vec<_> = (0..)
            .zip(list)
            .filter(|(number, _)| *number >= from.max(oldest))
            .collect();
        prop_assert_eq!(read(&journal, from), expected);
    }

    #[test]
    fn every_dto_in_flight_is_found_in_the_order_of_slots(
        capacity in 0..12_usize,
        completed in prop::collection::hash_set(0..12_u32, 0..12),
    ) {
        let mut slots = DtoSlots::new(vec![Slot::vacant(); capacity]);
        for cookie in 0..capacity as u64 {
            slots.post(dto(Operation::Send, cookie));
        }
        for slot in &completed {
            slots.complete(*slot);
        }
        let mut found = Vec::new();
        let mut next = 0;
        while let Some((slot, dto)) = slots.find_busy(next).found {
            prop_assert_eq!(u64::from(slot), dto.cookie);
            found.push(slot);
            next = slot + 1;
        }
        let expected: Vec<_> =
            (0..capacity as u32).filter(|slot| !completed.contains(slot)).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(slots.find_busy(u32::MAX), Scan { found: None, next: None });
    }
}

#[test]
fn an_entry_is_as_long_as_the_documentation_says() {
    assert_eq!(size_of::<JournalEntry>(), 40);
}
