// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Interface Adapters.
//!
//! An adapter is one consumer's view of one RDMA device. It owns the table of the consumer's
//! objects, and takes them all down when it is closed or when its device goes.

mod attr;
mod consumer;
mod end;
mod watch;

pub(crate) use self::{
    attr::Attr,
    consumer::{
        is_restricted,
        Consumer, //
    },
};
use self::{
    consumer::is_unsafe,
    end::take_down,
    watch::WATCH, //
};
use super::{
    evd::{
        self,
        Evd, //
    },
    objects::{
        Objects,
        Until, //
    },
};
use crate::{
    model::{
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        ep::Close,
        event::Event,
        handle::{
            Handle,
            HandleKind, //
        },
        vector::Placement,
    },
    rdma::{
        addr::SockAddr,
        charge::{
            Charge,
            Resource, //
        },
        client,
        device::{
            Device,
            NAME_LEN, //
        },
    },
    sys::{
        census::{
            self,
            Counted, //
        },
        memcg::Payer,
        net::NetRef,
        thread::Party,
        user::User, //
    },
};
use kernel::{
    new_delayed_work, new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    task::Kuid,
    workqueue::DelayedWork,
};

/// Connection requests that may wait on one adapter, whatever its service points allow.
const MAX_REQUESTS: i32 = 4096;

/// What an adapter holds of its device.
struct Link {
    device: Arc<Device>,
    _charge: Charge,
}

/// An Interface Adapter.
#[pin_data]
pub(crate) struct Ia {
    handle: Handle,
    attr: Attr,
    net: NetRef,
    /// Who opened it, in the network namespace of that.
    party: Party,
    /// Who pays for what peers make here.
    payer: Payer,
    objects: Arc<Objects>,
    async_evd: Arc<Evd>,
    /// `None` once closed, or once the device is gone.
    #[pin]
    device: Mutex<Option<Link>>,
    /// Connection requests that wait for an answer, over all service points.
    requests: Atomic<i32>,
    /// Connections that stand.
    connections: Atomic<i32>,
    #[pin]
    watch: DelayedWork<Ia, WATCH>,
    _counted: Counted,
}

/// The device with this name, or with this name of its network device.
fn device_named(name: &[u8], net: &NetRef) -> Option<Arc<Device>> {
    let is_named = |candidate: &[u8; NAME_LEN]| {
        let len = candidate.iter().position(|&byte| byte == 0);
        candidate.get(..len.unwrap_or(NAME_LEN)) == Some(name)
    };
    client::find(0, |device| {
        device.is_visible(net)
            && (is_named(&device.name())
                || device
                    .netdev(net)
                    .is_some_and(|(netdev, _)| is_named(&netdev)))
    })
}

/// `DAT_CLOSE_FLAGS`, for argument `argument`.
pub(crate) fn close_flag(flags: u32, argument: u8) -> DatResult<Close> {
    match flags {
        kdapl_bindings::KDAPL_CLOSE_ABRUPT => Ok(Close::Abrupt),
        kdapl_bindings::KDAPL_CLOSE_GRACEFUL => Ok(Close::Graceful),
        _ => Err(DatError::invalid_parameter(argument)),
    }
}

impl Ia {
    /// `dat_ia_open` by the name of an RDMA device or of its network device, in a network namespace.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// PROVIDER_NOT_FOUND if there is no such device in the network namespace,
    /// PRIVILEGES_VIOLATION if a peer reaches the kernel's memory through its driver and the consumer
    /// is a process that may not do so, INVALID_PARAMETER (argument 2) for the queue length,
    /// INVALID_ADDRESS if the network device has no address, INSUFFICIENT_RESOURCES (memory) above a
    /// limit of the caller's user or cgroup.
    pub(crate) fn open(
        consumer: Consumer,
        name: &[u8],
        async_evd_qlen: i32,
        net: NetRef,
    ) -> DatResult<Arc<Self>> {
        let device = device_named(name, &net).ok_or(DatError::new(
            Kind::ProviderNotFound,
            Subtype::NameNotRegistered,
        ))?;
        if is_unsafe(&device) {
            device.warn_of_peers();
        }
        if !consumer.may_open(&device) {
            return Err(Kind::PrivilegesViolation.into());
        }
        let (netdev, address) = device
            .netdev(&net)
            .unwrap_or(([0; NAME_LEN], SockAddr::default()));
        if !address.is_some() {
            return Err(DatError::new(
                Kind::InvalidAddress,
                Subtype::InvalidAddressUnsupported,
            ));
        }
        let attr = Attr::new(&device, netdev, address);
        let qlen = evd::queue_length(async_evd_qlen, attr.max_evd_qlen)?;
        let objects = Objects::new(User::current()?)?;
        let anywhere = evd::place(Placement::ANY, &device)?;
        let flags = evd::Flags::ASYNC;
        let async_evd = Evd::build(&objects, None, &device, qlen, flags, anywhere)?;
        let opened = Self::assemble(&objects, async_evd, attr, net, &device);
        if opened.is_err() {
            let _ = take_down(&objects, Until::Done);
        }
        opened
    }

