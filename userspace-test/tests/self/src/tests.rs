// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! List of all tests, in the order in which they run: first parts, then the whole. Tests that
//! remove the device or unload the module are last.

mod abandoned_connect;
pub mod absolute_timeouts;
mod address_loss;
mod addresses;
mod argument_numbers;
mod atomics;
mod bmi;
mod broken_event;
pub mod cgroup_charge;
mod close_races;
pub mod cno;
mod cno_agent;
mod cno_file;
mod cno_file_reads;
mod cno_storm;
mod completion_flags;
mod connect;
mod connect_refusal;
mod connect_routes;
mod connect_table;
mod connect_timer;
mod connect_without_timeout;
mod csp;
mod data_path;
mod dequeue_many;
mod device_removal;
mod device_removal_by_state;
mod disconnect;
mod drivers;
mod dto_failure;
mod end_of_connection;
mod endless_peer;
mod endpoint;
mod ep_connect;
mod ep_model;
mod ep_modify;
mod ep_modify_posted;
mod ep_query;
mod ep_races;
mod ep_reset;
mod ep_stage;
mod ep_states;
mod evd;
mod evd_cqs;
mod evd_file;
mod evd_full;
mod evd_resize;
mod evd_room;
mod event_delivery;
mod event_storm;
mod example;
mod extensions;
mod failed_destroys;
mod faults;
mod handles;
mod handoff;
pub mod handoff_processes;
mod hostile;
mod hostile_caller;
mod hostile_listener;
mod ia;
mod ia_close;
pub mod ia_stat;
mod immediate;
pub mod integrity;
mod interop;
mod ioctl;
mod ioctl_versions;
mod irqs_off;
pub mod iwarp;
mod iwarp_addresses;
mod iwarp_cq;
mod iwarp_early_receives;
mod iwarp_failed_connect;
mod iwarp_late_posts;
mod iwarp_local_port;
mod iwarp_qp_number;
mod kdapltest;
mod kdapltest_ends;
mod keepalive;
pub mod kernel;
mod kernel_bh;
mod kernel_namespaces;
mod kill;
pub mod kill_by_state;
mod kills;
mod kunit;
mod late_completions;
mod libkdat;
mod limits;
pub mod limits_reached;
mod lingering_ids;
mod lists;
mod many_connections;
mod mapped_empty;
mod mapped_events;
mod mapped_posts;
mod memory;
mod memory_kinds;
mod message_before_confirmation;
mod module;
mod network_loss;
mod null_evds;
mod nvme;
mod post;
mod preposted;
pub mod protection;
mod psp;
mod qos;
mod read_depth;
mod read_to_rmr;
mod ready_gate;
mod receiver_not_ready;
mod rmr;
mod rmr_of_freed_ep;
mod rmr_slots;
mod rsp;
mod service_points;
mod signalled;
mod silent_peer;
mod silent_requests;
mod slow_memory;
mod srq;
mod srq_ends;
mod srq_last_receive;
mod srq_scale;
pub mod srq_traffic;
mod streams;
mod submit;
mod suppressed;
mod trace;
mod transfer;
mod two_ports;
mod udapl;
mod udapl_pairs;
mod unprivileged;
mod unwanted_completions;
pub mod uring;
pub mod user_device_share;
pub mod user_limits;
mod wait;
mod wait_signals;
mod wakeup;
mod watermarks;
mod wide_qualifiers;
mod zero_based;

use crate::harness::Test;

