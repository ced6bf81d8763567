// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts data transfer operations, and handles their completions.

mod complete;
mod post;
mod preposted;
mod streams;

pub(crate) use self::post::{
    Operands,
    Post, //
};

pub(super) use self::{
    preposted::Preposted,
    streams::{
        Plan,
        Shares,
        Streams, //
    },
};
