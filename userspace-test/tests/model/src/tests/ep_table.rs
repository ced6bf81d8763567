// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the Endpoint's state machine with a table of one row for each input and one column for
//! each phase.

mod table;

pub(super) use self::table::INPUTS;

use self::table::{
    PHASES,
    TABLE, //
};
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
        Call,
        ConnectionEvent,
        Effects,
        FinalEvent,
        Phase,
        State, //
    },
};

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
            "U R P T Cg G1 AU AP AT H H1 HP C C1 Dr FD FB D",
        ),
        ("request", may_post_request, "C C1 FD FB D"),
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
