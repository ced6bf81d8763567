// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! BMI for C programs. `include/bmi/bmi.h` documents the calls.
//!
//! | file | contents |
//! |---|---|
//! | `calls.rs` and its children | the exported functions: conversion of arguments and results |
//! | `library.rs` | the state of an initialized library |
//! | `addresses.rs`, `memory.rs` | tables of it |
//! | `errors.rs` | numbers of errors |

mod addresses;
mod calls;
mod errors;
mod library;
mod memory;

/// Types and numbers of the header.
mod header {
    #![allow(dead_code, non_camel_case_types, non_snake_case, non_upper_case_globals)]
    include!(concat!(env!("OUT_DIR"), "/header.rs"));
}
