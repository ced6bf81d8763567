// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Passive side of connection establishment: service points, and the connection requests (CRs) that
//! arrive there.
//!
//! ```text
//!   rdma_cm --> listener -----------------------> point --> CR, event on the CR EVD
//!          \--> shared listener --> directory --/
//! ```
//!
//! A [`Psp`] (Public Service Point), [`Rsp`] (Reserved) or [`Csp`] (Common) is the consumer's
//! interface to a [`Point`]. A point listens on its own port, or the listener on the shared port
//! finds it in the directory. An [`Arrival`] takes a request from there to the consumer as a
//! [`Cr`], and reports it on the point's Event Dispatcher (EVD).

mod arrival;
mod context;
mod cr;
mod csp;
mod directory;
mod handoff;
mod listener;
mod point;
mod psp;
mod rsp;
mod service_point;

pub(crate) use self::{
    cr::Cr,
    csp::{
        Communicator,
        Csp, //
    },
    psp::{
        EpSupplier,
        Psp,
        PspProperties, //
    },
    rsp::Rsp,
};

pub(super) use self::{
    context::PassiveContext,
    point::Point,
    service_point::ServicePoint, //
};

use self::{
    arrival::{
        Arrival,
        DeliveryError, //
    },
    cr::RequestData,
    listener::Listener, //
};
