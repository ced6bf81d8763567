// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles completions of an Endpoint's data transfer operations (DTOs).

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
            PerDirection,
            WrId,
            LIVES, //
        },
    },
    rdma::wc::{
        Extra,
        Wc,
        WcStatus, //
    },
    sys::jiffies::Jiffies,
};

/// Returns the DAT status of a completion.
#[inline]
fn status(status: WcStatus) -> DtoStatus {
    match status {
        WcStatus::Success => DtoStatus::Success,
        failure => status_of_failure(failure),
    }
}

#[cold]
fn status_of_failure(status: WcStatus) -> DtoStatus {
    match status {
        WcStatus::Success => DtoStatus::Success,
        WcStatus::Flushed => DtoStatus::Flushed,
        WcStatus::LocalLength => DtoStatus::LocalLength,
        WcStatus::LocalProtection | WcStatus::LocalAccess => DtoStatus::LocalProtection,
        WcStatus::LocalQpOperation => DtoStatus::LocalEp,
        WcStatus::BadResponse => DtoStatus::BadResponse,
        WcStatus::RemoteAccess => DtoStatus::RemoteAccess,
        WcStatus::RemoteInvalidRequest | WcStatus::RemoteOperation => DtoStatus::RemoteResponder,
        WcStatus::RnrRetryExceeded => DtoStatus::ReceiverNotReady,
        WcStatus::RetryExceeded | WcStatus::Other(_) => DtoStatus::Transport,
    }
}

/// Builds the result of a DTO without immediate data.
fn ended(status: DtoStatus, length: u64) -> DtoResult {
    DtoResult {
        status,
        length,
        extra: 0,
    }
}

/// Builds the result of a receive. Immediate data or an invalidated key change the operation of its
/// event.
fn arrived(completion: &Wc, dto: &mut Dto) -> DtoResult {
    let (operation, extra) = match completion.extra() {
        None => (dto.operation, 0),
        Some(Extra::RdmaWriteImm(data)) => (Operation::RecvImmed, data),
        Some(Extra::MessageImm(data)) => (Operation::RecvMsgImmed, data),
        Some(Extra::InvalidatedKey(key)) => (Operation::ReceiveWithInvalidate, key),
    };
    dto.operation = operation;
    DtoResult {
        status: DtoStatus::Success,
        length: u64::from(completion.byte_len()),
        extra,
    }
}

/// Returns the result of a receive.
pub(super) fn receive_result(completion: &Wc, dto: &mut Dto) -> DtoResult {
    match status(completion.status()) {
        DtoStatus::Success => arrived(completion, dto),
        status => ended(status, 0),
    }
}

/// A completion, as far as its event needs it.
#[derive(Clone, Copy)]
struct Completion {
    direction: Direction,
    slot: u32,
    dto: Dto,
    result: DtoResult,
}

impl Ep {
    /// Takes a completion of this Endpoint, and queues its event on `evd`. The Endpoint's own last
    /// event is queued at once. All other effects are left to the work item.
    ///
    /// Context: any; does not sleep. The caller drains `evd`, and holds its consumer lock. The
    /// event goes into the ring, or directly to the consumer that drains.
    // Not inlined into the drain loop, which mostly finds at most one completion.
    #[inline(never)]
    pub(in crate::dat) fn complete(
        self: &Arc<Self>,
        evd: &Evd,
        wr: WrId,
        completion: &Wc,
        direct: &mut DirectEvent<'_>,
    ) {
        let status = status(completion.status());
        let _ended_demand = {
            let mut inner = self.inner.lock();
            if wr.life != inner.life % LIVES {
                // A reset has given up this DTO.
                return;
            }
            let slots = match wr.direction {
                Direction::Request => {
                    self.retire_before(&mut inner, wr.slot);
                    inner.requests.leave(wr.slot)
                }
                Direction::Receive => &mut inner.receives,
            };
            let Some(mut dto) = slots.complete(wr.slot) else {
                return self.complete_probe(&mut inner, wr, status);
            };
            let result = match (status, wr.direction) {
                (DtoStatus::Success, Direction::Receive) => {
                    inner.connection.last_receive = Some(Jiffies::now());
                    let result = arrived(completion, &mut dto);
                    inner.note_invalidation(&dto, result);
                    result
                }
                (DtoStatus::Success, Direction::Request) => ended(status, dto.length),
                _ => ended(status, 0),
            };
            inner.registrations.end(wr.slot, &dto, status);
            self.count_completion(&mut inner, wr.slot, &dto, result);
            let stands = matches!(inner.phase, Phase::Connected(_))
                && inner.demand.is_none()
                && inner.watch.is_none();
            let completed = Completion {
                direction: wr.direction,
                slot: wr.slot,
                dto,
                result,
            };
            // Fast path: a successful completion on an established connection has no other effects.
            // While receives are held back there is demand.
            if status == DtoStatus::Success && stands {
                self.report(&inner, evd, &completed, direct);
                return;
            }
            // A copy for this rare call: the completion itself then need not be in memory.
            self.conclude(&mut inner, evd, &{ completed }, direct)
        };
    }

