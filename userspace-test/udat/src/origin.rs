// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Properties of an IA that depend on the library that has opened it: `libkdat`, or the provider of
//! `libdat2`.

use crate::abi::DAT_IA_HANDLE;
use crate::options::Options;

/// Source of an IA.
#[derive(Clone)]
pub struct Origin {
    /// Name that the program has opened, as the attributes of the provider return it.
    pub name: String,
    pub thread_safe: bool,
    pub options: Options,
    /// First word of the memory that each handle points to. `libdat2` takes it for the address of
    /// the function table.
    pub first_word: usize,
    /// Returns the program's handle for the address of the IA's cell.
    pub program_handle: fn(DAT_IA_HANDLE) -> DAT_IA_HANDLE,
}
