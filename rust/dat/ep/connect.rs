// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connects an Endpoint, on the active and on the passive side.

mod accept;
mod active;
mod arguments;
mod cm_events;
mod connection;
mod held_receives;
mod peer_disconnect;
mod repeat;
mod reserve;

pub(crate) use self::{
    active::Connect,
    arguments::ConnectArguments, //
};

pub(in crate::dat) use self::accept::AcceptingEp;

pub(super) use self::{
    connection::{
        Addresses,
        Attempt,
        Connection, //
    },
    held_receives::HeldBack, //
};
