// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Interface Adapters (IAs): opening, closing, and the calls that take handles.
//!
//! An adapter is one consumer's view of one RDMA device. It owns the tables of the consumer's
//! objects, and shuts all objects down when it is closed or when its device is removed.

mod calls;
mod close;
mod fmr;
mod opener;
mod parts;
mod resolve;
mod service_calls;
mod stat;
mod tables;

pub(crate) use self::{
    opener::{
        is_restricted,
        Opener, //
    },
    resolve::first_address,
    tables::Tabled,
};

use self::opener::warn_of_danger;
use super::{
    base::{
        IaAttr,
        IaBase,
        Object,
        Objects,
        Until, //
    },
    cno::Cno,
    ep::{
        self,
        Ep, //
    },
    evd::{
        self,
        Evd, //
    },
    lmr::Lmr,
    passive::{
        self,
        Cr,
        Csp,
        Psp,
        Rsp, //
    },
    pz::Pz,
    rmr::Rmr,
    srq::Srq, //
};
use crate::{
    dat::prelude::*,
    model::{
        allowance::Item,
        ep::Close,
        handle::{
            Handle,
            HandleKind, //
        },
        vector::Placement, //
    },
    rdma::device::Device,
    sys::{
        adapters::Listing,
        census::{
            self,
            Counted, //
        },
        net::NetRef,
        random::random_u64,
        user::FixedCharge, //
    },
};

/// An Interface Adapter.
pub(crate) struct Ia {
    base: Arc<IaBase>,
    pzs: Arc<Objects<Pz>>,
    lmrs: Arc<Objects<Lmr>>,
    rmrs: Arc<Objects<Rmr>>,
    cnos: Arc<Objects<Cno>>,
    psps: Arc<Objects<Psp>>,
    rsps: Arc<Objects<Rsp>>,
    csps: Arc<Objects<Csp>>,
    /// State of the service points. It leads to the tables of EVDs, Endpoints and requests.
    passive: Arc<passive::PassiveContext>,
    listing: Listing,
    _counted: Counted,
}

/// Translates `DAT_CLOSE_FLAGS`.
pub(crate) fn close_flag(flags: u32) -> DatResult<Close> {
    match flags {
        kdapl_bindings::KDAPL_CLOSE_ABRUPT => Ok(Close::Abrupt),
        kdapl_bindings::KDAPL_CLOSE_GRACEFUL => Ok(Close::Graceful),
        _ => Err(DatError::Invalid(Arg::Flags)),
    }
}

impl Ia {
    /// Implements `dat_ia_open`, by the [name](crate::model::adapter_name) of a device, a network
    /// device or an address, in a network namespace.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - PROVIDER_NOT_FOUND if there is no such device, port, network device or address in the
    ///   network namespace.
    /// - PRIVILEGES_VIOLATION for an unprivileged process, if a peer can reach kernel memory
    ///   through the device's driver, or keep the device from being removed.
    /// - INVALID_PARAMETER (queue length).
    /// - INVALID_ADDRESS if the port has no address, or not this one.
    /// - INSUFFICIENT_RESOURCES (memory) above a limit of the caller's user or cgroup.
    pub(crate) fn open(
        opener: Opener,
        name: &[u8],
        async_evd_qlen: i32,
        net: NetRef,
    ) -> DatResult<Arc<Self>> {
        let port = resolve::resolve(name, &net)?;
        let device = port.device.clone();
        warn_of_danger(&device);
        if !opener.may_open(&device) {
            return Err(Kind::PrivilegesViolation.into());
        }
        let handle = Handle::random(HandleKind::Ia, random_u64());
        let base = IaBase::new(handle, net, port, opener == Opener::Kernel)?;
        let qlen = evd::queue_length(async_evd_qlen, base.attr().max_evd_qlen)?;
        let this = Self::new(base, &device, qlen)?;
        if let Err(error) = this.announce(&device) {
            let _ = this.shut_down(Until::Done);
            return Err(error.into());
        }
        Ok(this)
    }

    /// Adds the adapter to the list of open ones, and to those that a removal of its device ends.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `ENODEV`.
    fn announce(self: &Arc<Self>, device: &Device) -> Result {
        self.listing.begin(self.clone())?;
        device
            .watch(self.clone())
            .inspect_err(|_| self.listing.end())
    }

