// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Configuration of an Endpoint: its attributes, its Protection Zone (PZ) and Event Dispatchers
//! (EVDs), and the calls that change and return them.

mod attr;
mod change;
mod modify;
mod parts;
mod query;
mod reset;

pub(crate) use self::{
    attr::{
        with_attributes,
        EpAttr,
        Qos, //
    },
    change::{
        EpChange,
        PARTS, //
    },
    parts::Handles,
};

pub(in crate::dat) use self::parts::Parts;

pub(super) use self::parts::{
    distinct,
    QpParts, //
};
