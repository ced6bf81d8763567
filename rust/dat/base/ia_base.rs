// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Properties of an Interface Adapter that all its objects use: device, attributes, network
//! namespace, credentials, and the cgroup and user that are charged.

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
        memcg::MemCgroup,
        net::NetRef,
        thread::Identity,
        user::{
            FixedCharge,
            User, //
        },
    },
};
use kernel::{
    new_mutex,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Mutex, //
    },
    task::Kuid, //
};

/// An Interface Adapter's reference to its device, charged to the rdma cgroup as one handle.
pub(in crate::dat) struct Link {
    pub(in crate::dat) device: Arc<Device>,
    _charge: Charge,
}

/// Base of an Interface Adapter.
#[pin_data]
pub(crate) struct IaBase {
    handle: Handle,
    attr: Attr,
    net: NetRef,
    /// Credentials of the consumer, in the adapter's network namespace.
    identity: Identity,
    /// Memory cgroup that is charged for memory that peers cause to be allocated.
    mem_cgroup: MemCgroup,
    /// User that is charged for the adapter's objects.
    user: User,
    /// Charge for the adapter itself.
    _object: FixedCharge,
    /// Handle of the reserved LMR; 0 until a kernel consumer asks for it.
    reserved_lmr: Atomic<u64>,
    /// `None` once the adapter is closed, or once the device is removed.
    #[pin]
    link: Mutex<Option<Link>>,
}

impl IaBase {
    /// Creates the base of an adapter on a device, at the address of one of its network devices.
    /// The calling process is the consumer.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (memory) without memory, or above a limit of the caller's user or
    /// cgroup.
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
                identity: Identity::current_in(net.clone()),
                net,
                mem_cgroup: MemCgroup::current(),
                user,
                _object: object,
                reserved_lmr: Atomic::new(0),
                link <- new_mutex!(Some(link), "IaBase::link"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Returns the handle of the Interface Adapter.
    pub(crate) fn handle(&self) -> u64 {
        self.handle.into_raw()
    }

    /// Returns the attributes of the Interface Adapter.
    pub(crate) fn attr(&self) -> &Attr {
        &self.attr
    }

    /// Returns the handle of the reserved LMR; 0 if there is none.
    pub(in crate::dat) fn reserved_lmr(&self) -> u64 {
        self.reserved_lmr.load(Acquire)
    }

    /// Makes an LMR the reserved one. Returns the handle of the reserved LMR, which is another one
    /// if a concurrent call was faster.
    pub(in crate::dat) fn reserve_lmr(&self, lmr: u64) -> u64 {
        match self.reserved_lmr.cmpxchg(0, lmr, Release) {
            Ok(_) => lmr,
            Err(other) => other,
        }
    }

    /// Returns the memory cgroup that is charged for memory that peers cause to be allocated.
    pub(in crate::dat) fn mem_cgroup(&self) -> &MemCgroup {
        &self.mem_cgroup
    }

    /// Returns the network namespace in which the adapter was opened.
    pub(in crate::dat) fn net(&self) -> &NetRef {
        &self.net
    }

    /// Returns the credentials of the consumer, in the adapter's network namespace.
    pub(in crate::dat) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the user that is charged for the adapter's objects.
    pub(in crate::dat) fn user(&self) -> &User {
        &self.user
    }

    /// Checks whether the consumer may hand requests to the consumer of `other`, in the same
    /// network namespace. It may if both are the same user, or if the calling process administers
    /// the namespace.
    ///
    /// Context: process.
    pub(in crate::dat) fn may_hand_to(&self, other: &Self) -> bool {
        self.owner() == other.owner() || self.net.may_administer()
    }

    /// Returns the user that opened the adapter.
    fn owner(&self) -> Kuid {
        self.identity.user()
    }

    /// Returns the device.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (device) after the device was removed, or the adapter closed.
    pub(in crate::dat) fn device(&self) -> DatResult<Arc<Device>> {
        let link = self.link.lock();
        let device = link.as_ref().map(|link| link.device.clone());
        device.ok_or(DatError::device())
    }

    /// Takes the reference to the device. Only the first caller gets it, and has to drop it without
    /// locks held.
    pub(in crate::dat) fn unlink(&self) -> Option<Link> {
        self.link.lock().take()
    }
}
