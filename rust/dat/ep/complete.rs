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
            Event,
            Operation, //
        },
        handle::{
            Direction,
            WrId, //
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
    /// Takes a completion of this Endpoint, queues its event on `evd`, and what follows from it.
    ///
    /// Context: process; sleeps. Called by whoever drains `evd`.
    pub(in crate::dat) fn complete(self: Arc<Self>, evd: &Evd, wr: WrId, completion: &Wc) {
        let status = status(completion.status());
        let effects = {
            let mut inner = self.inner.lock();
            if wr.life != inner.life {
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
            evd.end_dtos(1);
            let mut effects = Effects::NONE;
            // What has been received was sent over a connection, whose confirmation may be late.
            if status == DtoStatus::Success && matches!(inner.phase, Phase::Accepting(_)) {
                effects = self
                    .advance(&mut inner, Input::Established)
                    .unwrap_or(Effects::NONE);
            }
            if inner.phase != Phase::Freed && signals(dto.flags, status) != Signal::Dropped {
                let event = Event::Dto {
                    ep: self.handle.into_raw(),
                    cookie: dto.cookie,
                    status,
                    operation: dto.operation,
                    length,
                    rmr_context: 0,
                };
                let event = match wr.direction {
                    Direction::Receive => inner.keep_if_early(event),
                    Direction::Request => Some(event),
                };
                if let Some(event) = event {
                    evd.report(&event);
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
            if effects == Effects::NONE && inner.demand.is_none() {
                return;
            }
            effects
        };
        // Among the rest: if this was the last one, the Endpoint's own last event is due.
        Self::perform(&self, effects, None);
    }
}
