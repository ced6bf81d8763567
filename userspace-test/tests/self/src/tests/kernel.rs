// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests consumers in the kernel. Module `userspace-test/tests/kernel` tests the interface itself;
//! this file runs its tests, and tests connections between a kernel consumer and a process.

mod consumers;
mod gate;
mod handoff;
mod mixed;

pub use self::consumers::rust_lost_memory;

use self::consumers::{
    block_samples, consumer_unload, echo_server, rust_bound_memory, rust_close,
    rust_close_beside_free, rust_consumer_unload, rust_dropped_registration, rust_free_dispatcher,
    rust_free_in_upcall, rust_late_invalidation, rust_registered_memory, rust_segments,
    rust_shared_receives,
};
use super::drivers::disguised;
use super::faults::inject;
use super::tests;
use crate::context::Context;
use crate::expect::same;
use crate::harness::{skip, Test};
use crate::kunit;
use crate::machine::{self, DeviceGuard};
use crate::repeat::unheard;
use crate::threads::Worker;
use anyhow::{ensure, Result};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

tests! {
    upcall_single_instance, 300, "In the kernel, SINGLE_INSTANCE hands out each event once, one at a time, in order";
    upcall_many, 300, "In the kernel, MANY hands out each event once, several at a time";
    upcall_notify, 300, "In the kernel, NOTIFY reports events, which stay queued until they are dequeued";
    upcall_disable, 120, "In the kernel, DISABLE makes no upcall, and INVOC_NEW and INVOC_ANY differ in queued events";
    upcall_bad_arguments, 60, "In the kernel, invalid upcalls are refused, and so are waits on an EVD with upcalls";
    upcall_refused_during_wait, 60, "In the kernel, no upcalls are enabled on an EVD that has a waiter";
    upcall_budget, 300, "In the kernel, all events are handed out and upcalls end, with more events than a budget and an upcall that posts again";
    upcall_enable_and_disable, 600, "In the kernel, no event is lost or handed out twice while upcalls are enabled and disabled";
    upcall_teardown_waits, 60, "In the kernel, TEARDOWN waits for the upcall in progress, except within that upcall";
    upcall_delays_evd_free, 60, "In the kernel, freeing an EVD waits for the upcall in progress";
    upcall_delays_ia_close, 60, "In the kernel, closing an adapter waits for the upcall in progress";
    upcall_disabled_within_itself, 60, "In the kernel, upcalls disabled and enabled within one are still made one at a time";
    upcall_none_after_close, 120, "In the kernel, no upcall follows the close of an adapter that had pending upcalls";
    close_ends_wait_of_upcall, 60, "In the kernel, an upcall that waits on another EVD does not delay the close";
    messages, 120, "In the kernel, two threads exchange messages";
    lists, 120, "In the kernel, receives and sends are posted in lists, up to the one that is refused";
    memory_types, 120, "In the kernel, memory of kmalloc and vmalloc is sent, and no other memory";
    wait_threshold_and_timeout, 120, "In the kernel, waits obey threshold and time-out";
    event_order, 300, "In the kernel, ESTABLISHED precedes every DTO event, and DISCONNECTED follows the last";
    handles, 60, "In the kernel, handles that are stale, foreign, invented or of another kind are refused";
    names_of_codes, 10, "In the kernel, dat_strerror returns DAT's names of a code's type and subtype";
    cno_agent, 120, "In the kernel, the agent of a CNO is a function that is called for each trigger";
    new_agent, 60, "In the kernel, a new agent of a CNO is called for each EVD that has triggered";
    service_points, 120, "In the kernel, requests arrive at public and reserved service points with their private data";
    private_data_copied, 60, "In the kernel, the private data of an endpoint and of a request are copied, as many as there is room for";
    private_data_of_freed_ep, 60, "In the kernel, the event of an endpoint that has been freed has no private data";
    private_data_race, 120, "In the kernel, private data are copied whole, or refused, while another thread frees the endpoint or answers the request";
    addresses_copied, 60, "In the kernel, the addresses of an endpoint and of a request are copied";
    addresses_race, 120, "In the kernel, addresses are copied whole, or refused, while another thread frees the endpoint or answers the request";
    common_connect, 120, "In the kernel, a connect by address reaches a CSP";
    endpoints, 120, "In the kernel, endpoints are modified, queried and reset";
    connect_refusals, 60, "In the kernel, each connect that must be refused gets the code of the table";
    connect_states, 120, "In the kernel, each connect in a wrong state gets the code of the table";
    async_overflow, 60, "In the kernel, the overflow of an EVD is reported once, and names the EVD";
    null_evds, 120, "In the kernel, an endpoint without EVDs works, and reports its failure asynchronously";
    fault_table_is_complete, 10, "The table of calls that are tried with failing allocations has a row for every exported call";
    faults, 300, "In the kernel, calls survive each failed allocation";
    #[Long]
    close_beside_each_call, 600, "In the kernel, each call ends and is refused afterwards while another thread closes the adapter";
    extensions, 120, "In the kernel, immediate data arrive at a receive, and invalid atomic operations are refused";
    provider_attributes, 60, "In the kernel, each attribute of kDAPL is as promised, and calls comply with it";
    keepalive, 60, "In the kernel, the time-outs of an endpoint are granted within their limits, and modified";
    adapter_attributes, 60, "In the kernel, each limit of an endpoint is granted and no more, and the other attributes of the adapter are as promised";
    limits_of_queues, 120, "In the kernel, an Endpoint and an SRQ take as many posts as the adapter tells, and no more";
    limits_of_segments, 60, "In the kernel, a DTO has as many segments as the adapter tells, and no more";
    limits_of_lengths, 60, "In the kernel, a DTO of max_message_size bytes is posted, and none of another byte";
    limits_of_remote_memory, 60, "In the kernel, an RMR is bound to max_rmr_size bytes and no more, and so many pages are registered";
    limits_of_events, 60, "In the kernel, an EVD takes max_evd_qlen events and no more, and an asynchronous EVD is no longer";
    lmr_sync, 60, "In the kernel, a sync accepts parts of LMRs of the adapter only";
    region_too_long, 60, "In the kernel, a region longer than the machine's memory is a LENGTH_ERROR";
    region_addresses, 60, "In the kernel, static data is registered; unmapped memory is refused, and read-only memory for writing";
    argument_numbers_of_ia_calls, 60, "In the kernel, the calls on adapters and memory number the arguments that they refuse";
    argument_numbers_of_registrations, 60, "In the kernel, registrations number the arguments that they refuse";
    argument_numbers_of_evd_and_cno_calls, 60, "In the kernel, the calls on EVDs and CNOs number the arguments that they refuse";
    argument_numbers_of_ep_calls, 60, "In the kernel, the calls on Endpoints number the arguments that they refuse";
    argument_numbers_of_posts, 60, "In the kernel, the posts number the arguments that they refuse";
    argument_numbers_of_service_point_calls, 60, "In the kernel, the calls on service points and requests number the arguments that they refuse";
    lmr_free_unused, 60, "In the kernel, an LMR is freed without a search for DTOs, and all else is checked";
    lmr_free_during_receive, 60, "In the kernel, an LMR is in use while a receive may write to it";
    lmr_free_after_slot_reuse, 60, "In the kernel, an LMR is not in use by requests of other memory";
    lmr_free_during_request, 60, "In the kernel, an LMR is in use while a request may read it, and suppressed requests end by themselves";
    lmr_free_during_srq_receive, 60, "In the kernel, an LMR is in use while an SRQ has a receive for it";
    lmr_free_beside_ep_free, 120, "In the kernel, an LMR is freed no earlier than the endpoint whose receives name it";
    lmr_free_beside_list_post, 120, "In the kernel, an LMR that is freed beside the post of a list is freed if and only if no DTO of the list was posted";
    lmr_free_beside_connect, 120, "In the kernel, an LMR is in use while a receive that was posted before the connection names it, and a refused free changes nothing";
    rdma_read_hides_rkey, 60, "In the kernel, no RDMA read reveals the rkey of all memory to a peer; over iWARP it is refused";
    remote_private_data, 60, "In the kernel, a peer uses memory whose context it got with the connection request, and no other byte";
    remote_message, 60, "In the kernel, a peer uses memory whose context it got in a message";
    remote_bounds, 60, "In the kernel, a peer cannot access a byte outside either end of an LMR";
    remote_privileges, 60, "In the kernel, a peer cannot write to an LMR for reads, nor read one for writes";
    remote_atomics, 60, "In the kernel, a peer performs atomic operations on an LMR with this privilege only";
    remote_free, 60, "In the kernel, the context of a freed LMR is refused, and no other LMR gets it";
    remote_other_zone, 60, "In the kernel, an endpoint of another PZ refuses the context of an LMR";
    remote_rmr, 60, "In the kernel, an RMR is bound over an LMR that peers use";
    remote_invalidate, 60, "In the kernel, a peer ends the context of an LMR, which stays usable locally";
    remote_threads, 120, "In the kernel, several threads create LMRs of one PZ for peers";
    region_physical, 120, "In the kernel, an LMR of loose physical pages has their data, for both sides";
    region_physical_var_pages, 120, "In the kernel, an LMR of large physical pages has their data, for both sides";
    region_scatterlist, 120, "In the kernel, an LMR of a scatterlist has its data, for both sides";
    region_bvecs, 120, "In the kernel, an LMR of an array of bio_vec has its data, for both sides";
    region_gaps, 60, "In the kernel, an LMR with gaps has local privileges only";
    region_of_lmr, 60, "In the kernel, an LMR of an LMR has its data, also after that was freed";
    region_one_segment, 60, "In the kernel, a segment of more pages than a request has segments is sent and received";
    region_limit, 60, "In the kernel, an LMR for peers is as long as the device can register, and no longer";
    region_zero_based, 60, "In the kernel, a zero-based LMR for peers begins at a page boundary";
    region_refusals, 60, "In the kernel, each memory that cannot be registered is refused with its code";
    region_read_only, 60, "In the kernel, text, read-only data and the zero page are registered for reads only, by each description of memory";
    #[Long, Transport]
    protection_lmrs, 300, "In the kernel, a peer and a post reach an LMR of each description of memory as privileges and PZ say, and no other connection suffers";
    #[Long, Transport]
    protection_rmrs, 300, "In the kernel, a peer and a post reach an RMR over each description of memory as its bind and PZ say, and no other connection suffers";
    #[Long, Transport]
    protection_fmrs, 300, "In the kernel, a peer and a post reach memory that a request has registered as the registration and PZ say, and no other connection suffers";
    region_hint, 60, "In the kernel, the hint of the adapter says how long a region for peers can be";
    rmr_of_kernel_memory, 60, "In the kernel, an RMR opens memory of vmalloc and of pages to the peer, until it is unbound";
    rmr_bounds, 60, "In the kernel, a peer cannot write a byte outside either end of an RMR";
    rmr_read_destination, 60, "In the kernel, an RDMA read into an RMR stores the peer's bytes, over iWARP too";
    rmr_remote_invalidate, 60, "In the kernel, a peer's send invalidates an RMR, and the event of the receive has its context";
    rmr_refusals, 60, "In the kernel, invalid calls on RMRs are refused, and end no bind";
    fmr_of_pages, 60, "In the kernel, the peer writes and reads memory that a request has registered, until its invalidation";
    fmr_of_vmalloc, 60, "In the kernel, a request registers memory of vmalloc";
    fmr_of_physical_pages, 60, "In the kernel, a request registers pages by their physical addresses, in any order";
    fmr_of_scatterlist, 60, "In the kernel, a request registers a scatterlist, to the byte";
    fmr_of_bvecs, 60, "In the kernel, a request registers an array of bio_vecs, to the byte";
    fmr_lists, 60, "In the kernel, a list with gaps, empty or foreign entries, or too many pages is not registered";
    fmr_old_context, 60, "In the kernel, the contexts of an earlier registration are invalid while the LMR is registered again";
    fmr_pipelined, 60, "In the kernel, a registration, a send and an invalidation are posted at once, without events";
    fmr_remote_invalidate, 60, "In the kernel, a peer's send invalidates an LMR, which is registered again";
    fmr_with_next, 60, "In the kernel, a registration is reported with the next request of its Endpoint";
    fmr_with_no_next, 60, "In the kernel, a registration that no request follows ends in time";
    fmr_with_next_ends, 60, "In the kernel, a registration that no request follows ends with its connection";
    fmr_list_invalidate, 60, "In the kernel, a list of the peer writes to an LMR and then invalidates it";
    fmr_flushed, 60, "In the kernel, an LMR whose invalidation was flushed is registered on the next connection";
    fmr_flushed_outstanding, 120, "In the kernel, an LMR whose requests were outstanding at the end of a connection is used again";
    fmr_thousand_rounds, 120, "In the kernel, an LMR is registered a thousand times in one region of the device, each time with another context";
    fmr_takes_completions, 60, "In the kernel, a registration takes suppressed completions when it finds no slot";
    fmr_endpoint_freed, 60, "In the kernel, an LMR whose registration was outstanding on a freed Endpoint is used again";
    fmr_race, 120, "In the kernel, threads that register and invalidate one LMR do so in turns";
    fmr_states, 60, "In the kernel, registrations and invalidations are refused in the wrong state of the LMR or the Endpoint";
    fmr_zones, 60, "In the kernel, an Endpoint of another PZ does not end a registration";
    fmr_refusals, 60, "In the kernel, invalid arguments of registrations are refused";
    fmr_privileges, 60, "In the kernel, a registration grants no privilege that was not requested";
    fmr_read_destination, 60, "In the kernel, an RDMA read stores the peer's bytes in registered memory, over iWARP too";
    reserved_lmr, 60, "In the kernel, the reserved LMR names DMA addresses for sends, and is neither freed nor shown to a peer";
    srq_traffic, 60, "In the kernel, two endpoints share the receives of an SRQ, and its counters tell them";
    srq_limits, 60, "In the kernel, a full SRQ takes no receive, and an SRQ with endpoints is not freed";
    srq_low_watermark, 60, "In the kernel, the low watermark of an SRQ is reported once each time that it is set";
    srq_high_watermarks, 60, "In the kernel, the high watermarks of an endpoint are reported and break its connection";
    srq_refusals, 60, "In the kernel, invalid calls on SRQs are refused";
    fmr_free_beside_invalidate, 120, "In the kernel, no invalidation is outstanding after an LMR was freed beside it";
    atomic_posts, 60, "In the kernel, DTOs are posted under a spinlock, with interrupts off and in interrupts";
    atomic_registrations, 60, "In the kernel, memory is registered and invalidated in contexts that cannot sleep";
    atomic_sleeping_driver, 60, "In the kernel, a context that cannot sleep registers no memory with a driver that sleeps then";
    atomic_refusals, 60, "In the kernel, posts that are refused in a context that cannot sleep do not sleep";
    atomic_ends, 300, "In the kernel, objects are freed and adapters closed while an interrupt posts to them";
    echo_server, 300, "A process and an echo server in the kernel exchange messages on several connections";
    block_samples, 120, "Clients and servers of the disks in docs/samples, in C and in Rust, store and return blocks";
    rust_consumer_unload, 120, "A consumer in Rust that unloads during traffic breaks its connections and leaves nothing behind";
    rust_close, 120, "In Rust, a close during traffic ends all upcalls and drops all handlers, before other objects or after";
    rust_free_in_upcall, 120, "In Rust, an upcall frees its own endpoint, whose DTOs are outstanding";
    rust_free_dispatcher, 120, "In Rust, a dispatcher that is freed during upcalls waits for them and drops its handler";
    rust_segments, 120, "In Rust, DTOs of several buffers return them, and refused ones at once";
    rust_bound_memory, 120, "In Rust, a peer writes to the bound part of memory, and to none after the unbind";
    rust_shared_receives, 120, "In Rust, endpoints take the receives of a queue, whose events return the buffers";
    rust_registered_memory, 120, "In Rust, a peer writes to memory that a request has registered, which an event returns";
    rust_dropped_registration, 120, "In Rust, a registration that is dropped ends, and its memory is dropped after it";
    rust_late_invalidation, 120, "In Rust, two invalidations of a registration do not return the memory of the next one";
    rust_close_beside_free, 120, "In Rust, a close waits for the upcall of a dispatcher that another thread frees";
    consumer_unload, 120, "A consumer module that unloads during traffic breaks its connections and leaves nothing behind";
}

