// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Safe wrappers of the NVMe core for a host transport, and the only place with `unsafe`.
//!
//! ```text
//!   Registration   "transport=kdapl" in /dev/nvme-fabrics
//!     Controller   nvme0: tag sets, state, work, and the transport's own data
//!       Request    a command that the block layer has passed, and the right to complete it
//!         Data     its memory, lent to a registration
//! ```
//!
//! C headers: [`drivers/nvme/host/nvme.h`](srctree/drivers/nvme/host/nvme.h),
//! [`drivers/nvme/host/fabrics.h`](srctree/drivers/nvme/host/fabrics.h)

mod address;
mod controller;
mod create;
mod life;
mod noio;
mod ops;
mod request;
mod tags;
mod transport;
mod work;

pub(crate) use self::{
    address::Addresses,
    controller::{
        Controller,
        Limits,
        Outcome,
        State, //
    },
    request::{
        Answer,
        Data,
        Request, //
    },
    transport::{
        Refused,
        Registration,
        Transport, //
    },
};
