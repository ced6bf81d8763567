// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Safe Rust interface of `/dev/kdapl`: the DAT 2.0 objects of the kernel module, with typed events
//! and with errors that suggest a remedy.
//!
//! One open file is one Interface Adapter ([`Ia`]). All other objects are created from it. Each
//! object keeps the objects that it uses alive:
//!
//! ```text
//! Ia                the open file
//!  |-- Pz           protection zone: which endpoints may use which memory
//!  |    |-- Lmr     a registered Buffer, mapped as long as the Lmr exists
//!  |    '-- Ep      endpoint: one connection
//!  |-- Evd          event queue, fed by endpoints and service points
//!  |-- Cno          notification object: wait for the events of several EVDs
//!  |-- Psp          listens for any number of requests
//!  |-- Rsp          listens for one request and reserves an Ep for it
//!  '-- Csp          listens at an address
//!       '-- Cr      request of a peer, delivered on the service point's Evd
//! ```
//!
//! All types are `Send + Sync`. Dropping the last clone of an object frees it; `free()` frees it at
//! once and returns the error. Times are [`Duration`]s or [`Monotonic`] times. Sizes are in bytes,
//! lengths of queues in entries.
//!
//! ```no_run
//! use libkdapl::{Buffer, EvdFlags, Ia, Privileges};
//! # fn main() -> libkdapl::Result<()> {
//! let device = &libkdapl::devices()?[0];
//! let ia = Ia::open(&device.name, 8)?;
//! let pz = ia.create_pz()?;
//! let evd = ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, 64)?;
//! let ep = ia.create_ep(&pz, &evd, &evd, &evd, None)?;
//! let memory = ia.register(&pz, Buffer::new(4096)?, Privileges::ALL)?;
//! ep.connect("10.7.0.1".parse().unwrap(), 7174, None, b"hello")?;
//! let (event, _more) = evd.wait(None, 1)?;
//! println!("{event}");
//! ep.post_send(&[memory.segment(0, 64)], 1, Default::default())?;
//! # Ok(()) }
//! ```
//!
//! [`Duration`]: std::time::Duration
#![deny(unsafe_code)]

mod address;
mod bursts;
mod cno;
mod codes;
mod cr;
mod ep;
mod error;
mod evd;
mod event;
mod file;
mod flags;
mod hint;
mod ia;
mod lmr;
mod name;
mod object;
mod port;
pub mod raw;
mod rmr;
mod service;
mod srq;
mod stat;
mod stream;
pub mod sys;
mod time;
pub mod uring;

pub use cno::{Cno, CnoQuery};
pub use codes::{Subtype, Type};
pub use cr::{Cr, CrQuery};
pub use ep::{
    Close, ConnectOptions, Dto, Ep, EpChange, EpConfig, EpFields, EpQuery, EpState, EpStatus,
    Multipath, Qos, Submitted, Wait,
};
pub use error::{DatError, Error, Result};
pub use evd::{Evd, EvdConfig, EvdQuery};
pub use event::{AsyncEvent, ConnectionEvent, DtoEvent, DtoOperation, DtoStatus, Event, EventKind};
pub use file::{CnoFile, EvdFile};
pub use flags::{CompletionFlags, EvdFlags, Extensions, Privileges};
pub use ia::{devices, DeviceInfo, Ia, IaQuery, Transport};
pub use lmr::{Lmr, LmrQuery, LmrRegistration};
pub use object::{Handle, Pz};
pub use port::{PortAddress, PortInfo};
pub use raw::Buffer;
pub use rmr::{Rmr, RmrBinding, RmrQuery};
pub use service::{Csp, CspQuery, EpCreator, Psp, PspOptions, PspQuery, Rsp, RspQuery};
pub use srq::{Srq, SrqQuery};
pub use stat::{ia_stats, IaStat};
pub use stream::{AsyncFile, Events, Triggers};
#[cfg(feature = "tokio")]
pub use stream::{TokioEvents, TokioTriggers};
pub use time::Monotonic;

/// Segment of a registered region: a local one (from [`Lmr::segment`]), or one of the peer (from
/// [`Lmr::remote_segment`], transferred by the program).
pub type Segment = sys::kdapl_triplet;

/// Attributes of an endpoint; zero selects the default.
pub type EpAttr = sys::kdapl_ep_attr;
