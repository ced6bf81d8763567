// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Runs random sequences of inputs through the state machine of an Endpoint.
//!
//! The caller keeps the contract of `step`. The test checks that the consumer receives its events
//! in order, completely, and once.

use super::ep_table::INPUTS;
use crate::rust::model::ep::{
    flushes_posts,
    may_post_recv,
    may_post_request,
    step,
    Call,
    Close,
    Configuration, //
    ConnectionEvent,
    Effects,
    Input,
    Network,
    Paths,
    Phase,
    Progress,
};
use proptest::prelude::*;

/// Next action of a sequence.
#[derive(Clone, Copy, Debug)]
enum Act {
    Feed(Input),
    /// Closes the ready gate of the next attempt.
    CloseGate,
    PostRecv,
    PostRequest,
    CompleteRecv,
    CompleteRequest,
}

/// An observation of the consumer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Heard {
    Event(ConnectionEvent),
    Dto,
    Flushed,
    Reset,
    Freed,
}

/// An Endpoint and its queues, as `dat/` keeps them.
#[derive(Debug)]
struct Ep {
    phase: Phase,
    /// The QP is in the error state, so posted DTOs flush.
    error: bool,
    timer: bool,
    /// The consumer has closed the ready gate.
    gated: bool,
    receives: u32,
    /// Receives of these that have completed, and whose events are held back.
    held: u32,
    requests: u32,
    log: Vec<Heard>,
}

impl Ep {
    fn new(phase: Phase) -> Self {
        Self {
            phase,
            error: false,
            timer: false,
            gated: false,
            receives: 0,
            held: 0,
            requests: 0,
            log: Vec::new(),
        }
    }

    fn execute(&mut self, effects: Effects) {
        self.timer = (self.timer && !effects.stop_timer) || effects.start_timer;
        self.error |= effects.qp_error;
        if effects.qp_reset {
            self.error = false;
            self.receives = 0;
            self.held = 0;
            self.requests = 0;
            self.log.push(Heard::Reset);
        }
        if let Some(event) = effects.event {
            self.log.push(Heard::Event(event));
        }
    }

    /// Feeds an input, and the further inputs that the contract requires.
    fn feed(&mut self, input: Input) {
        // The idle inputs are fed only when they are true, and the timer expires only if it runs.
        match input {
            Input::Progress(Progress::RequestsIdle | Progress::Idle) => return self.settle(),
            Input::Network(Network::TimedOut) if !self.timer => return,
            Input::Call(Call::Ready) => self.gated = false,
            Input::Network(Network::Established) if self.gated => {
                return self.feed(Network::EstablishedGated.into())
            }
            Input::Network(Network::EstablishedGated) if !self.gated => return,
            _ => {}
        }
        if let Ok((phase, effects)) = step(self.phase, input) {
            if phase == Phase::Freed && self.phase != Phase::Freed {
                self.log.push(Heard::Freed);
            }
            self.phase = phase;
            self.execute(effects);
        }
        self.release_held();
        self.settle();
    }

    /// Reports the receives that are held back, once ESTABLISHED was reported or never will be.
    fn release_held(&mut self) {
        while self.held > 0 && !self.phase.holds_receives() {
            self.held -= 1;
            self.receives -= 1;
            self.report_dto();
        }
    }

    fn settle(&mut self) {
        for (progress, holds) in [
            (Progress::RequestsIdle, self.requests == 0),
            (Progress::Idle, self.requests == 0 && self.receives == 0),
        ] {
            if holds {
                let (phase, effects) =
                    step(self.phase, progress.into()).expect("an idle input is never refused");
                self.phase = phase;
                self.execute(effects);
            }
        }
    }

    fn report_dto(&mut self) {
        if self.phase != Phase::Freed {
            self.log.push(if self.error {
                Heard::Flushed
            } else {
                Heard::Dto
            });
        }
        self.settle();
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Feed(input) => self.feed(input),
            // A DTO that is flushed at once is never outstanding.
            Act::PostRecv | Act::PostRequest if flushes_posts(self.phase) => {}
            Act::PostRecv => self.receives += u32::from(may_post_recv(self.phase).is_ok()),
            Act::PostRequest => self.requests += u32::from(may_post_request(self.phase).is_ok()),
            Act::CloseGate => self.gated |= matches!(self.phase, Phase::Unconnected(_)),
            Act::CompleteRecv if self.receives > self.held => {
                if !self.error {
                    // Data arrives only on a connection, or on one that the peer considers
                    // established.
                    self.feed(Network::Established.into());
                    if !self.phase.is_connected() {
                        return;
                    }
                }
                if self.phase.holds_receives() {
                    self.held += 1;
                    return;
                }
                self.receives -= 1;
                self.report_dto();
            }
            Act::CompleteRequest if self.requests > 0 => {
                self.requests -= 1;
                self.report_dto();
            }
            Act::CompleteRecv | Act::CompleteRequest => {}
        }
    }

    /// Disconnects, removes the device, and lets all posted DTOs complete.
    fn finish(&mut self) {
        self.feed(Call::Disconnect(Close::Abrupt).into());
        self.feed(Network::DeviceRemoved.into());
        while self.receives > self.held || self.requests > 0 {
            if !self.error {
                break;
            }
            self.act(Act::CompleteRecv);
            self.act(Act::CompleteRequest);
        }
    }
}

