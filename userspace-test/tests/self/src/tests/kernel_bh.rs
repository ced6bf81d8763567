// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Upcalls of consumers in the kernel that are made in soft interrupts.

use super::kernel::{remove_during, run_alone};
use super::tests;
use crate::context::Context;
use anyhow::Result;

tests! {
    bh_single_instance, 120, "In the kernel, SINGLE_INSTANCE in a soft interrupt hands out each event once, one at a time, in order";
    bh_notify, 120, "In the kernel, an upcall in a soft interrupt dequeues the events that it is called for";
    bh_changes, 60, "In the kernel, an EVD with upcalls in soft interrupts keeps its events when policy and length change";
    bh_budget, 60, "In the kernel, EVDs with upcalls in soft interrupts have turns of their budget";
    bh_ends, 120, "In the kernel, TEARDOWN, free and close end upcalls in soft interrupts that follow each other without end";
    bh_refused_calls, 60, "In the kernel, an upcall in a soft interrupt is refused the calls that would wait for it";
    bh_bad_arguments, 60, "In the kernel, invalid upcalls in soft interrupts are refused";
    #[Transport]
    bh_ping_pong, 120, "In the kernel, upcalls in soft interrupts exchange messages, between ESTABLISHED and DISCONNECTED";
    #[Transport]
    bh_ends_in_traffic, 120, "In the kernel, upcalls in soft interrupts that exchange messages end with their EVD and with the adapter";
}

// Runs last, since it removes the device.
tests! {
    REMOVAL:
    #[Transport]
    bh_device_removal, 120, "In the kernel, upcalls in soft interrupts that exchange messages end with the device";
}

macro_rules! kernel_tests {
    ($($name:ident)*) => {
        $(fn $name(context: &Context) -> Result<()> {
            run_alone(context, stringify!($name))
        })*
    };
}

kernel_tests! {
    bh_single_instance bh_notify bh_changes bh_budget bh_ends bh_refused_calls bh_bad_arguments
    bh_ping_pong bh_ends_in_traffic
}

fn bh_device_removal(context: &Context) -> Result<()> {
    remove_during(context, "bh_device_removal")
}
