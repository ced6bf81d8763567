// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tables of file operations.

use kdapl_bindings as bindings;

/// A `file_operations` that may be stored in a static.
pub(crate) struct FopsTable(pub(crate) bindings::file_operations);

// SAFETY: The table is never written. It points only to code and to the module.
unsafe impl Sync for FopsTable {}
