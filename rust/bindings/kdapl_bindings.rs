// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Raw bindings to what the `kernel` crate does not bind: `ib_core`, `rdma_cm`, our C helpers and
//! the messages of `/dev/kdapl`.
//!
//! Types that the kernel's own `bindings` crate defines in full are re-exported from there, so that
//! a `struct device` inside a `struct ib_device` is the same type on both sides. The layout tests
//! that bindgen makes are compiled in: a structure that differs from the C one does not build.
//!
//! Only `sys/`, `rdma/`, `kapi/` and `chardev/fops.rs` use this crate, but for the uAPI structs,
//! which are plain data.

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
