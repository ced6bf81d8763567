// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Shared Receive Queues (SRQ): receives that any of several Endpoints takes.
//!
//! A completion names the slot of the receive and, by an identity, the queue pair (QP) that has
//! taken it. So an SRQ knows the Endpoint of each QP: see [`member`].

mod hold;
mod lost;
mod member;
mod members;
mod pool;
mod post;
mod resize;
mod watermark;

pub(crate) use self::post::Receive;

pub(in crate::dat) use self::{
    hold::Holder,
    member::{
        Membership,
        TakenReceive, //
    },
    pool::PoolUse,
};

use self::{
    lost::Loss,
    members::Members,
    pool::Pools,
    resize::slots_named,
    watermark::Watermark, //
};
use super::{
    base::{
        contexts,
        slots,
        Contexts,
        Freeing,
        IaBase,
        InUse,
        Object,
        Objects,
        SlotStorage,
        Usable,
        UseCount, //
    },
    evd::Evd,
    pz::Pz, //
};
use crate::{
    dat::prelude::*,
    model::{
        handle::{
            Handle,
            HandleKind, //
        },
        shared_receives::SharedReceives,
    },
    rdma::srq::{
        Srq as RdmaSrq,
        SrqCapacity,
        SrqRef,
        Unsupported, //
    },
    sys::{
        census::{
            self,
            Counted, //
        },
        lock::{
            new_spinlock_irq,
            SpinLockIrq, //
        },
    },
};
use kernel::{
    new_mutex,
    sync::Mutex, //
};

/// Attributes of a new SRQ: `DAT_SRQ_ATTR`.
#[derive(Clone, Copy)]
pub(crate) struct SrqAttr {
    pub(crate) max_recv_dtos: u32,
    pub(crate) max_recv_iov: u32,
}

/// Parameters that [`Srq::query`] returns.
pub(crate) struct Param {
    pub(crate) ia: u64,
    pub(crate) pz: u64,
    pub(crate) attr: SrqAttr,
    pub(crate) low_watermark: u32,
    /// Receives that an Endpoint may take.
    pub(crate) available: u32,
    /// Receives whose event the consumer has not taken, also because an Endpoint holds it back.
    pub(crate) outstanding: u32,
}

/// Fields of [`Srq`] protected by its lock.
struct Inner {
    /// `None` after the SRQ was freed or the device was removed.
    queue: Option<Arc<RdmaSrq<Srq>>>,
    pz: Option<InUse<Pz>>,
    receives: SharedReceives<SlotStorage>,
    /// LMR contexts of the receives, if the consumer is a kernel module.
    named: Contexts,
    members: Members,
    /// Number of Endpoints that may hold receives back.
    holders: u32,
    /// Number of Endpoints' QPs that ever used the SRQ.
    serial: u64,
    loss: Loss,
}

/// Shared Receive Queue.
#[pin_data]
pub(crate) struct Srq {
    handle: Handle,
    ia: Arc<IaBase>,
    /// Handle of the Protection Zone.
    pz: u64,
    max_iov: u32,
    /// The driver loses a receive if a connection ends amid its message.
    loses_receives: bool,
    watermark: Watermark,
    /// Number of slots. Held while it changes, and by threads that rely on it.
    #[pin]
    slots: Mutex<u32>,
    /// Room for completions in completion queues.
    #[pin]
    pools: Mutex<Pools>,
    #[pin]
    inner: SpinLockIrq<Inner>,
    uses: UseCount,
    _counted: Counted,
}

/// Returns the error for an operation that a device or its driver does not support.
fn unsupported_or(error: Error) -> DatError {
    if error == Error::from(Unsupported) {
        Kind::ModelNotSupported.into()
    } else {
        error.into()
    }
}

impl Inner {
    /// Allocates the slots of an SRQ that has no queue of the device yet.
    fn new(ia: &IaBase, attr: SrqAttr) -> DatResult<Self> {
        let (user, count, flags) = (ia.user(), attr.max_recv_dtos, GFP_KERNEL_ACCOUNT);
        Ok(Self {
            queue: None,
            receives: SharedReceives::new(slots(user, count, flags)?),
            named: contexts(user, slots_named(ia, count), attr.max_recv_iov, flags)?,
            members: Members::new(),
            holders: 0,
            serial: 0,
            loss: Loss::default(),
            pz: None,
        })
    }
}