/// Returns all tests but those of [`REMOVAL`].
pub fn all() -> Vec<Test> {
    [TESTS, consumers::TESTS, gate::TESTS, handoff::TESTS, mixed::TESTS].concat()
}

// Runs last, since it removes the device.
tests! {
    REMOVAL:
    device_removal, 120, "In the kernel, upcalls report a removed device, and all handles stay valid";
    gate_removal, 120, "In the kernel, the removal of the device opens a closed gate";
    remote_removal, 120, "In the kernel, the device is removed while threads create LMRs for peers";
}

const RUN: &str = "/sys/kernel/debug/kdapl_ktest/run";

/// Loads a module that was built with `kdapl.ko`, and unloads it when dropped.
pub struct Loaded(&'static str);

impl Loaded {
    pub fn new(name: &'static str, parameters: &str) -> Result<Self> {
        let file = machine::module_file()?.with_file_name(format!("{name}.ko"));
        if !file.exists() {
            return skip(format!("{} does not exist", file.display()));
        }
        machine::command(&format!("insmod {} {parameters}", file.display()))?;
        Ok(Self(name))
    }

    pub fn parameter(&self, name: &str) -> Result<u64> {
        let text = fs::read_to_string(format!("/sys/module/{}/parameters/{name}", self.0))?;
        Ok(text.trim().parse()?)
    }

    pub fn set(&self, name: &str, value: u64) -> Result<()> {
        let path = format!("/sys/module/{}/parameters/{name}", self.0);
        Ok(fs::write(path, value.to_string())?)
    }

    pub fn unload(self) -> Result<()> {
        let name = self.0;
        std::mem::forget(self);
        machine::command(&format!("rmmod {name}"))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = machine::command(&format!("rmmod {}", self.0)) {
            eprintln!("{error:#}");
        }
    }
}

/// Returns the device for kernel consumers: the first one of the first network namespace.
pub fn device(context: &Context) -> Result<String> {
    if context.hosts().len() > 1 {
        return skip("consumers in the kernel are in the first network namespace only");
    }
    Ok(context.client.device.clone())
}

fn load_tests(context: &Context, more: &str) -> Result<Loaded> {
    let device = device(context)?;
    let patience = context.patience().as_secs().max(10);
    let iwarp = u8::from(context.client.is_iwarp());
    let parameters = format!("device={device} patience={patience} iwarp={iwarp} {more}");
    let loaded = Loaded::new("kdapl_ktest", &parameters)?;
    if !Path::new(RUN).exists() {
        return skip("debugfs is not mounted");
    }
    Ok(loaded)
}

/// Runs a test of the kernel module, and returns its failure.
pub fn run(name: &str) -> Result<()> {
    if let Err(error) = fs::write(RUN, name) {
        unheard!("{error}: {}", fs::read_to_string(RUN)?.trim());
    }
    Ok(())
}

/// Runs one of the kernel's tests, as a case of KUnit where the kernel has it.
pub fn run_alone(context: &Context, name: &str) -> Result<()> {
    if !kunit::is_enabled() {
        let loaded = load_tests(context, "")?;
        run(name)?;
        return loaded.unload();
    }
    let _filter = kunit::Filter::new(&format!("kdapl_ktest.{name}"))?;
    let loaded = load_tests(context, "")?;
    for suite in kunit::Suite::all("kdapl_ktest")? {
        if let Err(error) = suite.run() {
            unheard!("{error:#}");
        }
    }
    loaded.unload()
}

macro_rules! kernel_tests {
    ($($name:ident)*) => {
        $(fn $name(context: &Context) -> Result<()> {
            run_alone(context, stringify!($name))
        })*
    };
}

kernel_tests! {
    upcall_single_instance upcall_many upcall_notify upcall_disable upcall_bad_arguments
    upcall_refused_during_wait upcall_budget upcall_enable_and_disable upcall_teardown_waits
    upcall_delays_evd_free upcall_delays_ia_close upcall_disabled_within_itself
    upcall_none_after_close close_ends_wait_of_upcall messages lists memory_types
    wait_threshold_and_timeout event_order handles names_of_codes cno_agent new_agent service_points common_connect
    private_data_copied private_data_of_freed_ep private_data_race addresses_copied addresses_race
    endpoints null_evds connect_refusals connect_states async_overflow
    extensions region_too_long region_addresses rdma_read_hides_rkey argument_numbers_of_ia_calls
    argument_numbers_of_evd_and_cno_calls argument_numbers_of_ep_calls argument_numbers_of_posts
    argument_numbers_of_registrations argument_numbers_of_service_point_calls lmr_free_during_receive lmr_free_after_slot_reuse
    lmr_free_during_request lmr_free_during_srq_receive lmr_free_beside_ep_free lmr_free_beside_list_post lmr_free_beside_connect
    remote_private_data remote_message remote_bounds
    remote_privileges remote_atomics remote_free remote_other_zone remote_rmr remote_invalidate
    remote_threads region_physical region_physical_var_pages region_scatterlist region_bvecs
    region_gaps region_of_lmr region_one_segment region_limit region_zero_based region_refusals
    region_hint rmr_of_kernel_memory rmr_bounds rmr_read_destination
    fmr_of_pages fmr_of_vmalloc fmr_of_physical_pages fmr_of_scatterlist fmr_of_bvecs fmr_lists
    fmr_old_context fmr_pipelined fmr_with_next fmr_with_no_next fmr_with_next_ends fmr_remote_invalidate fmr_list_invalidate fmr_flushed fmr_flushed_outstanding
    fmr_thousand_rounds fmr_takes_completions fmr_endpoint_freed fmr_race fmr_states fmr_zones
    fmr_refusals fmr_privileges fmr_read_destination reserved_lmr lmr_free_unused
    rmr_remote_invalidate
    rmr_refusals close_beside_each_call srq_traffic srq_limits srq_low_watermark srq_high_watermarks srq_refusals
    region_read_only protection_lmrs protection_rmrs protection_fmrs
    limits_of_queues limits_of_segments limits_of_lengths limits_of_remote_memory limits_of_events
    provider_attributes adapter_attributes keepalive lmr_sync fmr_free_beside_invalidate atomic_posts atomic_registrations atomic_ends
}

fn atomic_sleeping_driver(context: &Context) -> Result<()> {
    /// `RDMA_DRIVER_HNS`.
    const HNS: i32 = 12;
    let disguise = disguised(context, HNS)?;
    run_alone(context, "atomic_sleeping_driver")?;
    disguise.unload()
}

fn atomic_refusals(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP a message without a receive ends the connection");
    }
    run_alone(context, "atomic_refusals")
}

