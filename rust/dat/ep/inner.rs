// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State of an Endpoint that its lock protects.

use super::{
    connect::{
        Connection,
        HeldBack, //
    },
    data::{
        receive_slots,
        Named,
        Plan,
        RecvWatch,
        Registrations,
        Shares,
        SrqReceives,
        Streams, //
    },
    effects::PendingEffects,
    trace::Trace,
    EpAttr,
    EpContext,
    EpQp,
    Parts, //
};
use crate::{
    dat::{
        base::{
            slots,
            InUse,
            SlotStorage, //
        },
        evd::Demand,
        prelude::*,
        pz::Recent, //
    },
    model::{
        completion::CompletionFlags,
        dto::{
            Dto,
            DtoSlots,
            Scan, //
        },
        ep::{
            flushes_posts,
            Phase, //
        },
        handle::{
            Direction,
            PerDirection, //
        },
        requests::{
            Requests,
            Signalling, //
        },
        traffic::Traffic, //
    },
};
use kernel::alloc::Flags;

/// Allocates slots for `count` receives in flight.
pub(super) fn receives(
    count: u32,
    context: &EpContext,
    flags: Flags,
) -> DatResult<DtoSlots<SlotStorage>> {
    Ok(DtoSlots::new(slots(context.ia.user(), count, flags)?))
}

/// Allocates slots for `count` requests in flight.
pub(super) fn requests(
    count: u32,
    context: &EpContext,
    flags: Flags,
) -> DatResult<Requests<SlotStorage>> {
    let signalling = match context.ia.device() {
        Ok(device) if device.driver().allows_unsignalled => Signalling::Few,
        Ok(_) | Err(_) => Signalling::All,
    };
    Ok(Requests::new(
        slots(context.ia.user(), count, flags)?,
        signalling,
    ))
}

/// Fields of [`Ep`](super::Ep) protected by its lock.
pub(super) struct Inner {
    pub(super) phase: Phase,
    /// Phase in which the Endpoint was freed.
    pub(super) freed_in: Option<Phase>,
    /// PZ and EVDs; empty once freed.
    pub(super) parts: Parts,
    /// Completion streams on its EVDs.
    pub(super) streams: Streams,
    pub(super) attr: EpAttr,
    /// `None` while unconfigured, during a reset, once freed, or once the device is gone.
    pub(super) qp: Option<Arc<EpQp>>,
    /// Shares of the completion queues that the QP reports to. The QP holds a reference, too.
    pub(super) shares: Option<Arc<Shares>>,
    pub(super) requests: Requests<SlotStorage>,
    /// Slots of receives. With a Shared Receive Queue (SRQ): slots of completed receives whose
    /// events are not reported yet.
    pub(super) receives: DtoSlots<SlotStorage>,
    pub(super) registrations: Registrations,
    /// LMR contexts that requests and receives in flight name. Empty unless the consumer is a
    /// kernel module.
    pub(super) named: Named,
    /// Regions that the last posts have named.
    pub(super) recent: PerDirection<Recent>,
    pub(super) srq_receives: SrqReceives,
    pub(super) connection: Connection,
    /// DTOs that have completed since the creation.
    pub(super) traffic: Traffic,
    /// Receives to report after ESTABLISHED. `demand` is set while there are any.
    pub(super) held: HeldBack,
    /// Number of resets. Work requests carry its low bits.
    pub(super) life: u32,
    /// Effects that the work item has not carried out yet.
    pub(super) pending_effects: Option<PendingEffects>,
    /// Number of receives in `Ep::preposted`; `None` once new receives go directly to the QP.
    pub(super) preposted_count: Option<u32>,
    /// Keeps the work items of both EVDs draining while set.
    pub(super) demand: Option<PerDirection<Demand>>,
    /// High watermarks, if some are set.
    pub(super) watch: Option<KBox<RecvWatch>>,
    pub(super) trace: Trace,
}

impl Inner {
    pub(super) fn new(
        context: &EpContext,
        parts: Parts,
        attr: EpAttr,
        phase: Phase,
        flags: Flags,
    ) -> DatResult<Self> {
        let parts_srq = parts.srq.as_ref().map(InUse::object);
        let streams = context.evds.with_lock(|| {
            Plan::new(&parts, &Parts::default(), &Streams::default(), &attr).map(Plan::join)
        })?;
        Ok(Self {
            phase,
            freed_in: None,
            parts,
            streams,
            attr,
            qp: None,
            shares: None,
            requests: requests(attr.max_request_dtos, context, flags)?,
            receives: receives(
                receive_slots(parts_srq.as_deref(), context, &attr),
                context,
                flags,
            )?,
            srq_receives: SrqReceives::none(),
            registrations: Registrations::none(),
            named: Named::new(context, &attr, parts_srq.as_deref(), flags)?,
            recent: PerDirection {
                requests: Recent::none(),
                receives: Recent::none(),
            },
            connection: Connection::none(context.ia.attr().address),
            traffic: Traffic::default(),
            held: HeldBack::none(),
            life: 0,
            pending_effects: None,
            preposted_count: Some(0),
            demand: None,
            watch: None,
            trace: Trace::new(flags)?,
        })
    }

    /// Searches for a receive or a request in flight: see [`DtoSlots::find_busy`].
    pub(super) fn find_busy(&self, direction: Direction, from: u32) -> Scan {
        match direction {
            Direction::Receive => self.receives.find_busy(from),
            Direction::Request => self.requests.find_busy(from),
        }
    }

    /// Returns the number of receives that are posted and have not completed.
    pub(super) fn receives_outstanding(&self) -> u32 {
        self.receives
            .outstanding()
            .saturating_add(self.preposted_count.unwrap_or(0))
    }

    /// Returns the number of DTOs of a direction that are posted and have not completed.
    pub(super) fn outstanding(&self, direction: Direction) -> u32 {
        match direction {
            Direction::Receive => self.receives_outstanding(),
            Direction::Request => self.requests.outstanding(),
        }
    }

    /// Returns whether a DTO is in flight that was posted before the end of the connection.
    ///
    /// Over siw a DTO that is posted while the QP is moved to ERR may complete before them.
    pub(super) fn has_outstanding_before_end(&self, direction: Direction) -> bool {
        let late = match direction {
            Direction::Receive => self.receives.posted_after_end(),
            Direction::Request => self.requests.slots().posted_after_end(),
        };
        self.outstanding(direction) > late
    }

    /// Marks a DTO that is posted after the end of the connection.
    pub(super) fn mark(&self, dto: &mut Dto) {
        if flushes_posts(self.phase) {
            dto.flags = dto.flags.with(CompletionFlags::AFTER_END);
        }
    }

    /// Converts the error of a post to the QP. After the end of the connection ocrdma takes no
    /// posts, and returns `EINVAL`: INVALID_STATE.
    pub(super) fn post_refused(&self, error: DatError) -> DatError {
        if flushes_posts(self.phase) && error == DatError::internal() {
            self.phase.invalid_state_error()
        } else {
            error
        }
    }
}
