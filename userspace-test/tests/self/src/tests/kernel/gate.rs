// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The ready gate of consumers in the kernel, and between one and a process.

use super::super::tests;
use super::run_alone;
use crate::context::Context;
use anyhow::Result;

tests! {
    #[Transport]
    of_acceptor, 60, "In the kernel, an endpoint that accepts with a closed ready gate gets no event until it is ready, and then all in order";
    #[Transport]
    of_connector, 60, "In the kernel, an endpoint that connects with a closed ready gate gets no event until it is ready, and then all in order";
    #[Transport]
    of_both, 60, "In the kernel, both sides of a connection close their gates, and open them one after the other";
    #[Transport]
    opened_early, 60, "In the kernel, a gate that is opened before the connection is established holds nothing back";
    #[Transport]
    peer_disconnects, 60, "In the kernel, a peer that disconnects before the gate is opened is reported after its messages";
    #[Transport]
    disconnected_instead, 60, "In the kernel, an endpoint that disconnects with a closed gate gets its receives and DISCONNECTED, without ESTABLISHED";
    #[Transport]
    freed_instead, 60, "In the kernel, an endpoint that is freed with a closed gate reports nothing";
    #[Transport]
    of_failure, 60, "In the kernel, a connect that fails is reported although the gate is closed";
    #[Transport]
    of_upcalls, 60, "In the kernel, a closed gate makes no upcall, and an opened one those that it held back";
    #[Transport]
    of_dup_connect, 60, "In the kernel, a connect to the peer of another endpoint closes the gate";
    #[Transport]
    of_common_connect, 60, "In the kernel, a connect by address closes the gate";
    refusals, 60, "In the kernel, an endpoint that is not connected is not ready, and one without a gate stays as it is";
}

/// Each test has a function in `userspace-test/tests/kernel`.
macro_rules! kernel_tests {
    ($($name:ident)*) => {
        $(fn $name(context: &Context) -> Result<()> {
            run_alone(context, concat!("gate_", stringify!($name)))
        })*
    };
}

kernel_tests! {
    of_acceptor of_connector of_both opened_early peer_disconnects disconnected_instead
    freed_instead of_failure of_upcalls of_dup_connect of_common_connect refusals
}
