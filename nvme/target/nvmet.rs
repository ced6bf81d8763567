// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Safe wrapper of the kernel's NVMe target.
//!
//! C header: [`drivers/nvme/target/nvmet.h`](srctree/drivers/nvme/target/nvmet.h)
#![allow(unsafe_code, reason = "this is the place for it")]

mod answers;
mod cancel;
mod command;
mod ops;
mod port;
mod queues;
mod sgl;
mod submission;

pub(crate) use self::{
    answers::Answers,
    cancel::cancel_delayed,
    command::{
        Answered,
        Idle,
        Started, //
    },
    ops::{
        workqueue,
        Registration,
        MAX_TRANSFER, //
    },
    port::{
        PortRef,
        Settings, //
    },
    queues::Queues,
    submission::SubmissionQueue,
};