/// Source of the module's list of exports.
const EXPORTS: &str = include_str!("../../../../../rust/kapi/exports.c");

fn fault_table_is_complete(context: &Context) -> Result<()> {
    let loaded = load_tests(context, "")?;
    let tried = fs::read_to_string("/sys/kernel/debug/kdapl_ktest/calls")?;
    let tried: HashSet<_> = tried.lines().collect();
    let names =
        |line: &'static str| Some(line.strip_prefix("EXPORT_SYMBOL_NS_GPL(")?.split_once(',')?.0);
    let exported: HashSet<_> = EXPORTS.lines().filter_map(names).collect();
    ensure!(!exported.is_empty(), "no exports were found");
    same("calls", tried, exported)?;
    loaded.unload()
}

fn faults(context: &Context) -> Result<()> {
    inject::set_up_for(context)?;
    let loaded = load_tests(context, "")?;
    let outcome = run("faults");
    if outcome.is_err() {
        // Runs it again, so that the console shows the call chain of the failure.
        inject::be_verbose()?;
        let _ = run("faults");
    }
    outcome?;
    loaded.unload()
}

fn device_removal(context: &Context) -> Result<()> {
    remove_during(context, "device_removal")
}

fn gate_removal(context: &Context) -> Result<()> {
    remove_during(context, "gate_removal")
}

fn remote_removal(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP no LMR is for peers");
    }
    remove_during(context, "remote_removal")
}

/// Runs a test of the kernel module that waits at stage 1 for `action`.
pub fn run_with(
    context: &Context,
    name: &'static str,
    parameters: &str,
    action: impl FnOnce(&Loaded) -> Result<()>,
) -> Result<()> {
    let loaded = load_tests(context, parameters)?;
    let running = Worker::start(move || run(name))?;
    context.until("the kernel test is ready", || {
        Ok(running.finished() || loaded.parameter("stage")? == 1)
    })?;
    action(&loaded)?;
    running.join()??;
    loaded.unload()
}

/// Removes the device when a test of the kernel module is ready for it, and adds it again.
pub fn remove_during(context: &Context, name: &'static str) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    run_with(context, name, "", |_| guard.delete())?;
    guard.add()?;
    run_alone(context, "messages")
}
