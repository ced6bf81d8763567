// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts data transfer operations, and handles their completions.

mod bind;
mod complete;
mod list;
mod marker;
mod post;
mod preposted;
mod request;
mod shared;
mod streams;
mod suppressed;
mod watermarks;

pub(crate) use self::post::{
    Operands,
    Post, //
};

pub(in crate::dat) use self::bind::Bind;

pub(super) use self::{
    bind::Binds,
    preposted::Preposted,
    shared::{
        receive_slots,
        Kept,
        FULL_MS, //
    },
    streams::{
        Plan,
        Shares,
        Streams, //
    },
    watermarks::RecvWatch,
};
