// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `kdapl_bmi.ko`: BMI, the messaging layer of PVFS and OrangeFS, for consumers in the kernel. Uses
//! kDAPL as any consumer does, by the crate `kdat`.
//!
//! | file | contents |
//! |---|---|
//! | `calls.rs`, `foreign.rs` | the calls of `include/rdma/kdapl_bmi.h`, and the memory that they get |
//! | `instance.rs`, `source.rs` | instances, waiting, and the events of each device |
//! | `state.rs`, `events.rs` | the engine and its home, under one lock |
//! | `home/` | executes the engine's requests with DAT objects |
//! | `memory.rs` | memory that is registered on several devices |
//! | `storage.rs`, `options.rs`, `address.rs` | parts that do not depend on the others |
//! | `glue.c`, `glue.rs` | exports, and calls of the kernel |
#![deny(unsafe_code, unsafe_op_in_unsafe_fn)]

#[path = ".."]
#[allow(
    dead_code,
    unused_imports,
    reason = "the other home uses all of the engine"
)]
mod protocol {
    pub(crate) mod engine;
}

mod address;
#[allow(unsafe_code, reason = "calls from C")]
mod calls;
mod events;
#[allow(unsafe_code, reason = "memory of callers")]
mod foreign;
#[allow(unsafe_code, reason = "calls to C")]
mod glue;
mod home;
mod instance;
mod memory;
mod options;
mod source;
mod state;
mod storage;

use kernel::prelude::*;
use protocol::engine;

module! {
    type: Bmi,
    name: "kdapl_bmi",
    description: "BMI, the messaging layer of OrangeFS, over kDAPL",
    license: "Dual BSD/GPL",
    imports_ns: ["KDAPL"],
}

/// The module, which does nothing before `bmi_open_with()`.
struct Bmi;

impl kernel::Module for Bmi {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
