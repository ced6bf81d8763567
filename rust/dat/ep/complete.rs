// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completions of an Endpoint's DTOs.

use super::Ep;
use crate::{
    dat::evd::Evd,
    model::{
        completion::{
            signals,
            Signal, //
        },
        ep::{
            Effects,
            Input,
            Phase, //
        },
        event::{
            DtoStatus,
            Operation, //
        },
        handle::{
            Direction,
            WrId,
            LIVES, //
        },
    },
    rdma::wc::{
        Status,
        Wc, //
    },
};
use kernel::sync::Arc;

/// The DAT status of a completion.
fn status(status: Status) -> DtoStatus {
    match status {
        Status::Success => DtoStatus::Success,
        Status::Flushed => DtoStatus::Flushed,
        Status::LocalLength => DtoStatus::LocalLength,
        Status::LocalProtection | Status::LocalAccess => DtoStatus::LocalProtection,
        Status::LocalQpOperation => DtoStatus::LocalEp,
        Status::BadResponse => DtoStatus::BadResponse,
        Status::RemoteAccess => DtoStatus::RemoteAccess,
        Status::RemoteInvalidRequest | Status::RemoteOperation => DtoStatus::RemoteResponder,
        Status::RnrRetryExceeded => DtoStatus::ReceiverNotReady,
        Status::RetryExceeded | Status::Other(_) => DtoStatus::Transport,
    }
}

impl Ep {
    /// Takes a completion of this Endpoint and queues its event on `evd`. What follows from it is
    /// done by the work item, but for the Endpoint's own last event, which is queued at once.
    ///
    /// Context: process. Called by whoever drains `evd`, with the lock of its consumer.
    pub(in crate::dat) fn complete(self: Arc<Self>, evd: &Evd, wr: WrId, completion: &Wc) {
        let status = status(completion.status());
        let _undemanded = {
            let mut inner = self.inner.lock();
            if wr.life != inner.life % LIVES {
                // Given up by a reset.
                return;
            }
            let slots = match wr.direction {
                Direction::Request => &mut inner.requests,
                Direction::Receive => &mut inner.receives,
            };
            let Some(dto) = slots.complete(wr.slot) else {
                return;
            };
            let length = match (status, dto.operation) {
                (DtoStatus::Success, Operation::Receive) => u64::from(completion.byte_len()),
                (DtoStatus::Success, _) => dto.length,
                _ => 0,
            };
            self.trace_complete(&mut inner, wr.slot, &dto, status, length);
            let mut effects = Effects::NONE;
            // What has been received was sent over a connection, whose confirmation may be late.
            if status == DtoStatus::Success && matches!(inner.phase, Phase::Accepting(_)) {
                effects = self
                    .advance(&mut inner, Input::Established)
                    .unwrap_or(Effects::NONE);
            }
            let signal = signals(dto.flags, inner.attr.mode(wr.direction), status);
            if inner.phase != Phase::Freed && signal != Signal::Dropped {
                let event = dto.event(self.handle(), status, length);
                let event = match wr.direction {
                    Direction::Receive => inner.keep_if_early(evd, event),
                    Direction::Request => Some(event),
                };
                match event {
                    Some(event) if signal == Signal::Quiet => evd.report_quietly(&event),
                    Some(event) => evd.report_drained(&event),
                    None => {}
                }
            }
            match status {
                _ if inner.phase == Phase::Freed => {}
                DtoStatus::Success => {}
                // The QP stopped by itself. Mostly `rdma_cm` is about to say why.
                DtoStatus::Flushed if inner.phase.is_connected() => Self::break_later(&self),
                DtoStatus::Flushed => {}
                // On a reliable connection every other failure is the connection's. The peer is yet
                // to hear from the device what was wrong with a message of its.
                _ if wr.direction == Direction::Receive => Self::break_soon(&self),
                _ => {
                    effects = self
                        .advance(&mut inner, Input::Broken)
                        .unwrap_or(Effects::NONE)
                }
            }
            let mut undemanded = None;
            // A QP that is to fail does so first, so that receives flush.
            if effects == Effects::NONE {
                (effects, undemanded) = self.wind_up(&mut inner);
            }
            if effects != Effects::NONE {
                Self::enact_later(&self, &mut inner, effects);
            }
            undemanded
        };
    }
}
