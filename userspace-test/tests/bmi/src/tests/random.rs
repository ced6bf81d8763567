// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Random programs on three nodes, compared with BMI's contract.
//!
//! Two clients and a server send, receive, cancel, and give up idle sessions, while connections
//! break and nodes stop for a while. Then each send must complete without help, and afterwards
//! everything must be back: operations, peers, credits, memory.

mod audit;
mod program;

use crate::sim::{
    Settings,
    SMALL, //
};
use program::{
    Act,
    Program, //
};
use proptest::prelude::*;

/// Lengths around the limits of SMALL, and some that need stripes.
const LENGTHS: [usize; 9] = [0, 1, 60, 207, 208, 209, 700, 5000, 20_000];

/// Parameters of the three nodes, whose numbers of devices differ.
fn settings() -> impl Strategy<Value = [Settings; 3]> {
    let devices = [1_u8..=3, 1_u8..=3, 1_u8..=3];
    let numbers = (1_u8..=4, 1_u16..6, 4_u16..7, 3_u16..9);
    (any::<bool>(), numbers, devices).prop_map(|(pull, (rails, data, control, queue), devices)| {
        devices.map(|devices| Settings {
            pull,
            rails,
            devices,
            queue,
            window: crate::bmi::engine::Window { data, control },
            ..SMALL
        })
    })
}

/// Operations and steps, without faults.
fn calm() -> BoxedStrategy<Act> {
    let length = || prop::sample::select(&LENGTHS[..]);
    let link = || (0_usize..2, any::<bool>());
    prop_oneof![
        6 => (link(), 0_i32..3, length(), 1_usize..14)
            .prop_map(|(link, tag, length, fragments)| Act::Send(link, tag, length, fragments)),
        6 => (link(), 0_i32..3, 1_usize..14)
            .prop_map(|(link, tag, fragments)| Act::Receive(link, tag, 20_000, fragments)),
        2 => (link(), 0_usize..209).prop_map(|(link, length)| Act::Unexpected(link, length)),
        1 => Just(Act::TakeUnexpected),
        6 => (0_usize..40).prop_map(Act::Run),
    ]
    .boxed()
}

/// The same with cancellations, short receives, idle sessions and memory that cannot be exposed.
fn disturbed() -> BoxedStrategy<Act> {
    let link = || (0_usize..2, any::<bool>());
    prop_oneof![
        20 => calm(),
        4 => any::<usize>().prop_map(Act::Cancel),
        1 => (link(), 0_i32..3, prop::sample::select(&LENGTHS[..]))
            .prop_map(|(link, tag, length)| Act::Receive(link, tag, length, 1)),
        1 => (0_usize..3).prop_map(Act::GiveUp),
        1 => (0_usize..3, any::<bool>()).prop_map(|(node, fails)| Act::Exposure(node, fails)),
        1 => (0_usize..3, 0_u8..8).prop_map(|(node, devices)| Act::ExposureOn(node, devices)),
    ]
    .boxed()
}

/// The same with connections that break, and nodes that stop.
fn broken() -> BoxedStrategy<Act> {
    prop_oneof![
        20 => disturbed(),
        1 => any::<usize>().prop_map(Act::Break),
        1 => (0_usize..3, 0_u8..3).prop_map(|(node, device)| Act::Remove(node, device)),
        1 => (0_usize..3, 0_u8..8).prop_map(|(node, devices)| Act::MemoryOn(node, devices)),
        1 => (0_usize..3).prop_map(Act::Freeze),
        2 => Just(Act::Thaw),
        1 => (1_u64..150).prop_map(Act::Tick),
        1 => (any::<bool>()).prop_map(Act::Refuse),
    ]
    .boxed()
}

fn acts(act: BoxedStrategy<Act>) -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(act, 1..80)
}

proptest! {
    #[test]
    fn without_faults(settings in settings(), seed in any::<u64>(), acts in acts(calm())) {
        let mut program = Program::new(settings, seed);
        program.execute(&acts);
        program.finish();
        program.expect_nothing_lost();
        program.expect_no_error();
    }

    #[test]
    fn with_cancellations(settings in settings(), seed in any::<u64>(), acts in acts(disturbed())) {
        let mut program = Program::new(settings, seed);
        program.execute(&acts);
        program.finish();
        program.expect_nothing_lost();
    }

    #[test]
    fn with_breaks(settings in settings(), seed in any::<u64>(), acts in acts(broken())) {
        let mut program = Program::new(settings, seed);
        program.execute(&acts);
        program.finish();
        prop_assert_eq!(program.violations(), 0, "a transfer went on in another session");
    }
}
