// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the Endpoint's state machine with a table of one row for each input and one column for
//! each phase.

use crate::rust::model::{
    code::{
        DatError,
        Kind,
        Subtype, //
    },
    ep::{
        may_free,
        may_post_recv,
        may_post_request,
        step,
        AcceptFrom,
        Call,
        Close,
        Configuration,
        ConnectionEvent,
        Effects,
        FinalEvent,
        GatedSide,
        Input,
        Network,
        Paths,
        Phase,
        Progress,
        State, //
    },
};

/// Every phase, with its name in the table, its state, and the subtype of the state.
pub(super) const PHASES: [(&str, Phase, State, u32); 25] = [
    (
        "U",
        Phase::Unconnected(Configuration::Complete),
        State::Unconnected,
        47,
    ),
    (
        "u",
        Phase::Unconnected(Configuration::Incomplete),
        State::UnconfiguredUnconnected,
        63,
    ),
    (
        "R",
        Phase::Reserved(Configuration::Complete),
        State::Reserved,
        53,
    ),
    (
        "r",
        Phase::Reserved(Configuration::Incomplete),
        State::UnconfiguredReserved,
        64,
    ),
    (
        "P",
        Phase::Passive(Configuration::Complete),
        State::PassiveConnectionPending,
        49,
    ),
    (
        "p",
        Phase::Passive(Configuration::Incomplete),
        State::UnconfiguredPassive,
        65,
    ),
    (
        "T",
        Phase::Tentative(Configuration::Complete),
        State::TentativeConnectionPending,
        50,
    ),
    (
        "t",
        Phase::Tentative(Configuration::Incomplete),
        State::UnconfiguredTentative,
        66,
    ),
    (
        "Cg",
        Phase::Connecting(Paths::Plain),
        State::ActiveConnectionPending,
        48,
    ),
    (
        "G1",
        Phase::Connecting(Paths::Single),
        State::ActiveConnectionPending,
        48,
    ),
    (
        "AU",
        Phase::Accepting(AcceptFrom::Unconnected),
        State::CompletionPending,
        54,
    ),
    (
        "AP",
        Phase::Accepting(AcceptFrom::Passive),
        State::CompletionPending,
        54,
    ),
    (
        "AT",
        Phase::Accepting(AcceptFrom::Tentative),
        State::CompletionPending,
        54,
    ),
    (
        "H",
        Phase::Gated(GatedSide::Active(Paths::Plain)),
        State::ActiveConnectionPending,
        48,
    ),
    (
        "H1",
        Phase::Gated(GatedSide::Active(Paths::Single)),
        State::ActiveConnectionPending,
        48,
    ),
    (
        "HP",
        Phase::Gated(GatedSide::Passive),
        State::CompletionPending,
        54,
    ),
    (
        "HD",
        Phase::GatedEnded(FinalEvent::Disconnected),
        State::DisconnectPending,
        55,
    ),
    (
        "HB",
        Phase::GatedEnded(FinalEvent::Broken),
        State::DisconnectPending,
        55,
    ),
    ("C", Phase::Connected(Paths::Plain), State::Connected, 51),
    (
        "C1",
        Phase::Connected(Paths::Single),
        State::ConnectedSinglePath,
        51,
    ),
    ("Dr", Phase::Draining, State::DisconnectPending, 55),
    (
        "FD",
        Phase::Flushing(FinalEvent::Disconnected),
        State::DisconnectPending,
        55,
    ),
    (
        "FB",
        Phase::Flushing(FinalEvent::Broken),
        State::DisconnectPending,
        55,
    ),
    ("D", Phase::Disconnected, State::Disconnected, 52),
    ("X", Phase::Freed, State::Disconnected, 12),
];

