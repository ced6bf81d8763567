// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Local Memory Regions (LMR) that requests register and invalidate: those of `dat_lmr_allocate`.
//!
//! The LMR has one region of the device for all registrations, and a list of pages. A registration
//! maps the pages and the region. The mapping ends with the completion of the invalidation, which
//! this side has posted or a receive has reported. [`LmrState`] decides which calls are allowed.
//!
//! A call that prepares a registration takes the resources out of `Inner`, and puts them back when
//! the request is posted. So the only allocations are those of `dat_lmr_allocate`, of a region that
//! replaces a lost one, and of a few words for each request.

mod prepare;
mod resources;

pub(crate) use self::prepare::Fmr;

pub(in crate::dat) use self::prepare::PreparedRegistration;

use self::resources::Resources;

use crate::{
    dat::{
        base::InUse,
        prelude::*,
        pz::{
            PeerInvalidation,
            Pz,
            RegionReservation, //
        },
    },
    model::{
        atomic::AtomicBool,
        fast_lmr::{
            in_use,
            LmrEffects,
            LmrInput,
            LmrState, //
        },
        handle::Handle,
    },
    rdma::{
        dma_pages::DmaPages,
        fast_mr::FastMr, //
    },
    sys::{
        lock::{
            new_spinlock_irq,
            IrqSaveBackend,
            SpinLockIrq, //
        },
        workqueue::queue, //
    },
};
use kernel::{
    impl_has_work, new_mutex, new_work,
    sync::{
        lock::Guard,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};

/// Registration of an LMR, for queries. All is 0 without one.
#[derive(Clone, Copy, Default)]
pub(crate) struct FastRegistration {
    pub(crate) address: u64,
    pub(crate) length: u64,
    /// `DAT_MEM_PRIV_FLAGS`.
    pub(crate) privileges: u32,
    pub(crate) lmr_context: u32,
    pub(crate) rmr_context: u32,
}

/// Fields of [`FastLmr`] protected by its lock.
pub(in crate::dat) struct Inner {
    state: LmrState,
    registration: FastRegistration,
    /// `None` while a call prepares a registration, and after the release.
    resources: Option<Resources>,
    /// Endpoint that the last request was posted to; `None` before the first one.
    ep: Option<Handle>,
    /// Whether the completion of an outstanding request may have no event.
    is_suppressed: bool,
    /// The LMR was freed, or the device was removed.
    is_released: bool,
}

impl Inner {
    /// Takes a step, and carries out its effects except for the replacement of the region.
    ///
    /// # Errors
    ///
    /// Those of [`LmrState::step`].
    pub(in crate::dat) fn step(&mut self, input: LmrInput) -> DatResult<LmrEffects> {
        let (state, effects) = self.state.step(input)?;
        self.state = state;
        if effects.forget {
            self.forget();
        }
        if let (true, Some(resources)) = (effects.unmap, &mut self.resources) {
            resources.pages.unmap();
        }
        Ok(effects)
    }

    /// Checks whether an invalidation may be posted to an Endpoint.
    ///
    /// # Errors
    ///
    /// Those of [`LmrState::step`]; INVALID_HANDLE (LMR) if the LMR was freed, or the device
    /// removed.
    pub(in crate::dat) fn may_invalidate(&self, ep: Handle) -> DatResult<Arc<FastMr>> {
        self.unless_released()?;
        self.state.step(self.invalidation(ep))?;
        let region = self
            .resources
            .as_ref()
            .and_then(|resources| resources.region.clone());
        region.ok_or(DatError::device())
    }

    /// Notes that an invalidation was posted to an Endpoint.
    pub(in crate::dat) fn invalidate(&mut self, ep: Handle, is_suppressed: bool) -> DatResult {
        self.step(self.invalidation(ep))?;
        self.ep = Some(ep);
        self.is_suppressed |= is_suppressed;
        Ok(())
    }

    fn invalidation(&self, ep: Handle) -> LmrInput {
        LmrInput::Invalidate {
            in_order: self.ep == Some(ep),
        }
    }

    /// Forbids posts to use the LMR context.
    fn forget(&mut self) {
        let context = core::mem::take(&mut self.registration).lmr_context;
        if let (1.., Some(resources)) = (context, &mut self.resources) {
            resources.room = resources.pz.take_region(context);
        }
    }
}

/// State of an LMR that requests register and invalidate.
#[pin_data]
pub(in crate::dat) struct FastLmr {
    /// Pages of the longest registration.
    max_pages: u32,
    /// The driver may sleep when it maps pages.
    sleeps_to_map: bool,
    /// The driver has failed to destroy a region, so the device may access its memory for ever.
    is_lost: AtomicBool,
    #[pin]
    inner: SpinLockIrq<Inner>,
    /// Resources that are being dropped after the release.
    #[pin]
    dropped: Mutex<Option<Resources>>,
    #[pin]
    release_work: Work<FastLmr>,
}

impl FastLmr {
    /// Allocates the resources of an LMR for registrations of up to `max_pages` pages.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - LENGTH_ERROR for no pages, or more than a region of the device has.
    /// - INSUFFICIENT_RESOURCES.
    pub(super) fn new(pz: InUse<Pz>, max_pages: u32) -> DatResult<Arc<Self>> {
        if max_pages == 0 {
            return Err(Kind::LengthError.into());
        }
        let pd = pz.pd()?;
        let sleeps_to_map = pd.sleeps_to_map();
        let region = FastMr::reusable(pd.clone(), max_pages).map_err(super::registration_error)?;
        let context = region.key();
        let resources = Resources {
            region: Some(region),
            pages: DmaPages::new(pd, max_pages)?,
            room: Some(RegionReservation::new()?),
            pz,
        };
        let pz = resources.pz.object();
        let inner = Inner {
            state: LmrState::Free,
            registration: FastRegistration::default(),
            resources: Some(resources),
            ep: None,
            is_suppressed: false,
            is_released: false,
        };
        let this = Arc::pin_init(
            pin_init!(Self {
                max_pages,
                sleeps_to_map,
                is_lost: AtomicBool::new(false),
                inner <- new_spinlock_irq!(inner, "Lmr::fast"),
                dropped <- new_mutex!(None, "FastLmr::dropped"),
                release_work <- new_work!("FastLmr::release_work"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        pz.add_peer_invalidation(context, this.clone())?;
        Ok(this)
    }

    /// Locks the state. The caller may hold `Ep::inner`.
    pub(in crate::dat) fn lock(&self) -> Guard<'_, Inner, IrqSaveBackend> {
        self.inner.lock()
    }

    /// Refuses registrations and invalidations from now on.
    ///
    /// # Errors
    ///
    /// INVALID_STATE (LMR in use) while a request is outstanding, or about to be posted.
    pub(super) fn refuse_requests(&self) -> DatResult {
        let mut inner = self.lock();
        if inner.state.is_busy() {
            return Err(in_use());
        }
        inner.is_released = true;
        Ok(())
    }

    /// Returns the Endpoint of an outstanding request whose completion may have no event.
    pub(in crate::dat) fn suppressed_on(&self) -> Option<Handle> {
        let inner = self.lock();
        let is_waiting = inner.is_suppressed && inner.state.is_busy();
        inner.ep.filter(|_| is_waiting)
    }

    /// Returns the registration.
    pub(super) fn registration(&self) -> FastRegistration {
        let inner = self.lock();
        match inner.state.is_registered() {
            true => inner.registration,
            false => FastRegistration::default(),
        }
    }

    /// Handles the completion of a request, or the end of one that no queue pair will carry out.
    ///
    /// Context: the caller holds `Ep::inner`.
    pub(in crate::dat) fn ended(&self, input: LmrInput) {
        let _ = self.lock().step(input);
    }

    /// Destroys the region. Returns `false`, and remembers it, if the driver fails to do so.
    ///
    /// Context: process; sleeps.
    fn drop_region(&self, resources: &mut Resources) -> bool {
        let is_destroyed = resources.drop_region();
        if !is_destroyed {
            self.is_lost.swap(true);
        }
        is_destroyed
    }

    /// Returns whether the device may access the memory for ever.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load_acquire()
    }

    /// Releases the memory and the region, so that no key is valid. If requests are outstanding,
    /// the last of them does so.
    ///
    /// Context: process; sleeps.
    pub(super) fn release(&self) {
        {
            let mut inner = self.lock();
            inner.is_released = true;
            inner.forget();
        }
        self.drop_released();
    }

    /// Drops the resources of a released LMR, unless requests are outstanding.
    ///
    /// Context: process; sleeps.
    fn drop_released(&self) {
        // A thread that releases the LMR meanwhile waits for the drop.
        let mut dropped = self.dropped.lock();
        let (reports, resources) = {
            let mut inner = self.lock();
            if !inner.is_released {
                return;
            }
            let reports = inner.resources.as_ref().and_then(Resources::reports);
            let is_left = inner.state.is_busy();
            (
                reports,
                if is_left {
                    None
                } else {
                    inner.resources.take()
                },
            )
        };
        Resources::end_reports(reports);
        *dropped = resources;
        if let Some(resources) = &mut *dropped {
            self.drop_region(resources);
        }
        *dropped = None;
    }
}

impl PeerInvalidation for FastLmr {
    fn peer_invalidated(&self, rmr_context: u32) {
        let mut inner = self.lock();
        // A message may arrive before the completion of a later registration is taken.
        let region = inner
            .resources
            .as_ref()
            .and_then(|resources| resources.region.as_ref());
        if region.is_some_and(|region| region.key() == rmr_context) {
            let _ = inner.step(LmrInput::PeerInvalidated);
        }
    }
}

impl_has_work! {
    impl HasWork<Self> for FastLmr { self.release_work }
}

impl WorkItem for FastLmr {
    type Pointer = Arc<Self>;

    /// Drops the resources of a released LMR, and a reference, where the thread may sleep.
    fn run(this: Arc<Self>) {
        this.drop_released();
    }
}

/// Reference of a request that is in a send queue. The drop may be in any context that may take a
/// spinlock.
pub(in crate::dat) struct Outstanding(Option<Arc<FastLmr>>);

impl Outstanding {
    /// Takes a reference.
    pub(in crate::dat) fn new(lmr: &Arc<FastLmr>) -> Self {
        Self(Some(lmr.clone()))
    }

    /// Handles the completion: see [`FastLmr::ended`].
    pub(in crate::dat) fn ended(self, input: LmrInput) {
        if let Some(lmr) = &self.0 {
            lmr.ended(input);
        }
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        if let Some(last) = self.0.take().and_then(Arc::into_unique_or_drop) {
            let _ = queue().enqueue(Arc::from(last));
        }
    }
}
