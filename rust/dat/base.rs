// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Common base of all DAT objects.
//!
//! It contains the Interface Adapter's device and attributes, tables of handles, use counts,
//! private data, and the translation of errors. It uses no other part of `dat`.

mod attr;
mod error;
mod file;
mod ia_base;
mod objects;
mod private_data;
mod slots;
mod use_count;

pub(crate) use self::{
    attr::IaAttr,
    ia_base::IaBase,
    objects::{
        Object,
        Objects,
        Until, //
    },
    private_data::{
        PrivateData,
        WIDE_QUAL_OVERHEAD, //
    },
};

pub(super) use self::{
    file::open_file,
    ia_base::IaPort,
    objects::{
        Freeing,
        Reservation, //
    },
    slots::{
        context_storage,
        contexts,
        contexts_of,
        slots,
        ContextStorage,
        Contexts,
        SlotStorage, //
    },
    use_count::{
        InUse,
        Usable,
        UseCount, //
    },
};

/// Segment of local memory: `DAT_LMR_TRIPLET`, in the layout of the ioctl messages.
pub(crate) use kdapl_bindings::kdapl_triplet as Segment;
