// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Runs random sequences of inputs through the state machine of an Endpoint.
//!
//! The caller keeps the contract of `step`. The test checks that the consumer receives its events
//! in order, completely, and once.

mod endpoint;

use self::endpoint::{
    Act,
    Ep,
    Observed, //
};
use super::ep_table::INPUTS;
use crate::rust::model::ep::{
    Call,
    Close,
    Configuration,
    ConnectionEvent,
    Network,
    Paths,
    Phase, //
};
use proptest::prelude::*;

/// Checks the observations between two resets.
fn check_life(life: &[Observed]) -> Result<(), TestCaseError> {
    let count = |wanted: &[ConnectionEvent]| {
        let wanted =
            |observed: &&Observed| matches!(observed, Observed::Event(n) if wanted.contains(n));
        life.iter().filter(wanted).count()
    };
    let position = |wanted: Observed| life.iter().position(|observed| *observed == wanted);
    let failures = [
        ConnectionEvent::PeerRejected,
        ConnectionEvent::NonPeerRejected,
        ConnectionEvent::AcceptCompletionError,
        ConnectionEvent::TimedOut,
        ConnectionEvent::Unreachable,
    ];
    let ends = [ConnectionEvent::Disconnected, ConnectionEvent::Broken];
    let established = count(&[ConnectionEvent::Established]);
    prop_assert!(
        established + count(&failures) <= 1,
        "an attempt reports one result"
    );
    prop_assert!(
        count(&failures) + count(&ends) <= 1,
        "a connection ends once"
    );
    let at = position(Observed::Event(ConnectionEvent::Established));
    if let Some(dto) = position(Observed::Dto) {
        prop_assert!(
            at.is_some_and(|at| at < dto),
            "ESTABLISHED before the first DTO"
        );
    }
    let end = life
        .iter()
        .position(|observed| matches!(observed, Observed::Event(n) if ends.contains(n)));
    if let (Some(at), Some(end)) = (at, end) {
        prop_assert!(at < end);
    }
    if let Some(end) = end {
        let later = life.iter().skip(end + 1);
        prop_assert!(
            later.clone().all(|observed| *observed == Observed::Freed),
            "no event after the last one"
        );
    }
    if let Some(freed) = position(Observed::Freed) {
        prop_assert_eq!(freed + 1, life.len(), "no event after the free");
    }
    Ok(())
}

fn check(ep: &Ep) -> Result<(), TestCaseError> {
    for life in ep.log.split(|observed| *observed == Observed::Reset) {
        check_life(life)?;
    }
    // Each connection has ended, unless the Endpoint was freed before.
    let last = ep
        .log
        .rsplit(|observed| *observed == Observed::Reset)
        .next();
    let last = last.unwrap_or_default();
    if last.contains(&Observed::Event(ConnectionEvent::Established))
        && !last.contains(&Observed::Freed)
    {
        let ended = [ConnectionEvent::Disconnected, ConnectionEvent::Broken]
            .iter()
            .any(|n| last.contains(&Observed::Event(*n)));
        prop_assert!(ended, "the end of a connection is reported");
    }
    prop_assert!(!ep.timer, "the timer stops with its attempt");
    Ok(())
}

