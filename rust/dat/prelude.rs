// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Common imports of `dat` and of the consumer interfaces.

pub(crate) use crate::model::code::{
    Arg,
    DatError,
    DatResult,
    Kind,
    Subtype, //
};
pub(crate) use kernel::{
    prelude::*,
    sync::Arc, //
};
