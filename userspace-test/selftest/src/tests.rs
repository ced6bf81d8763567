// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! All tests, in the order in which they run: first the pieces, then the whole,
//! last what takes the device or the module away.

mod address_gone;
mod atomics;
mod attempts;
mod batch;
mod broken;
pub mod charge;
mod closing;
pub mod cno;
mod cno_file;
mod cno_storm;
mod common;
mod completion_flags;
mod connect;
mod device;
mod disconnect;
mod drivers;
mod end_of_connection;
mod endpoint;
mod ep_again;
mod ep_connect;
mod ep_modify;
mod ep_modify_posted;
mod ep_query;
mod ep_stage;
mod ep_states;
mod evd_queues;
mod evd_resize;
mod event;
mod event_faults;
mod event_storm;
mod example;
mod extensions;
mod extreme;
mod failure;
mod faults;
mod flooded;
mod full;
mod growth;
mod handles;
mod handoff;
pub mod handoff_processes;
mod ia;
mod immediate;
mod interop;
mod irqs_off;
pub mod iwarp;
mod iwarp_number;
mod iwarp_room;
mod kdapltest;
mod kernel;
mod kill;
mod many;
mod memory;
mod message;
mod module;
mod network_gone;
mod no_receive;
mod post;
mod preposted;
mod qos;
mod read_depth;
mod refusal;
mod removal;
pub mod removal_kill;
mod reserved;
mod service;
mod service_points;
pub mod shares;
mod signalled;
mod silence;
mod storm;
mod submit;
mod suppressed;
pub mod tenants;
mod trace;
mod transfer;
mod udapl;
mod udapl_pairs;
pub mod until;
mod wait;
mod wakeup;
mod walk;
mod wide;
mod wire;
mod wire_listener;

use crate::harness::Test;

/// A list of tests, each with a limit in seconds.
macro_rules! tests {
    ($($function:ident, $seconds:literal, $name:literal;)*) => {
        pub const TESTS: &[crate::harness::Test] = &[$(crate::harness::Test {
            name: $name,
            limit: std::time::Duration::from_secs($seconds),
            run: $function,
        },)*];
    };
}
use tests;

pub fn all() -> Vec<Test> {
    [
        ia::TESTS,
        event::TESTS,
        wait::TESTS,
        until::TESTS,
        batch::TESTS,
        evd_resize::TESTS,
        cno::TESTS,
        cno_file::TESTS,
        cno_storm::TESTS,
        irqs_off::TESTS,
        event_storm::TESTS,
        kdapltest::TESTS,
        example::TESTS,
        endpoint::TESTS,
        ep_modify::TESTS,
        ep_modify_posted::TESTS,
        ep_states::TESTS,
        ep_connect::TESTS,
        ep_again::TESTS,
        preposted::TESTS,
        ep_query::TESTS,
        connect::TESTS,
        read_depth::TESTS,
        refusal::TESTS,
        service::TESTS,
        reserved::TESTS,
        common::TESTS,
        wide::TESTS,
        service_points::TESTS,
        handoff::TESTS,
        handoff_processes::TESTS,
        interop::TESTS,
        transfer::TESTS,
        failure::TESTS,
        post::TESTS,
        submit::TESTS,
        completion_flags::TESTS,
        signalled::TESTS,
        suppressed::TESTS,
        extensions::TESTS,
        immediate::TESTS,
        atomics::TESTS,
        evd_queues::TESTS,
        event_faults::TESTS,
        end_of_connection::TESTS,
        disconnect::TESTS,
        broken::TESTS,
        walk::TESTS,
        qos::TESTS,
        memory::TESTS,
        drivers::TESTS,
        extreme::TESTS,
        charge::TESTS,
        tenants::TESTS,
        shares::TESTS,
        closing::TESTS,
        message::TESTS,
        growth::TESTS,
        handles::TESTS,
        faults::TESTS,
        wire::TESTS,
        wire_listener::TESTS,
        wakeup::TESTS,
        kernel::TESTS,
        udapl::TESTS,
        udapl_pairs::TESTS,
        silence::TESTS,
        iwarp::TESTS,
        iwarp_room::TESTS,
        iwarp_number::TESTS,
        address_gone::TESTS,
        network_gone::TESTS,
        no_receive::TESTS,
        storm::TESTS,
        attempts::TESTS,
        flooded::TESTS,
        full::TESTS,
        trace::TESTS,
        many::TESTS,
        kill::TESTS,
        removal_kill::TESTS,
        module::TESTS,
        device::TESTS,
        full::REMOVAL,
        kernel::REMOVAL,
        evd_queues::REMOVAL,
        removal::TESTS,
    ]
    .concat()
}

#[cfg(test)]
mod unit {
    #[test]
    fn names_are_sentences_of_their_own() {
        let mut names: Vec<_> = super::all().iter().map(|test| test.name).collect();
        assert!(names.iter().all(|name| name.contains(' ') && !name.contains('#')));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "two tests have the same name");
    }
}
