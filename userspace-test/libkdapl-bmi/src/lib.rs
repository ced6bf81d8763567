// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! BMI, the messaging layer of PVFS and OrangeFS, over `/dev/kdapl`.
//!
//! A program posts sends and receives by address and tag, and takes their results from a
//! [`Context`]. Messages to one peer arrive in the order of their posts. A short message is sent
//! with its header; a long one is moved by RDMA, which copies nothing. Connections are made by the
//! first post to an address, and again after they have ended. `docs/bmi.md` describes the protocol.
//!
//! ```no_run
//! use libkdapl_bmi::{Bmi, Options};
//! # fn main() -> libkdapl_bmi::Result<()> {
//! let bmi = Bmi::open(&Options::default())?;
//! let context = bmi.open_context()?;
//! let peer = bmi.lookup("kdapl://storage1:7180")?;
//! let memory = bmi.alloc(1 << 20)?;
//! memory.buffer().write(0, b"hello");
//! context.send(&peer, 1, &[memory.part(0, 5)], 0)?;
//! for completion in context.wait(16, None)? {
//!     completion.result?;
//! }
//! # Ok(()) }
//! ```
//!
//! Messages proceed while a thread waits in a call of the library, and a thread of the library
//! takes over when none has waited for some milliseconds.
#![deny(unsafe_code)]

// For an inline module, the path names a folder. The files have the format of the kernel.
#[rustfmt::skip]
#[path = "../../../bmi"]
#[allow(dead_code, unused_imports, clippy::all)]
mod bmi {
    pub(crate) mod engine;
}

/// Bytes of the longest message.
pub const LONGEST: usize = bmi::engine::LONGEST as usize;

mod address;
mod context;
mod ending;
mod error;
mod events;
mod home;
mod instance;
mod memory;
mod options;
mod source;
mod state;
mod wait;

pub use context::{Completion, Context, Op};
pub use error::{Error, Failure, Result};
pub use instance::{Bmi, Peer, Unexpected};
pub use libkdapl::{Error as DatError, Type};
pub use memory::{Memory, Part};
pub use options::Options;