/// Every input, with its name in the table.
pub(super) const INPUTS: [(&str, Input); 26] = [
    ("Connect", Input::Call(Call::Connect(Paths::Plain))),
    ("ConnectSingle", Input::Call(Call::Connect(Paths::Single))),
    ("ConnectAborted", Input::Call(Call::ConnectAborted)),
    ("Accept", Input::Call(Call::Accept)),
    ("AcceptAborted", Input::Call(Call::AcceptAborted)),
    ("Ready", Input::Call(Call::Ready)),
    ("Abrupt", Input::Call(Call::Disconnect(Close::Abrupt))),
    ("Graceful", Input::Call(Call::Disconnect(Close::Graceful))),
    ("Reset", Input::Call(Call::Reset)),
    ("Free", Input::Call(Call::Free)),
    ("Configured", Input::Call(Call::Configured)),
    ("Reserve", Input::Call(Call::Reserve)),
    ("Release", Input::Call(Call::Release)),
    ("Requested", Input::Call(Call::Requested)),
    ("Established", Input::Network(Network::Established)),
    (
        "EstablishedGated",
        Input::Network(Network::EstablishedGated),
    ),
    ("PeerRejected", Input::Network(Network::PeerRejected)),
    ("NonPeerRejected", Input::Network(Network::NonPeerRejected)),
    ("Unreachable", Input::Network(Network::Unreachable)),
    ("TimedOut", Input::Network(Network::TimedOut)),
    ("AcceptFailed", Input::Network(Network::AcceptFailed)),
    (
        "PeerDisconnected",
        Input::Network(Network::PeerDisconnected),
    ),
    ("Broken", Input::Network(Network::Broken)),
    ("RequestsIdle", Input::Progress(Progress::RequestsIdle)),
    ("Idle", Input::Progress(Progress::Idle)),
    ("DeviceRemoved", Input::Network(Network::DeviceRemoved)),
];

/// Transitions. `!` means that the input is refused, `.` that it changes nothing. Otherwise a cell
/// contains the next phase, `/` and the effects:
///
/// * t(imer starts), s(top timer), e(rror the QP), r(eset the QP), d(isconnect), a(bandon the id),
///   b(roken: reported on the asynchronous EVD);
/// * after `=` the event: E(stablished), P(eer rejected), N(on-peer rejected), A(ccept completion
///   error), D(isconnected), B(roken), T(imed out), U(nreachable).
const TABLE: &str = "
                  U     u     R     r   P     p   T     t     Cg       G1       AU       AP       AT       H        H1       HP       HD       HB       C       C1      Dr      FD     FB     D     X
Connect           Cg/t  !     !     !   !     !   !     !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
ConnectSingle     G1/t  !     !     !   !     !   !     !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
ConnectAborted    !     !     !     !   !     !   !     !     U/sa     U/sa     !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
Accept            AU/   !     !     !   AP/   !   AT/   !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
AcceptAborted     !     !     !     !   !     !   !     !     !        !        U/       P/       T/       !        !        !        !        !        !       !       !       !      !      !     !
Ready             !     !     !     !   !     !   !     !     .        .        .        .        .        C/=E     C1/=E    C/=E     FD/=E    FB/=E    .       .       !       !      !      !     !
Abrupt            D/e   !     !     !   !     !   !     !     FD/sea   FD/sea   FD/seda  FD/seda  FD/seda  FD/ed    FD/ed    FD/ed    FD/      FB/      FD/ed   FD/ed   FD/ed   .      .      .     !
Graceful          D/e   !     !     !   !     !   !     !     FD/sea   FD/sea   FD/seda  FD/seda  FD/seda  FD/ed    FD/ed    FD/ed    FD/      FB/      Dr/     Dr/     .       .      .      .     !
Reset             .     .     !     !   !     !   !     !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      U/ra  !
Free              X/ea  X/ea  !     !   !     !   !     !     X/sea    X/sea    X/sea    X/sea    X/sea    X/seda   X/seda   X/seda   X/ea     X/ea     X/seda  X/seda  X/eda   X/ea   X/ea   X/ea  !
Configured        .     U/    .     R/  .     P/  .     T/    !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
Reserve           R/    r/    !     !   !     !   !     !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
Release           .     .     U/    u/  U/    u/  X/ea  X/ea  .        .        .        .        .        .        .        .        .        .        .       .       .       .      .      .     .
Requested         !     !     P/    p/  !     !   !     !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
Established       .     .     .     .   .     .   .     .     C/s=E    C1/s=E   C/s=E    C/s=E    C/s=E    .        .        .        .        .        .       .       .       .      .      .     .
EstablishedGated  .     .     .     .   .     .   .     .     H/s      H1/s     HP/s     HP/s     HP/s     .        .        .        .        .        .       .       .       .      .      .     .
PeerRejected      .     .     .     .   .     .   .     .     D/se=P   D/se=P   D/se=A   D/se=A   D/se=A   HD/ed    HD/ed    HD/ed    .        .        FD/ed   FD/ed   FD/ed   .      .      .     .
NonPeerRejected   .     .     .     .   .     .   .     .     D/se=N   D/se=N   D/se=A   D/se=A   D/se=A   HD/ed    HD/ed    HD/ed    .        .        FD/ed   FD/ed   FD/ed   .      .      .     .
Unreachable       .     .     .     .   .     .   .     .     D/se=U   D/se=U   D/se=A   D/se=A   D/se=A   HB/ed    HB/ed    HB/ed    .        .        FB/ed   FB/ed   FB/ed   .      .      .     .
TimedOut          .     .     .     .   .     .   .     .     D/sea=T  D/sea=T  .        .        .        .        .        .        .        .        .       .       .       .      .      .     .
AcceptFailed      .     .     .     .   .     .   .     .     D/se=N   D/se=N   D/se=A   D/se=A   D/se=A   HB/ed    HB/ed    HB/ed    .        .        FB/ed   FB/ed   FB/ed   .      .      .     .
PeerDisconnected  .     .     .     .   .     .   .     .     D/sed=N  D/sed=N  D/sed=A  D/sed=A  D/sed=A  HD/ed    HD/ed    HD/ed    .        .        FD/ed   FD/ed   FD/ed   .      .      .     .
Broken            D/eb  .     D/eb  .   D/eb  .   D/eb  .     D/se=N   D/se=N   D/se=A   D/se=A   D/se=A   HB/ed    HB/ed    HB/ed    .        .        FB/ed   FB/ed   FB/ed   .      .      .     .
RequestsIdle      .     .     .     .   .     .   .     .     .        .        .        .        .        .        .        .        .        .        .       .       FD/ed   .      .      .     .
Idle              .     .     .     .   .     .   .     .     .        .        .        .        .        .        .        .        .        .        .       .       D/ed=D  D/=D   D/=B   .     .
DeviceRemoved     D/ea  .     D/ea  .   D/ea  .   D/ea  .     D/sea=N  D/sea=N  D/sea=A  D/sea=A  D/sea=A  FB/ea=E  FB/ea=E  FB/ea=E  FD/ea=E  FB/ea=E  FB/ea   FB/ea   FB/ea   FD/ea  FB/ea  D/ea  .
";

