// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts data transfer operations, and handles their completions.

mod complete;
mod examine;
mod list;
mod local;
mod mapped;
mod marker;
mod named;
mod post;
mod preposted;
mod ready;
mod registrations;
mod request;
mod shared;
mod streams;
mod suppressed;
mod watermarks;

pub(crate) use self::post::{
    NotPosted,
    Operands,
    Post, //
};

pub(in crate::dat) use self::local::{
    LocalAction,
    LocalRequest, //
};

pub(super) use self::{
    mapped::LazyRing,
    named::Named,
    preposted::Preposted,
    registrations::Registrations,
    shared::{
        receive_slots,
        Kept,
        SrqReceives, //
    },
    streams::{
        Plan,
        Shares,
        Streams, //
    },
    watermarks::RecvWatch,
};

/// Number of slots that a search examines in one critical section.
const SEARCH_STEP: u32 = 64;