    /// Ends the bind or registration of a completion for whose event the ring has no room yet, and
    /// retires the unsignalled requests before it, which have no events. Takes the completion, and
    /// returns `true`, if it has no event: the Endpoint was freed or reset, or the completion is
    /// that of a probe.
    ///
    /// Context: as for [`Ep::complete`].
    pub(in crate::dat) fn complete_early(
        self: Arc<Self>,
        evd: &Evd,
        wr: WrId,
        completion: &Wc,
    ) -> bool {
        {
            let mut inner = self.inner.lock();
            let is_request = wr.direction == Direction::Request;
            let has_event = wr.life == inner.life % LIVES
                && inner.phase != Phase::Freed
                && !(is_request && wr.slot == inner.probe_slot());
            if has_event {
                if is_request {
                    self.retire_before(&mut inner, wr.slot);
                }
                let dto = inner.requests.slots().get(wr.slot).copied();
                if let (true, Some(dto)) = (is_request, dto) {
                    let status = status(completion.status());
                    inner.registrations.end(wr.slot, &dto, status);
                }
                return false;
            }
        }
        self.complete(evd, wr, completion, &mut DirectEvent::none());
        true
    }

    /// Queues the event of a completion, if it has one. The caller holds the Endpoint's lock.
    /// Returns `false` if there is none, or the consumer got it directly.
    #[inline(always)]
    fn report(
        &self,
        inner: &Inner,
        evd: &Evd,
        completed: &Completion,
        direct: &mut DirectEvent<'_>,
    ) -> bool {
        let Completion {
            direction,
            dto,
            result,
            ..
        } = completed;
        let notification = notification_for(dto.flags, inner.attr.mode(*direction), result.status);
        if notification == Notification::None {
            return false;
        }
        let event = dto.event(self.handle(), *result);
        if evd.put_direct(direct, &event) {
            return false;
        }
        match notification {
            Notification::Quiet => evd.report_quietly(&event),
            Notification::None | Notification::Wake => evd.report_drained(&event),
        }
        true
    }

    /// Holds back the event of a completion if it is an early receive, or has to follow one.
    fn try_hold(&self, inner: &mut Inner, evd: &Evd, completed: &Completion) -> bool {
        let Completion {
            direction,
            slot,
            dto,
            result,
        } = *completed;
        direction == Direction::Receive && inner.hold_if_early(evd, slot, &dto, result)
    }

    /// Queues the event of a completion, and takes the transitions that follow. The caller drops
    /// the result after the Endpoint's lock.
    #[cold]
    fn conclude(
        self: &Arc<Self>,
        inner: &mut Inner,
        evd: &Evd,
        completed: &Completion,
        direct: &mut DirectEvent<'_>,
    ) -> Option<PerDirection<Demand>> {
        let status = completed.result.status;
        let mut effects = Effects::NONE;
        // A received message shows that the peer has established the connection, even if its
        // confirmation is late or still being sent.
        let is_late = match inner.phase {
            Phase::Accepting(_) => true,
            Phase::Connecting(_) => inner.connection.attempt.confirms,
            _ => false,
        };
        if status != DtoStatus::Flushed && is_late {
            effects = self
                .advance(inner, Network::Established)
                .unwrap_or(Effects::NONE);
        }
        if inner.phase != Phase::Freed && !self.try_hold(inner, evd, completed) {
            let is_queued = self.report(inner, evd, completed, direct);
            if completed.direction == Direction::Receive {
                self.watch_receive(inner);
                if !is_queued {
                    // The consumer got the event directly, or gets none.
                    inner.take_receive();
                }
            }
        }
        match status {
            _ if inner.phase == Phase::Freed => {}
            DtoStatus::Success => {}
            // The QP has stopped. Mostly `rdma_cm` is about to report the reason.
            DtoStatus::Flushed if inner.phase.is_connected() => self.break_unless_cm_reports(),
            DtoStatus::Flushed => {}
            // On a reliable connection any other failure ends the connection. After a failed
            // receive the device has yet to report the error to the peer.
            _ if completed.direction == Direction::Receive => self.break_after_error_reply(),
            _ => {
                effects = self
                    .advance(inner, Network::Broken)
                    .unwrap_or(Effects::NONE)
            }
        }
        let mut ended_demand = None;
        // If effects are pending, the QP may have to be moved to ERR first, so that receives flush.
        if effects == Effects::NONE {
            (effects, ended_demand) = self.wind_up(inner);
        }
        if effects != Effects::NONE {
            self.perform_later(inner, effects);
        }
        ended_demand
    }
}

#[kunit_tests(kdapl_dat_dto_status)]
mod tests {
    use super::*;

    #[test]
    fn each_verbs_status_has_its_dat_status() {
        use WcStatus as Verbs;
        let table = [
            (Verbs::Success, DtoStatus::Success),
            (Verbs::Flushed, DtoStatus::Flushed),
            (Verbs::LocalLength, DtoStatus::LocalLength),
            (Verbs::LocalProtection, DtoStatus::LocalProtection),
            (Verbs::LocalAccess, DtoStatus::LocalProtection),
            (Verbs::LocalQpOperation, DtoStatus::LocalEp),
            (Verbs::BadResponse, DtoStatus::BadResponse),
            (Verbs::RemoteAccess, DtoStatus::RemoteAccess),
            (Verbs::RemoteInvalidRequest, DtoStatus::RemoteResponder),
            (Verbs::RemoteOperation, DtoStatus::RemoteResponder),
            (Verbs::RnrRetryExceeded, DtoStatus::ReceiverNotReady),
            (Verbs::RetryExceeded, DtoStatus::Transport),
            (Verbs::Other(u32::MAX), DtoStatus::Transport),
        ];
        for (verbs, expected) in table {
            assert_eq!(status(verbs), expected);
        }
    }
}