fn any_act() -> impl Strategy<Value = Act> {
    let likely = prop_oneof![
        Just(Call::Connect(Paths::Plain).into()),
        Just(Call::Connect(Paths::Single).into()),
        Just(Call::Accept.into()),
        Just(Network::Established.into()),
        Just(Call::Disconnect(Close::Graceful).into()),
        Just(Network::PeerDisconnected.into()),
        Just(Call::Reset.into()),
        Just(Call::Ready.into()),
    ];
    let any_input = (0..INPUTS.len()).prop_map(|n| INPUTS[n].1);
    prop_oneof![
        4 => likely.prop_map(Act::Feed),
        2 => any_input.prop_map(Act::Feed),
        1 => Just(Act::CloseGate),
        2 => Just(Act::PostRecv),
        2 => Just(Act::PostRequest),
        2 => Just(Act::CompleteRecv),
        2 => Just(Act::CompleteRequest),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn lives(acts in prop::collection::vec(any_act(), 0..120), provider in any::<bool>()) {
        let mut ep = Ep::new(if provider {
            Phase::Tentative(Configuration::Incomplete)
        } else {
            Phase::Unconnected(Configuration::Complete)
        });
        for act in acts {
            ep.act(act);
        }
        ep.finish();
        check(&ep)?;
    }
}

/// Runs a sequence and returns the observations.
fn observations(acts: &[Act]) -> Vec<Observed> {
    let mut ep = Ep::new(Phase::Unconnected(Configuration::Complete));
    for act in acts {
        ep.act(*act);
    }
    ep.log
}

#[test]
fn a_reject_that_races_an_accept_is_reported_once() {
    for (first, second, told) in [
        (
            Network::PeerRejected,
            Network::Established,
            ConnectionEvent::PeerRejected,
        ),
        (
            Network::TimedOut,
            Network::Established,
            ConnectionEvent::TimedOut,
        ),
        (
            Network::TimedOut,
            Network::PeerRejected,
            ConnectionEvent::TimedOut,
        ),
        (
            Network::Unreachable,
            Network::TimedOut,
            ConnectionEvent::Unreachable,
        ),
        (
            Network::Established,
            Network::TimedOut,
            ConnectionEvent::Established,
        ),
        (
            Network::Established,
            Network::Established,
            ConnectionEvent::Established,
        ),
    ] {
        let acts = [
            Call::Connect(Paths::Plain).into(),
            first.into(),
            second.into(),
        ]
        .map(Act::Feed);
        assert_eq!(
            observations(&acts),
            [Observed::Event(told)],
            "{first:?}, {second:?}"
        );
    }
}

#[test]
fn a_first_receive_establishes() {
    let log = observations(&[
        Act::PostRecv,
        Act::Feed(Call::Accept.into()),
        Act::CompleteRecv,
        Act::Feed(Network::Established.into()),
    ]);
    assert_eq!(
        log,
        [Observed::Event(ConnectionEvent::Established), Observed::Dto]
    );
}

/// Everything that happens while the gate is closed is reported once it opens, in order.
#[test]
fn a_gate_holds_all_events() {
    let gated = [
        Act::CloseGate,
        Act::PostRecv,
        Act::PostRecv,
        Act::Feed(Call::Accept.into()),
        Act::CompleteRecv,
        Act::Feed(Network::Established.into()),
        Act::Feed(Network::PeerDisconnected.into()),
        Act::CompleteRecv,
    ];
    assert_eq!(observations(&gated), []);
    let opened = [&gated[..], &[Act::Feed(Call::Ready.into())]].concat();
    let log = observations(&opened);
    assert_eq!(
        log.first(),
        Some(&Observed::Event(ConnectionEvent::Established))
    );
    assert_eq!(
        log.last(),
        Some(&Observed::Event(ConnectionEvent::Disconnected))
    );
    assert_eq!(log.len(), 4);
}

#[test]
fn a_removed_device_opens_the_gate() {
    let log = observations(&[
        Act::CloseGate,
        Act::PostRecv,
        Act::Feed(Call::Connect(Paths::Plain).into()),
        Act::Feed(Network::Established.into()),
        Act::Feed(Network::DeviceRemoved.into()),
        Act::CompleteRecv,
    ]);
    let expected = [
        Observed::Event(ConnectionEvent::Established),
        Observed::Flushed,
        Observed::Event(ConnectionEvent::Broken),
    ];
    assert_eq!(log, expected);
}

#[test]
fn a_gate_that_opens_early_changes_nothing() {
    let log = observations(&[
        Act::CloseGate,
        Act::Feed(Call::Connect(Paths::Plain).into()),
        Act::Feed(Call::Ready.into()),
        Act::Feed(Network::Established.into()),
    ]);
    assert_eq!(log, [Observed::Event(ConnectionEvent::Established)]);
}

#[test]
fn disconnected_follows_the_last_dto() {
    let log = observations(&[
        Act::PostRecv,
        Act::Feed(Call::Connect(Paths::Plain).into()),
        Act::Feed(Network::Established.into()),
        Act::PostRequest,
        Act::Feed(Call::Disconnect(Close::Graceful).into()),
        Act::PostRequest,
        Act::CompleteRequest,
        Act::Feed(Network::PeerDisconnected.into()),
        Act::CompleteRecv,
        Act::Feed(Network::Broken.into()),
    ]);
    let expected = [
        Observed::Event(ConnectionEvent::Established),
        Observed::Dto,
        Observed::Flushed,
        Observed::Event(ConnectionEvent::Disconnected),
    ];
    assert_eq!(log, expected);
}
