// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the objects of an Interface Adapter share: its device, attributes, network namespace and
//! payer.

use super::attr::Attr;
use crate::{
    dat::prelude::*,
    model::{
        allowance::Item,
        handle::Handle, //
    },
    rdma::{
        addr::SockAddr,
        charge::{
            Charge,
            Resource, //
        },
        device::{
            Device,
            NAME_LEN, //
        },
    },
    sys::{
        memcg::Payer,
        net::NetRef,
        thread::Party,
        user::{
            Hold,
            User, //
        },
    },
};
use kernel::{
    new_mutex,
    sync::Mutex,
    task::Kuid, //
};

/// An Interface Adapter's reference to its device, charged to the rdma cgroup as one handle.
pub(in crate::dat) struct Link {
    pub(in crate::dat) device: Arc<Device>,
    _charge: Charge,
}

/// The base of an Interface Adapter.
#[pin_data]
pub(crate) struct IaBase {
    handle: Handle,
    attr: Attr,
    net: NetRef,
    /// Credentials of the consumer, in the adapter's network namespace.
    party: Party,
    /// The memory cgroup that is charged for what peers make the adapter allocate.
    payer: Payer,
    /// The user that is charged for the adapter's objects.
    user: User,
    /// Charges the user for the adapter itself.
    _object: Hold,
    /// `None` once the adapter is closed, or once the device is removed.
    #[pin]
    link: Mutex<Option<Link>>,
}

impl IaBase {
    /// Creates the base of an adapter of the calling process on a device, at the address of a
    /// network device of it.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES without memory, or above a limit of the caller's user or cgroup.
    pub(in crate::dat) fn new(
        handle: Handle,
        device: &Arc<Device>,
        net: NetRef,
        netdev: [u8; NAME_LEN],
        address: SockAddr,
    ) -> DatResult<Arc<Self>> {
        let link = Link {
            device: device.clone(),
            _charge: Charge::new(device, Resource::Handle)?,
        };
        let user = User::current()?;
        let object = user.hold(Item::Object, 1)?;
        Ok(Arc::pin_init(
            pin_init!(Self {
                handle,
                attr: Attr::new(device, netdev, address),
                party: Party::current_in(net.clone()),
                net,
                payer: Payer::current(),
                user,
                _object: object,
                link <- new_mutex!(Some(link), "IaBase::link"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Handle of the Interface Adapter.
    pub(crate) fn handle(&self) -> u64 {
        self.handle.into_raw()
    }

    /// Attributes of the Interface Adapter.
    pub(crate) fn attr(&self) -> &Attr {
        &self.attr
    }

    /// The memory cgroup that is charged for what peers make the adapter allocate.
    pub(in crate::dat) fn payer(&self) -> &Payer {
        &self.payer
    }

    /// The network namespace in which the adapter was opened.
    pub(in crate::dat) fn net(&self) -> &NetRef {
        &self.net
    }

    /// Credentials of the consumer, in the adapter's network namespace.
    pub(in crate::dat) fn party(&self) -> &Party {
        &self.party
    }

    /// The user that is charged for the adapter's objects.
    pub(in crate::dat) fn user(&self) -> &User {
        &self.user
    }

    /// Whether the consumer may hand requests to the consumer of `other`, which is in the same
    /// network namespace: both are the same user, or the caller administers the namespace.
    ///
    /// Context: process.
    pub(in crate::dat) fn may_hand_to(&self, other: &Self) -> bool {
        self.owner() == other.owner() || self.net.may_administer()
    }

    /// The user who opened the adapter.
    fn owner(&self) -> Kuid {
        self.party.user()
    }

    /// The device.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (device) once the device is removed.
    pub(in crate::dat) fn device(&self) -> DatResult<Arc<Device>> {
        let link = self.link.lock();
        let device = link.as_ref().map(|link| link.device.clone());
        device.ok_or(DatError::device())
    }

    /// Takes the reference to the device. The first caller gets it, and drops it without locks.
    pub(in crate::dat) fn unlink(&self) -> Option<Link> {
        self.link.lock().take()
    }
}