fn phase_named(name: &str) -> Phase {
    let found = PHASES.iter().find(|(known, ..)| *known == name);
    found.unwrap_or_else(|| panic!("phase {name}")).1
}

fn effects_named(text: &str) -> Effects {
    let (letters, event) = text.split_once('=').unwrap_or((text, ""));
    assert!(letters.chars().all(|c| "stedrab".contains(c)), "{text}");
    Effects {
        stop_timer: letters.contains('s'),
        start_timer: letters.contains('t'),
        qp_error: letters.contains('e'),
        qp_reset: letters.contains('r'),
        send_disconnect: letters.contains('d'),
        abandon_id: letters.contains('a'),
        report_broken: letters.contains('b'),
        event: match event {
            "" => None,
            "E" => Some(ConnectionEvent::Established),
            "P" => Some(ConnectionEvent::PeerRejected),
            "N" => Some(ConnectionEvent::NonPeerRejected),
            "A" => Some(ConnectionEvent::AcceptCompletionError),
            "D" => Some(ConnectionEvent::Disconnected),
            "B" => Some(ConnectionEvent::Broken),
            "T" => Some(ConnectionEvent::TimedOut),
            "U" => Some(ConnectionEvent::Unreachable),
            other => panic!("event {other}"),
        },
    }
}

/// Returns the code of the error for a call that the phase does not allow.
fn refusal(phase: Phase) -> u32 {
    let (.., subtype) = PHASES.iter().find(|row| row.1 == phase).expect("a phase");
    match phase {
        Phase::Freed => 0x8005_0000 | subtype,
        _ => 0x8007_0000 | subtype,
    }
}