impl Srq {
    /// Creates an SRQ: `dat_srq_create`. Returns its handle.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// * MODEL_NOT_SUPPORTED if the device has no SRQs;
    /// * INVALID_PARAMETER (attributes) for a number of receives or of segments that is 0 or above
    ///   the adapter's maximum;
    /// * INSUFFICIENT_RESOURCES above a limit of the user or without memory.
    pub(super) fn create(
        ia: &Arc<IaBase>,
        async_evd: &Arc<Evd>,
        srqs: &Arc<Objects<Self>>,
        pz: InUse<Pz>,
        attr: SrqAttr,
    ) -> DatResult<u64> {
        let limits = ia.attr();
        if limits.max_srqs == 0 {
            return Err(Kind::ModelNotSupported.into());
        }
        if !(1..=limits.max_recv_per_srq).contains(&attr.max_recv_dtos)
            || !(1..=limits.max_srq_iov).contains(&attr.max_recv_iov)
        {
            return Err(DatError::Invalid(Arg::Attr));
        }
        let entry = Objects::reserve(srqs)?;
        let handle = entry.handle();
        let (zone, inner) = (pz.handle(), Inner::new(ia, attr)?);
        let pd = pz.pd()?;
        let loses_receives = pd.loses_receives();
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                ia: ia.clone(),
                pz: zone,
                max_iov: attr.max_recv_iov,
                loses_receives,
                watermark: Watermark::new(async_evd.clone()),
                slots <- new_mutex!(attr.max_recv_dtos, "Srq::slots"),
                pools <- new_mutex!(Pools::new(), "Srq::pools"),
                inner <- new_spinlock_irq!(inner, "Srq::inner"),
                uses: UseCount::none(),
                _counted: Counted::new(census::Kind::Srq),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let capacity = SrqCapacity {
            max_wr: attr.max_recv_dtos,
            max_sge: attr.max_recv_iov,
        };
        let queue = RdmaSrq::new(pd, capacity, this.clone()).map_err(unsupported_or)?;
        {
            let mut inner = this.inner.lock();
            inner.queue = Some(queue);
            inner.pz = Some(pz);
        }
        entry.commit(this.clone()).inspect_err(|_| this.release())?;
        Ok(handle.into_raw())
    }

    /// Returns the handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle.into_raw()
    }

    /// Returns the handle of the Protection Zone.
    pub(super) fn pz(&self) -> u64 {
        self.pz
    }

    /// Returns the largest number of receives.
    pub(super) fn limit(&self) -> u32 {
        self.inner.lock().receives.limit()
    }

    /// Returns the queue of the device.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (device) after the device was removed.
    fn queue(&self) -> DatResult<Arc<RdmaSrq<Self>>> {
        self.inner.lock().queue.clone().ok_or(DatError::device())
    }

    /// Returns a reference for a new QP.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (device) after the device was removed.
    pub(super) fn reference(&self) -> DatResult<SrqRef> {
        Ok(self.queue()?.into())
    }

    /// Returns the parameters: `dat_srq_query`. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    pub(crate) fn query(&self) -> DatResult<Param> {
        let queued = self.queued_events()?;
        self.drop_lost();
        let inner = self.inner.lock();
        let available = inner.receives.posted();
        Ok(Param {
            ia: self.ia.handle(),
            pz: self.pz,
            attr: SrqAttr {
                max_recv_dtos: inner.receives.limit(),
                max_recv_iov: self.max_iov,
            },
            low_watermark: self.watermark.get(),
            available,
            outstanding: available
                .saturating_add(inner.receives.held())
                .saturating_add(queued),
        })
    }

    /// Takes completions from the completion queues. Returns the number of events of receives that
    /// the consumer has not taken.
    fn queued_events(&self) -> DatResult<u32> {
        let evds = self.evds()?;
        for evd in &evds {
            evd.drain_all();
        }
        let members = self.member_handles()?;
        let is_ours = |ep: u64| members.get(&ep).is_some();
        let counts = evds.iter().map(|evd| evd.count_receives(is_ours));
        Ok(counts.fold(0, u32::saturating_add))
    }

    /// Sets the low watermark: `dat_srq_set_lw`. One asynchronous event reports that fewer receives
    /// are left. 0 turns it off.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// * INVALID_PARAMETER (low watermark) above the number of receives that the SRQ holds;
    /// * INSUFFICIENT_RESOURCES (device) after the device was removed.
    pub(crate) fn set_low_watermark(&self, low: u32) -> DatResult {
        self.drop_lost();
        let _slots = self.slots.lock();
        if low > self.limit() {
            return Err(DatError::Invalid(Arg::Watermark));
        }
        let queue = self.queue()?;
        // The driver must not report the old watermark after the new one is armed.
        queue.set_limit(0).map_err(unsupported_or)?;
        self.watermark.arm(low);
        queue
            .set_limit(low)
            .inspect_err(|_| self.watermark.arm(0))
            .map_err(unsupported_or)?;
        // The driver compares only when a receive is taken.
        if self.inner.lock().receives.posted() < low {
            self.watermark.report(self.handle());
        }
        Ok(())
    }

    /// Releases the queue of the device, the room for its completions, and the Protection Zone.
    pub(super) fn release(&self) {
        let released = {
            let mut inner = self.inner.lock();
            let members = core::mem::replace(&mut inner.members, Members::new());
            (members, inner.queue.take(), inner.pz.take())
        };
        // The drop of the members takes a mutex, that of the queue sleeps.
        drop(released);
    }
}

impl Object for Srq {
    const KIND: HandleKind = HandleKind::Srq;
    const INVALID: Subtype = Subtype::InvalidHandleSrq;

    /// Checks that the SRQ is unused.
    ///
    /// # Errors
    ///
    /// INVALID_STATE while an Endpoint uses the SRQ.
    fn prepare_free(&self) -> DatResult {
        if self.uses.any() {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateSrqInUse,
            ));
        }
        Ok(())
    }

    /// Frees the SRQ. Receives that no Endpoint has taken are dropped without events.
    fn shutdown(self: &Arc<Self>, _freeing: Freeing<'_, Self>) {
        self.release();
    }
}

impl Usable for Srq {
    fn uses(&self) -> &UseCount {
        &self.uses
    }
}