/// Checks the observations between two resets.
fn check_life(life: &[Heard]) -> Result<(), TestCaseError> {
    let count = |wanted: &[ConnectionEvent]| {
        let wanted = |heard: &&Heard| matches!(heard, Heard::Event(n) if wanted.contains(n));
        life.iter().filter(wanted).count()
    };
    let position = |wanted: Heard| life.iter().position(|heard| *heard == wanted);
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
    let at = position(Heard::Event(ConnectionEvent::Established));
    if let Some(dto) = position(Heard::Dto) {
        prop_assert!(
            at.is_some_and(|at| at < dto),
            "ESTABLISHED before the first DTO"
        );
    }
    let end = life
        .iter()
        .position(|heard| matches!(heard, Heard::Event(n) if ends.contains(n)));
    if let (Some(at), Some(end)) = (at, end) {
        prop_assert!(at < end);
    }
    if let Some(end) = end {
        let later = life.iter().skip(end + 1);
        prop_assert!(
            later.clone().all(|heard| *heard == Heard::Freed),
            "no event after the last one"
        );
    }
    if let Some(freed) = position(Heard::Freed) {
        prop_assert_eq!(freed + 1, life.len(), "no event after the free");
    }
    Ok(())
}

fn check(ep: &Ep) -> Result<(), TestCaseError> {
    for life in ep.log.split(|heard| *heard == Heard::Reset) {
        check_life(life)?;
    }
    // Each connection has ended, unless the Endpoint was freed before.
    let last = ep.log.rsplit(|heard| *heard == Heard::Reset).next();
    let last = last.unwrap_or_default();
    if last.contains(&Heard::Event(ConnectionEvent::Established)) && !last.contains(&Heard::Freed) {
        let ended = [ConnectionEvent::Disconnected, ConnectionEvent::Broken]
            .iter()
            .any(|n| last.contains(&Heard::Event(*n)));
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
fn heard(acts: &[Act]) -> Vec<Heard> {
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
        assert_eq!(heard(&acts), [Heard::Event(told)], "{first:?}, {second:?}");
    }
}

#[test]
fn a_first_receive_establishes() {
    let log = heard(&[
        Act::PostRecv,
        Act::Feed(Call::Accept.into()),
        Act::CompleteRecv,
        Act::Feed(Network::Established.into()),
    ]);
    assert_eq!(
        log,
        [Heard::Event(ConnectionEvent::Established), Heard::Dto]
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
    assert_eq!(heard(&gated), []);
    let opened = [&gated[..], &[Act::Feed(Call::Ready.into())]].concat();
    let log = heard(&opened);
    assert_eq!(
        log.first(),
        Some(&Heard::Event(ConnectionEvent::Established))
    );
    assert_eq!(
        log.last(),
        Some(&Heard::Event(ConnectionEvent::Disconnected))
    );
    assert_eq!(log.len(), 4);
}

#[test]
fn a_removed_device_opens_the_gate() {
    let log = heard(&[
        Act::CloseGate,
        Act::PostRecv,
        Act::Feed(Call::Connect(Paths::Plain).into()),
        Act::Feed(Network::Established.into()),
        Act::Feed(Network::DeviceRemoved.into()),
        Act::CompleteRecv,
    ]);
    let expected = [
        Heard::Event(ConnectionEvent::Established),
        Heard::Flushed,
        Heard::Event(ConnectionEvent::Broken),
    ];
    assert_eq!(log, expected);
}

#[test]
fn a_gate_that_opens_early_changes_nothing() {
    let log = heard(&[
        Act::CloseGate,
        Act::Feed(Call::Connect(Paths::Plain).into()),
        Act::Feed(Call::Ready.into()),
        Act::Feed(Network::Established.into()),
    ]);
    assert_eq!(log, [Heard::Event(ConnectionEvent::Established)]);
}

#[test]
fn disconnected_follows_the_last_dto() {
    let log = heard(&[
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
        Heard::Event(ConnectionEvent::Established),
        Heard::Dto,
        Heard::Flushed,
        Heard::Event(ConnectionEvent::Disconnected),
    ];
    assert_eq!(log, expected);
}
