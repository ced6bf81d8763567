// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts data transfer operations, and handles their completions.

mod complete;
mod post;
mod preposted;
mod shared;
mod streams;

pub(crate) use self::post::{
    Operands,
    Post, //
};

pub(super) use self::{
    preposted::Preposted,
    shared::{
        receive_slots,
        Kept, //
    },
    streams::{
        Plan,
        Shares,
        Streams, //
    },
};