    /// Puts an adapter together, and has it told when the device goes.
    fn assemble(
        objects: &Arc<Objects>,
        async_evd: Arc<Evd>,
        attr: Attr,
        net: NetRef,
        device: &Arc<Device>,
    ) -> DatResult<Arc<Self>> {
        let link = Link {
            device: device.clone(),
            _charge: Charge::new(device, Resource::Handle)?,
        };
        let place = Objects::reserve(objects, HandleKind::Ia)?;
        let handle = place.handle();
        let party = Party::current_in(net.clone());
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                attr,
                net,
                party,
                payer: Payer::current(),
                objects: objects.clone(),
                async_evd,
                device <- new_mutex!(Some(link), "Ia::device"),
                requests: Atomic::new(0),
                connections: Atomic::new(0),
                watch <- new_delayed_work!("Ia::watch"),
                _counted: Counted::new(census::Kind::Ia),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        device.watch(this.clone())?;
        // The adapter is no object of its own table.
        place.keep();
        Ok(this)
    }

    /// `dat_ia_close`.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_STATE if it is to be graceful and objects are left, but for the asynchronous EVD; or if the
    /// caller is in an upcall of one of its EVDs, for which the close would wait. INTERRUPTED_CALL if the
    /// caller was killed; then it is to be closed again.
    pub(crate) fn close(this: &Arc<Self>, close: Close, until: Until) -> DatResult {
        let mut is_in_use = close == Close::Graceful && this.objects.len() > 1;
        this.each::<Evd>(|evd| is_in_use |= evd.is_called_by_me());
        if is_in_use {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateIaInUse,
            ));
        }
        take_down(&this.objects, until)?;
        Self::stop_looking(this);
        let link = this.device.lock().take();
        if let Some(link) = link {
            link.device.unwatch(&**this);
        }
        Ok(())
    }

    /// Does something to every object of a kind.
    fn each<T: super::objects::Noun>(&self, mut action: impl FnMut(&Arc<T>)) {
        // Never an error.
        let _ = self.objects.walk(Until::Done, |_, object| action(&object));
    }

    /// Its handle.
    pub(crate) fn handle(&self) -> u64 {
        self.handle.into_raw()
    }

    /// What it can do.
    pub(crate) fn attr(&self) -> &Attr {
        &self.attr
    }

    /// Its objects.
    pub(crate) fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// Its asynchronous EVD.
    pub(super) fn async_evd(&self) -> Arc<Evd> {
        self.async_evd.clone()
    }

    /// Reports an asynchronous event. Context: any, including hard IRQ.
    pub(super) fn report(&self, event: &Event) {
        self.async_evd.report(event);
    }

    /// The handle of its asynchronous EVD.
    pub(crate) fn async_evd_handle(&self) -> u64 {
        self.async_evd.handle()
    }

    /// One more connection request waits, if there is room; undone by [`Ia::end_request`].
    pub(super) fn begin_request(&self) -> bool {
        self.requests.fetch_add(1, Relaxed) < MAX_REQUESTS
    }

    /// One connection request less.
    pub(super) fn end_request(&self) {
        self.requests.fetch_sub(1, Relaxed);
    }

    /// Who pays for what peers make here: the consumer.
    pub(super) fn payer(&self) -> &Payer {
        &self.payer
    }

    /// The namespace of who opened it.
    pub(super) fn net(&self) -> &NetRef {
        &self.net
    }

    /// Whether its consumer may hand requests to the consumer of `other`, which is in the same
    /// namespace: the same user's, or the caller administers the network. Context: process.
    pub(super) fn may_hand_to(&self, other: &Self) -> bool {
        self.owner() == other.owner() || self.net.may_administer()
    }

    /// The user who opened it.
    fn owner(&self) -> Kuid {
        self.party.user()
    }

    /// Who opened it, in whose network namespace its connections are made.
    pub(super) fn party(&self) -> &Party {
        &self.party
    }

    /// Its device.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (device) once the device is gone.
    pub(super) fn device(&self) -> DatResult<Arc<Device>> {
        let link = self.device.lock();
        let device = link.as_ref().map(|link| link.device.clone());
        device.ok_or(DatError::device())
    }
}
