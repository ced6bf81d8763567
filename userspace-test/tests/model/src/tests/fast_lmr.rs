// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the states of an LMR that requests register with a simulation of the device, the send
//! queue and the peer.

use crate::rust::model::{
    code::{
        DatError,
        Kind,
        Subtype, //
    },
    fast_lmr::{
        LmrEffects,
        LmrInput,
        LmrState, //
    },
};
use proptest::prelude::*;
use std::collections::VecDeque;

const STATES: [LmrState; 10] = [
    LmrState::Free,
    LmrState::Preparing,
    LmrState::Registering,
    LmrState::Registered,
    LmrState::Invalidating,
    LmrState::Both,
    LmrState::Dying,
    LmrState::LostRegistering,
    LmrState::LostInvalidating,
    LmrState::Lost,
];

fn invalid(subtype: Subtype) -> DatError {
    DatError::new(Kind::InvalidState, subtype)
}

fn effects(forget: bool, unmap: bool, replace: bool) -> LmrEffects {
    LmrEffects {
        forget,
        unmap,
        replace,
    }
}

#[test]
fn a_registration_begins_only_without_another() {
    for state in STATES {
        let expected = match state {
            LmrState::Free => Ok((LmrState::Preparing, effects(false, false, false))),
            LmrState::Lost => Ok((LmrState::Preparing, effects(false, false, true))),
            _ => Err(invalid(Subtype::InvalidStateLmrInUse)),
        };
        assert_eq!(state.step(LmrInput::Prepare), expected, "{state:?}");
    }
}

#[test]
fn an_invalidation_needs_a_registration_and_does_not_overtake_it() {
    for state in STATES {
        for in_order in [false, true] {
            let expected = match (state, in_order) {
                (LmrState::Registered, _) => {
                    Ok((LmrState::Invalidating, effects(true, false, false)))
                }
                (LmrState::Registering, true) => Ok((LmrState::Both, effects(true, false, false))),
                (LmrState::Registering, false) => Err(invalid(Subtype::InvalidStateLmrInUse)),
                _ => Err(invalid(Subtype::InvalidStateLmrFree)),
            };
            assert_eq!(
                state.step(LmrInput::Invalidate { in_order }),
                expected,
                "{state:?}"
            );
        }
    }
}

#[test]
fn unexpected_completions_change_nothing() {
    let idle = [LmrState::Free, LmrState::Preparing, LmrState::Lost];
    for state in idle {
        for ok in [false, true] {
            for input in [
                LmrInput::RegistrationEnded { ok },
                LmrInput::InvalidationEnded { ok },
                LmrInput::PeerInvalidated,
            ] {
                let same = Ok((state, effects(false, false, false)));
                assert_eq!(state.step(input), same, "{state:?} {input:?}");
            }
        }
    }
    for state in STATES {
        if state != LmrState::Preparing {
            let same = Ok((state, effects(false, false, false)));
            assert_eq!(state.step(LmrInput::Abandon), same, "{state:?}");
            assert_eq!(state.step(LmrInput::Register), same, "{state:?}");
        }
    }
}

/// A request in the send queue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Request {
    Registration,
    Invalidation,
}

/// Step of a simulation.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// `dat_lmr_fmr`, which may be abandoned.
    Register { abandons: bool },
    /// `dat_lmr_invalidate`.
    Invalidate { in_order: bool },
    /// The device carries out the next request.
    CarryOut,
    /// The completion of one of the requests that were carried out is taken.
    Complete { last: bool },
    /// The connection ends: requests that were not carried out are flushed, or even those.
    Flush { all: bool },
    /// The peer invalidates the key.
    PeerInvalidates,
    /// The completion of the peer's message is taken.
    Receive,
}

/// What the device and the consumer know.
#[derive(Default)]
struct World {
    /// The key is valid on the device.
    is_valid: bool,
    /// The pages are mapped.
    is_mapped: bool,
    /// Posts may use the LMR context.
    is_known: bool,
    queue: VecDeque<Request>,
    done: Vec<(Request, bool)>,
    /// A message has invalidated the key, and its completion was not taken.
    message: bool,
}

