// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completions of an Endpoint's DTOs.

use crate::{
    dat::{
        ep::{
            Ep,
            Inner, //
        },
        evd::{
            Demand,
            Evd, //
        },
        prelude::*, //
    },
    model::{
        completion::{
            notification_for,
            Notification, //
        },
        direct_event::DirectEvent,
        dto::{
            Dto,
            DtoResult, //
        },
        ep::{
            Effects,
            Network,
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
        ImmData,
        Status,
        Wc, //
    },
};

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

/// How a DTO ended to which nothing came beside its bytes.
fn ended(status: DtoStatus, length: u64) -> DtoResult {
    DtoResult {
        status,
        length,
        immed_data: 0,
    }
}

/// What came to a receive; immediate data make another operation of it.
fn arrived(completion: &Wc, dto: &mut Dto) -> DtoResult {
    let (operation, immed_data) = match completion.imm_data() {
        Some(ImmData::RdmaWrite(data)) => (Operation::RecvImmed, data),
        Some(ImmData::Message(data)) => (Operation::RecvMsgImmed, data),
        None => (dto.operation, 0),
    };
    dto.operation = operation;
    DtoResult {
        status: DtoStatus::Success,
        length: u64::from(completion.byte_len()),
        immed_data,
    }
}

/// What a completion tells.
struct Completion<'a> {
    direction: Direction,
    dto: &'a Dto,
    result: DtoResult,
}

impl Ep {
    /// Takes a completion of this Endpoint and queues its event on `evd`. What follows from it is
    /// done by the work item, but for the Endpoint's own last event, which is queued at once.
    ///
    /// Context: process. Called by whoever drains `evd`, with the lock of its consumer.
    /// The event goes into the ring, or directly to the consumer that drains.
    // Apart from the loop that drains, which mostly finds one completion or none.
    #[inline(never)]
    pub(in crate::dat) fn complete(
        self: Arc<Self>,
        evd: &Evd,
        wr: WrId,
        completion: &Wc,
        direct: &mut DirectEvent<'_>,
    ) {
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
            let Some(mut dto) = slots.complete(wr.slot) else {
                return;
            };
            let result = match (status, wr.direction) {
                (DtoStatus::Success, Direction::Receive) => arrived(completion, &mut dto),
                (DtoStatus::Success, Direction::Request) => ended(status, dto.length),
                _ => ended(status, 0),
            };
            self.trace_complete(&mut inner, wr.slot, &dto, result);
            let stands = matches!(inner.phase, Phase::Connected(_)) && inner.demand.is_none();
            let completed = Completion {
                direction: wr.direction,
                dto: &dto,
                result,
            };
            // Nearly every completion: nothing follows from what went well on a connection that stands.
            if status == DtoStatus::Success && stands {
                self.report(&mut inner, evd, &completed, direct);
                return;
            }
            self.conclude(&mut inner, evd, &completed, direct)
        };
    }

    /// Queues the event of a completion, if it has one. With the lock.
    #[inline(always)]
    fn report(
        &self,
        inner: &mut Inner,
        evd: &Evd,
        completed: &Completion<'_>,
        direct: &mut DirectEvent<'_>,
    ) {
        let Completion {
            direction,
            dto,
            result,
        } = completed;
        let notification = notification_for(dto.flags, inner.attr.mode(*direction), result.status);
        if notification == Notification::None {
            return;
        }
        let event = dto.event(self.handle(), *result);
        let event = match direction {
            Direction::Receive => inner.keep_if_early(evd, event),
            Direction::Request => Some(event),
        };
        match event {
            Some(event) if evd.put_direct(direct, &event) => {}
            Some(event) if notification == Notification::Quiet => evd.report_quietly(&event),
            Some(event) => evd.report_drained(&event),
            None => {}
        }
    }

    /// Queues the event of a completion, and does what follows from it. What is returned is to be dropped
    /// without the lock.
    #[cold]
    fn conclude(
        self: &Arc<Self>,
        inner: &mut Inner,
        evd: &Evd,
        completed: &Completion<'_>,
        direct: &mut DirectEvent<'_>,
    ) -> Option<(Demand, Demand)> {
        let status = completed.result.status;
        let mut effects = Effects::NONE;
        // What has been received was sent over a connection, whose confirmation may be late, or on its way.
        let is_late = match inner.phase {
            Phase::Accepting(_) => true,
            Phase::Connecting(_) => inner.connection.confirms,
            _ => false,
        };
        if status != DtoStatus::Flushed && is_late {
            effects = self
                .advance(inner, Network::Established)
                .unwrap_or(Effects::NONE);
        }
        if inner.phase != Phase::Freed {
            self.report(inner, evd, completed, direct);
        }
        match status {
            _ if inner.phase == Phase::Freed => {}
            DtoStatus::Success => {}
            // The QP stopped by itself. Mostly `rdma_cm` is about to say why.
            DtoStatus::Flushed if inner.phase.is_connected() => self.break_later(),
            DtoStatus::Flushed => {}
            // On a reliable connection every other failure is the connection's. The peer is yet
            // to hear from the device what was wrong with a message of its.
            _ if completed.direction == Direction::Receive => self.break_soon(),
            _ => {
                effects = self
                    .advance(inner, Network::Broken)
                    .unwrap_or(Effects::NONE)
            }
        }
        let mut undemanded = None;
        // A QP that is to fail does so first, so that receives flush.
        if effects == Effects::NONE {
            (effects, undemanded) = self.wind_up(inner);
        }
        if effects != Effects::NONE {
            self.enact_later(inner, effects);
        }
        undemanded
    }
}