    /// Charges one more object with this many kilobytes to the user of the adapter, for memory that
    /// outlives the adapter.
    ///
    /// # Errors
    ///
    /// `EAGAIN` above the user's limits.
    pub(crate) fn hold_object(&self, kilobytes: u32) -> Result<[FixedCharge; 2]> {
        let user = self.base.user();
        Ok([
            user.hold(Item::Object, 1)?,
            user.hold(Item::ModuleMemory, kilobytes)?,
        ])
    }

    /// Creates an adapter with its tables and its asynchronous EVD.
    fn new(base: Arc<IaBase>, device: &Arc<Device>, async_qlen: u32) -> DatResult<Arc<Self>> {
        let user = base.user();
        let receivers = ep::Receivers {
            eps: Self::objects_of_posts(&base)?,
            srqs: Self::objects_of_posts(&base)?,
        };
        let receivers = Arc::new(receivers, GFP_KERNEL_ACCOUNT)?;
        let evds = Self::objects_of_posts(&base)?;
        let config = evd::Config {
            device,
            context: evd::EvdContext::new(receivers.clone(), None, user.clone())?,
            qlen: async_qlen,
            flags: evd::Flags::ASYNC,
            placement: evd::placement(Placement::ANY, device)?,
            upcalls: evd::UpcallContext::Process,
        };
        let async_evd = Evd::create(&evds, config)?;
        Self::assemble(base, receivers, &evds, async_evd).inspect_err(|_| {
            evds.close();
            let _ = evds.shutdown(Until::Done);
        })
    }

    /// Creates the table of objects that posts and dequeues name. A kernel consumer makes these
    /// calls in any context.
    fn objects_of_posts<T: Object>(base: &IaBase) -> DatResult<Arc<Objects<T>>> {
        match base.is_of_kernel {
            true => Objects::for_any_context(base.user()),
            false => Objects::new(base.user()),
        }
    }

    fn assemble(
        base: Arc<IaBase>,
        receivers: Arc<ep::Receivers>,
        evds: &Arc<Objects<Evd>>,
        async_evd: Arc<Evd>,
    ) -> DatResult<Arc<Self>> {
        let user = base.user();
        let ep_context = ep::EpContext::new(base.clone(), receivers, evds.clone(), async_evd)?;
        let this = Self {
            pzs: Objects::new(user)?,
            lmrs: Self::objects_of_posts(&base)?,
            rmrs: Objects::new(user)?,
            cnos: Objects::new(user)?,
            psps: Objects::new(user)?,
            rsps: Objects::new(user)?,
            csps: Objects::new(user)?,
            passive: passive::PassiveContext::new(ep_context, Objects::new(user)?)?,
            base,
            listing: Listing::none(),
            _counted: Counted::new(census::Kind::Ia),
        };
        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Implements `dat_ia_close`.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_STATE for a graceful close if objects other than the asynchronous EVD and the
    ///   reserved LMR are left.
    /// - INVALID_STATE if the caller is in an upcall of one of the adapter's EVDs, since the close
    ///   would wait for its return.
    /// - INTERRUPTED_CALL if the caller was killed. The adapter has to be closed again.
    pub(crate) fn close(self: &Arc<Self>, close: Close, until: Until) -> DatResult {
        // The asynchronous EVD, and the reserved LMR.
        let own = 1 + u32::from(self.base.reserved_lmr() != 0);
        let mut is_in_use = close == Close::Graceful && self.len() > own;
        self.evds()
            .for_each(|evd| is_in_use |= evd.is_called_by_me());
        if is_in_use {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateIaInUse,
            ));
        }
        self.shut_down(until)?;
        self.listing.end();
        self.passive.ep_context.stop_watch();
        if let Some(link) = self.base.unlink() {
            link.device.unwatch(&**self);
        }
        Ok(())
    }

    /// Returns the handle of the adapter.
    pub(crate) fn handle(&self) -> u64 {
        self.base.handle()
    }

    /// Returns the attributes of the adapter.
    pub(crate) fn attr(&self) -> &IaAttr {
        self.base.attr()
    }

    /// Returns the handle of the asynchronous EVD.
    pub(crate) fn async_evd_handle(&self) -> u64 {
        self.passive.ep_context.async_evd.handle()
    }
}
