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
        prelude::*, //
    },
    model::{
        dto::{
            DtoSlots,
            Scan, //
        },
        ep::Phase,
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

    /// Returns the number of DTOs in flight that were posted before the end of the connection.
    ///
    /// DTOs of a direction complete in the order of their posts. So those that were posted after
    /// the end are the last ones in flight.
    pub(super) fn outstanding_before_end(&self, direction: Direction) -> u32 {
        let later = self.connection.posted_after_end.of(direction);
        self.outstanding(direction).saturating_sub(*later)
    }

    /// Calls `post`, which posts to the QP after the end of the connection, and counts the DTOs.
    ///
    /// # Errors
    ///
    /// INVALID_STATE if the driver takes no posts for a QP in ERR: ocrdma returns `EINVAL`. Errors
    /// of `post`.
    #[cold]
    pub(super) fn after_end<R>(
        &mut self,
        direction: Direction,
        post: impl FnOnce(&mut Self) -> DatResult<R>,
    ) -> DatResult<R> {
        let before = self.outstanding(direction);
        let result = post(self);
        let posted = self.outstanding(direction).saturating_sub(before);
        let count = self.connection.posted_after_end.of_mut(direction);
        *count = count.saturating_add(posted);
        result.map_err(|error| match error == DatError::internal() {
            true => self.phase.invalid_state_error(),
            false => error,
        })
    }
}