/// Lists the tests of a file: function, limit in seconds, and the promise. `#[Tag, ...]` before a
/// test gives it tags, `#![Tag, ...]` at the beginning gives them to all tests of the file.
/// `REMOVAL` lists the tests that remove the device.
macro_rules! tests {
    (#!$all:tt $($(#$tags:tt)* $function:ident, $seconds:literal, $name:literal;)*) => {
        tests!(TESTS: $(#$all $(#$tags)* $function, $seconds, $name;)*);
    };
    ($($(#$tags:tt)* $function:ident, $seconds:literal, $name:literal;)*) => {
        tests!(TESTS: $($(#$tags)* $function, $seconds, $name;)*);
    };
    ($list:ident: $(
        $(#[$($tag:ident),*])* $function:ident, $seconds:literal, $name:literal;
    )*) => {
        pub const $list: &[crate::harness::Test] = &[$(crate::harness::Test {
            id: crate::harness::TestId { module: module_path!(), function: stringify!($function) },
            tags: &[$($(crate::tag::Tag::$tag,)*)*],
            name: $name,
            limit: std::time::Duration::from_secs($seconds),
            run: $function,
        },)*];
    };
}
use tests;

pub fn all() -> Vec<Test> {
    [
        kunit::TESTS,
        ia::TESTS,
        evd::TESTS,
        wait::TESTS,
        wait_signals::TESTS,
        absolute_timeouts::TESTS,
        dequeue_many::TESTS,
        mapped_empty::TESTS,
        mapped_events::TESTS,
        mapped_posts::TESTS,
        mapped_posts::hostile::TESTS,
        mapped_posts::order::TESTS,
        evd_resize::TESTS,
        evd_file::TESTS,
        evd_file::writes::TESTS,
        evd_file::sleeps::TESTS,
        evd_file::other_consumers::TESTS,
        evd_file::ends::TESTS,
        evd_file::threads::TESTS,
        evd_file::hostile::TESTS,
        evd_file::uring::TESTS,
        cno::TESTS,
        cno_agent::TESTS,
        cno_file::TESTS,
        cno_file_reads::TESTS,
        streams::TESTS,
        cno_storm::TESTS,
        uring::TESTS,
        uring::stream::TESTS,
        uring::cancel::TESTS,
        uring::ends::TESTS,
        uring::hostile::TESTS,
        uring::rings::TESTS,
        uring::limits::TESTS,
        uring::sizes::TESTS,
        uring::stopped::TESTS,
        uring::echo_server::TESTS,
        irqs_off::TESTS,
        event_storm::TESTS,
        kdapltest::TESTS,
        kdapltest_ends::TESTS,
        example::TESTS,
        libkdat::TESTS,
        endpoint::TESTS,
        ep_modify::TESTS,
        ep_modify_posted::TESTS,
        null_evds::TESTS,
        unwanted_completions::TESTS,
        ep_states::TESTS,
        ep_connect::TESTS,
        ep_reset::TESTS,
        preposted::TESTS,
        ep_query::TESTS,
        connect::TESTS,
        read_depth::TESTS,
        connect_refusal::TESTS,
        connect_routes::TESTS,
        connect_table::TESTS,
        connect_timer::TESTS,
        connect_without_timeout::TESTS,
        argument_numbers::TESTS,
        psp::TESTS,
        rsp::TESTS,
        csp::TESTS,
        watermarks::TESTS,
        wide_qualifiers::TESTS,
        service_points::TESTS,
        handoff::TESTS,
        handoff_processes::TESTS,
        interop::TESTS,
        transfer::TESTS,
        integrity::TESTS,
        bmi::TESTS,
        bmi::buffers::TESTS,
        bmi::devices::TESTS,
        bmi::ends::TESTS,
        bmi::hostile::TESTS,
        bmi::kernel::TESTS,
        bmi::kernel::devices::TESTS,
        bmi::kernel::peers::TESTS,
        bmi::kernel::rails::TESTS,
        bmi::kernel::two_hosts::TESTS,
        bmi::leaving::TESTS,
        bmi::receives::TESTS,
        bmi::scale::TESTS,
        bmi::tool::TESTS,
        dto_failure::TESTS,
        post::TESTS,
        submit::TESTS,
        completion_flags::TESTS,
        signalled::TESTS,
        suppressed::TESTS,
        extensions::TESTS,
        immediate::TESTS,
        atomics::TESTS,
        srq::TESTS,
        srq_traffic::TESTS,
        evd_cqs::TESTS,
        event_delivery::TESTS,
        end_of_connection::TESTS,
        disconnect::TESTS,
        broken_event::TESTS,
        ep_model::TESTS,
        qos::TESTS,
        ready_gate::TESTS,
        ready_gate::shared::TESTS,
        memory::TESTS,
        memory_kinds::TESTS,
        zero_based::TESTS,
        rmr::TESTS,
        protection::TESTS,
        read_to_rmr::TESTS,
        rmr_of_freed_ep::TESTS,
        rmr_slots::TESTS,
        drivers::TESTS,
        late_completions::TESTS,
        limits::TESTS,
        limits_reached::TESTS,
        lists::TESTS,
        cgroup_charge::TESTS,
        close_races::TESTS,
        user_limits::TESTS,
        user_limits::module_memory::TESTS,
        user_device_share::TESTS,
        ia_close::TESTS,
        ia_stat::TESTS,
        ioctl::TESTS,
        unprivileged::TESTS,
        ioctl_versions::TESTS,
        handles::TESTS,
        faults::TESTS,
        hostile_caller::TESTS,
        hostile_listener::TESTS,
        wakeup::TESTS,
        data_path::TESTS,
        keepalive::TESTS,
        &kernel::all()[..],
        kernel_bh::TESTS,
        kernel_namespaces::TESTS,
        nvme::connect::TESTS,
        nvme::io::TESTS,
        nvme::ends::TESTS,
        nvme::hostile::TESTS,
        nvme::link::TESTS,
        nvme::host::TESTS,
        nvme::host_io::TESTS,
        nvme::host_ends::TESTS,
        nvme::host_hostile::TESTS,
        nvme::host_link::TESTS,
        nvme::host_recovery::TESTS,
        nvme::host_unanswered::TESTS,
        udapl::TESTS,
        udapl_pairs::TESTS,
        silent_peer::TESTS,
        lingering_ids::TESTS,
        endless_peer::TESTS,
        silent_requests::TESTS,
        iwarp::TESTS,
        iwarp_early_receives::TESTS,
        iwarp_failed_connect::TESTS,
        iwarp_addresses::TESTS,
        iwarp_cq::TESTS,
        iwarp_late_posts::TESTS,
        iwarp_local_port::TESTS,
        iwarp_qp_number::TESTS,
        address_loss::TESTS,
        addresses::TESTS,
        two_ports::TESTS,
        network_loss::TESTS,
        receiver_not_ready::TESTS,
        message_before_confirmation::TESTS,
        ep_races::TESTS,
        abandoned_connect::TESTS,
        evd_room::TESTS,
        evd_full::TESTS,
        trace::TESTS,
        many_connections::TESTS,
        srq_ends::TESTS,
        srq_last_receive::TESTS,
        srq_scale::TESTS,
        kill::TESTS,
        kill_by_state::TESTS,
        kills::TESTS,
        module::TESTS,
        failed_destroys::TESTS,
        device_removal::TESTS,
        uring::removal::TESTS,
        slow_memory::TESTS,
        endless_peer::REMOVAL,
        evd_full::REMOVAL,
        srq_traffic::REMOVAL,
        mapped_posts::order::REMOVAL,
        null_evds::REMOVAL,
        kernel::REMOVAL,
        kernel_bh::REMOVAL,
        udapl::REMOVAL,
        bmi::removal::TESTS,
        nvme::ends::REMOVAL,
        nvme::host_ends::REMOVAL,
        evd_cqs::REMOVAL,
        device_removal_by_state::TESTS,
    ]
    .concat()
}

#[cfg(test)]
mod unit;
