// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What nearly every file of `dat` and of the fronts uses.

pub(crate) use crate::model::code::{
    DatError,
    DatResult,
    Kind,
    Subtype, //
};
pub(crate) use kernel::{
    prelude::*,
    sync::Arc, //
};