#[test]
fn every_input_in_every_phase() {
    let mut rows = TABLE.trim_matches('\n').lines();
    let columns: Vec<Phase> = rows
        .next()
        .expect("a heading")
        .split_whitespace()
        .map(phase_named)
        .collect();
    assert_eq!(columns, PHASES.map(|row| row.1));
    let mut checked = 0;
    for ((name, input), row) in INPUTS.iter().zip(rows.by_ref()) {
        let mut cells = row.split_whitespace();
        assert_eq!(cells.next(), Some(*name));
        for &phase in &columns {
            let found = step(phase, *input);
            let expected = match cells.next().expect("a cell") {
                "!" => Err(refusal(phase)),
                "." => Ok((phase, Effects::NONE)),
                cell => {
                    let (next, effects) = cell.split_once('/').expect("phase/effects");
                    Ok((phase_named(next), effects_named(effects)))
                }
            };
            assert_eq!(
                found.map_err(|error| error.code(&[])),
                expected,
                "{name} in {phase:?}"
            );
            checked += 1;
        }
        assert_eq!(cells.next(), None, "{name}");
    }
    assert_eq!(rows.next(), None);
    assert_eq!(checked, 650);
}

#[test]
fn states_have_their_numbers() {
    let mut seen = [false; 14];
    for (name, phase, state, _) in PHASES {
        assert_eq!(phase.state(), state, "{name}");
        seen[state.number() as usize] = true;
    }
    assert_eq!(seen, [true; 14]);
    for (state, number) in [
        (State::Unconnected, 0),
        (State::UnconfiguredUnconnected, 1),
        (State::Reserved, 2),
        (State::UnconfiguredReserved, 3),
        (State::PassiveConnectionPending, 4),
        (State::UnconfiguredPassive, 5),
        (State::ActiveConnectionPending, 6),
        (State::TentativeConnectionPending, 7),
        (State::UnconfiguredTentative, 8),
        (State::Connected, 9),
        (State::DisconnectPending, 10),
        (State::Disconnected, 11),
        (State::CompletionPending, 12),
        (State::ConnectedSinglePath, 13),
    ] {
        assert_eq!(state.number(), number);
    }
}

#[test]
fn a_refusal_names_the_state() {
    for (name, phase, _, _) in PHASES {
        assert_eq!(
            phase.invalid_state_error().code(&[]),
            refusal(phase),
            "{name}"
        );
    }
    let gone = DatError::new(Kind::InvalidHandle, Subtype::InvalidHandleEp);
    assert_eq!(Phase::Freed.invalid_state_error(), gone);
}

#[test]
fn permissions_of_each_phase() {
    for (what, may, allowed) in [
        (
            "receive",
            may_post_recv as fn(Phase) -> _,
            "U R P T Cg G1 AU AP AT H H1 HP C C1 Dr D",
        ),
        ("request", may_post_request, "C C1 D"),
        (
            "free",
            may_free,
            "U u Cg G1 AU AP AT H H1 HP HD HB C C1 Dr FD FB D",
        ),
    ] {
        for (name, phase, _, _) in PHASES {
            let expected = if allowed.split(' ').any(|one| one == name) {
                Ok(())
            } else {
                Err(phase.invalid_state_error())
            };
            assert_eq!(may(phase), expected, "{what} in {name}");
        }
    }
}

#[test]
fn an_endpoint_is_connected_until_the_disconnect() {
    for (name, phase, _, _) in PHASES {
        let stands = ["H", "H1", "HP", "C", "C1", "Dr"].contains(&name);
        assert_eq!(phase.is_connected(), stands, "{name}");
    }
}

#[test]
fn an_endpoint_is_over_from_the_end_of_the_connection() {
    for (name, phase, _, _) in PHASES {
        let over = ["HD", "HB", "FD", "FB", "D", "X"].contains(&name);
        assert_eq!(phase.is_over(), over, "{name}");
    }
}

#[test]
fn receives_wait_for_established() {
    for (name, phase, _, _) in PHASES {
        let waits = ["Cg", "G1", "H", "H1", "HP", "HD", "HB"].contains(&name);
        assert_eq!(phase.holds_receives(), waits, "{name}");
    }
}

#[test]
fn free_agrees_with_may_free() {
    for (name, phase, _, _) in PHASES {
        let freed = step(phase, Call::Free.into()).map(|(next, _)| assert_eq!(next, Phase::Freed));
        assert_eq!(freed, may_free(phase), "{name}");
    }
}

#[test]
fn final_events_are_connection_events() {
    assert_eq!(
        FinalEvent::Disconnected.event(),
        ConnectionEvent::Disconnected
    );
    assert_eq!(FinalEvent::Broken.event(), ConnectionEvent::Broken);
}
