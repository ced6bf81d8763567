// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Raw bindings that the `kernel` crate lacks: `ib_core`, `rdma_cm`, this module's C helpers, and
//! the messages of `/dev/kdapl`.
//!
//! Types that the kernel's own `bindings` crate defines in full are re-exported from there. So a
//! `struct device` inside a `struct ib_device` is the same type in both crates. The layout tests
//! that bindgen generates are compiled in: a structure that differs from the C definition does not
//! build.
//!
//! Only `sys/`, `rdma/`, `kapi/` and `chardev/fops.rs` use this crate. The exception is the uAPI
//! structures, which are plain data and may be used anywhere.

#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::as_underscore,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    improper_ctypes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unused_qualifications
)]

#[allow(dead_code)]
mod generated {
    use kernel::{
        ffi,
        prelude::{
            FromBytes,
            IntoBytes, //
        }, //
    };
    use pin_init::MaybeZeroable;
    use zerocopy_derive::{
        Immutable,
        KnownLayout, //
    };

    #[allow(unused_imports)]
    pub use kernel::bindings::*;

    type __kernel_size_t = usize;
    type __kernel_ssize_t = isize;
    type __kernel_ptrdiff_t = isize;

    include!(concat!(
        env!("KDAPL_OBJTREE"),
        "/rust/bindings/bindings_generated.rs"
    ));
}

pub use generated::*;