impl World {
    fn apply(&mut self, effects: LmrEffects) {
        if effects.replace {
            // The region is destroyed, and then the mapping ends.
            self.is_valid = false;
            self.is_mapped = false;
        }
        if effects.forget {
            self.is_known = false;
        }
        if effects.unmap {
            assert!(!self.is_valid, "the device may access unmapped pages");
            self.is_mapped = false;
        }
    }
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => any::<bool>().prop_map(|abandons| Act::Register { abandons }),
        3 => any::<bool>().prop_map(|in_order| Act::Invalidate { in_order }),
        5 => Just(Act::CarryOut),
        5 => any::<bool>().prop_map(|last| Act::Complete { last }),
        1 => any::<bool>().prop_map(|all| Act::Flush { all }),
        1 => Just(Act::PeerInvalidates),
        2 => Just(Act::Receive),
    ]
}

fn step(state: &mut LmrState, world: &mut World, input: LmrInput) -> bool {
    match state.step(input) {
        Ok((next, effects)) => {
            *state = next;
            world.apply(effects);
            true
        }
        Err(_) => false,
    }
}

fn act(state: &mut LmrState, world: &mut World, act: Act) {
    match act {
        Act::Register { abandons } => {
            if step(state, world, LmrInput::Prepare) {
                assert!(
                    world.queue.is_empty() && world.done.is_empty(),
                    "mapped twice"
                );
                assert!(
                    !world.is_valid && !world.is_mapped,
                    "a live key is mapped again"
                );
                world.is_mapped = true;
                world.message = false;
                if abandons {
                    step(state, world, LmrInput::Abandon);
                    assert!(!world.is_mapped);
                } else {
                    world.queue.push_back(Request::Registration);
                    world.is_known = true;
                    step(state, world, LmrInput::Register);
                }
            }
        }
        Act::Invalidate { in_order } => {
            if step(state, world, LmrInput::Invalidate { in_order }) {
                assert!(
                    in_order || !world.queue.contains(&Request::Registration),
                    "the registration is overtaken"
                );
                world.queue.push_back(Request::Invalidation);
            }
        }
        Act::CarryOut => {
            if let Some(request) = world.queue.pop_front() {
                world.is_valid = request == Request::Registration;
                world.done.push((request, true));
            }
        }
        Act::Complete { last } => {
            let index = if last {
                world.done.len().saturating_sub(1)
            } else {
                0
            };
            if index < world.done.len() {
                let input = match world.done.remove(index) {
                    (Request::Registration, ok) => LmrInput::RegistrationEnded { ok },
                    (Request::Invalidation, ok) => LmrInput::InvalidationEnded { ok },
                };
                step(state, world, input);
            }
        }
        Act::Flush { all } => {
            if all {
                world.done.iter_mut().for_each(|(_, ok)| *ok = false);
            }
            let flushed = world.queue.drain(..).map(|request| (request, false));
            world.done.extend(flushed);
        }
        // The peer learns the key from a request behind the registration.
        Act::PeerInvalidates if world.is_valid => {
            world.is_valid = false;
            world.message = true;
        }
        Act::PeerInvalidates => {}
        Act::Receive => {
            if core::mem::take(&mut world.message) {
                step(state, world, LmrInput::PeerInvalidated);
            }
        }
    }
}

proptest! {
    #[test]
    fn no_page_is_unmapped_while_its_key_is_valid(
        acts in proptest::collection::vec(acts(), 0..60),
    ) {
        let (mut state, mut world) = (LmrState::Free, World::default());
        for one in acts {
            act(&mut state, &mut world, one);
            let outstanding = world.queue.len() + world.done.len();
            prop_assert_eq!(state.is_busy(), outstanding != 0, "{:?}", state);
            prop_assert!(!world.is_valid || world.is_mapped);
            prop_assert!(!world.is_known || world.is_mapped);
            prop_assert_eq!(state.is_registered(), world.is_known, "{:?}", state);
            if state == LmrState::Free {
                prop_assert!(!world.is_mapped && !world.is_valid);
            }
        }
        // Whatever has happened, the LMR can be used again.
        act(&mut state, &mut world, Act::Flush { all: false });
        while !world.done.is_empty() {
            act(&mut state, &mut world, Act::Complete { last: false });
        }
        act(&mut state, &mut world, Act::Receive);
        act(&mut state, &mut world, Act::Invalidate { in_order: true });
        act(&mut state, &mut world, Act::Flush { all: true });
        act(&mut state, &mut world, Act::Complete { last: false });
        prop_assert!(matches!(state, LmrState::Free | LmrState::Lost), "{:?}", state);
        prop_assert!(state.step(LmrInput::Prepare).is_ok());
    }
}
