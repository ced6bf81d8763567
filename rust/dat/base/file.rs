// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Opens files of DAT objects.

use crate::{
    dat::prelude::*,
    sys::record_file::{
        OpenMode,
        PendingFile,
        RecordFile, //
    },
};
use kernel::str::CStr;

/// Opens a file of records for the calling process. `name` is shown in `/proc`.
///
/// Context: process; sleeps.
///
/// # Errors
///
/// INSUFFICIENT_RESOURCES: (memory) without memory; without a subtype above the process's limit of
/// open files.
pub(in crate::dat) fn open_file<T: RecordFile>(
    name: &'static CStr,
    object: Arc<T>,
    access: OpenMode,
) -> DatResult<PendingFile> {
    PendingFile::new(name, object, access).map_err(|error| match error {
        ENOMEM => DatError::memory(),
        _ => Kind::InsufficientResources.into(),
    })
}
