// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Properties of an Interface Adapter that all its objects use: device, attributes, network
//! namespace, credentials, and the cgroup and user that are charged.

use super::attr::IaAttr;
use crate::{
    dat::prelude::*,
    model::{
        adapter_name::{
            source_address,
            Choice, //
        },
        allowance::Item,
        handle::Handle,
        stat::Owner, //
    },
    rdma::{
        addr::SockAddr,
        charge::{
            Charge,
            Resource, //
        },
        device::{
            Device,
            Transport, //
        },
        port_address::PortAddress,
    },
    sys::{
        kvvec,
        memcg::MemCgroup,
        net::NetRef,
        process::Process,
        thread::Identity,
        user::{
            FixedCharge,
            User, //
        },
        wait::now, //
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

/// Port of an Interface Adapter: a port of a device, and addresses of it.
pub(in crate::dat) struct IaPort {
    pub(in crate::dat) device: Arc<Device>,
    pub(in crate::dat) port: u32,
    /// The adapter's own address.
    pub(in crate::dat) own: PortAddress,
    pub(in crate::dat) choice: Choice,
}

/// Base of an Interface Adapter.
#[pin_data]
pub(crate) struct IaBase {
    handle: Handle,
    attr: IaAttr,
    /// The adapter's own address, which `attr` has too.
    own: PortAddress,
    choice: Choice,
    net: NetRef,
    /// Credentials of the consumer, in the adapter's network namespace.
    identity: Identity,
    /// Memory cgroup that is charged for memory that peers cause to be allocated.
    mem_cgroup: MemCgroup,
    /// User that is charged for the adapter's objects.
    user: User,
    /// Process that opened the adapter; `None` for a kernel module.
    process: Option<Process>,
    /// Time at which the adapter was opened, in nanoseconds of `CLOCK_MONOTONIC`.
    opened: i64,
    /// Charge for the adapter itself.
    _object: FixedCharge,
    /// The consumer is a kernel module. Memory of the kernel that a DTO in flight names must not be
    /// freed.
    pub(in crate::dat) is_of_kernel: bool,
    /// Handle of the reserved LMR; 0 until a kernel consumer asks for it.
    reserved_lmr: Atomic<u64>,
    /// `None` once the adapter is closed, or once the device is removed.
    #[pin]
    link: Mutex<Option<Link>>,
}

impl IaBase {
    /// Creates the base of an adapter at a port of a device. The calling process is the consumer.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (memory) without memory, or above a limit of the caller's user or
    /// cgroup.
    pub(in crate::dat) fn new(
        handle: Handle,
        net: NetRef,
        port: IaPort,
        is_of_kernel: bool,
    ) -> DatResult<Arc<Self>> {
        let IaPort {
            device,
            port,
            own,
            choice,
        } = port;
        let link = Link {
            _charge: Charge::new(&device, Resource::Handle)?,
            device: device.clone(),
        };
        let user = User::current()?;
        let object = user.hold(Item::Object, 1)?;
        let process = (!is_of_kernel).then(Process::current).transpose()?;
        Ok(Arc::pin_init(
            pin_init!(Self {
                handle,
                attr: IaAttr::new(&device, port, &own),
                own,
                choice,
                identity: Identity::current_in(net.clone()),
                net,
                mem_cgroup: MemCgroup::current(),
                user,
                process,
                opened: now(),
                _object: object,
                is_of_kernel,
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
    pub(crate) fn attr(&self) -> &IaAttr {
        &self.attr
    }

    /// Returns whether connections of the adapter use iWARP.
    pub(in crate::dat) fn is_iwarp(&self) -> bool {
        self.attr.transport == Transport::Iwarp
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

    /// Returns the port of the device.
    pub(in crate::dat) fn port(&self) -> u32 {
        self.attr.port
    }

    /// Returns the present addresses of the adapter. Includes its own address even while that is
    /// removed from the network device.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (memory); (device) after the device was removed.
    pub(in crate::dat) fn addresses(&self) -> DatResult<KVVec<PortAddress>> {
        let mut addresses = match self.choice {
            Choice::Address => KVVec::new(),
            Choice::Port | Choice::NetDevice(_) => {
                self.device()?.addresses(self.port(), &self.net)?
            }
        };
        addresses.retain(|address| self.choice.includes(address.local.ifindex));
        let own = self.own.address;
        if !addresses.iter().any(|address| address.address == own) {
            kvvec::push(&mut addresses, self.own.clone(), GFP_KERNEL_ACCOUNT)?;
        }
        Ok(addresses)
    }

    /// Checks whether the adapter's name permits an address.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_ADDRESS (unsupported) if it does not.
    /// - Errors of [`IaBase::addresses`].
    pub(in crate::dat) fn check_address(&self, address: SockAddr) -> DatResult {
        let address = address.with_port(0);
        if self.addresses()?.iter().any(|own| own.address == address) {
            return Ok(());
        }
        Err(DatError::new(
            Kind::InvalidAddress,
            Subtype::InvalidAddressUnsupported,
        ))
    }

    /// Returns the address from which a connection to `remote` leaves.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_ADDRESS (unsupported) if the adapter has no address of this family.
    /// - Errors of [`IaBase::addresses`].
    pub(in crate::dat) fn source_address(&self, remote: SockAddr) -> DatResult<SockAddr> {
        let unsupported = DatError::new(Kind::InvalidAddress, Subtype::InvalidAddressUnsupported);
        let ip = remote.ip().ok_or(unsupported)?;
        let addresses = self.addresses()?;
        let locals = addresses.iter().map(|address| address.local);
        let source = source_address(locals, ip, remote.scope()).ok_or(unsupported)?;
        addresses
            .get(source)
            .map(|address| address.address)
            .ok_or(unsupported)
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

    /// Returns the consumer, with numbers of the calling process's namespaces.
    ///
    /// Context: process.
    pub(in crate::dat) fn owner_for_reader(&self) -> Owner {
        let uid = self.identity.user_number();
        match &self.process {
            None => Owner {
                uid,
                is_kernel: true,
                ..Owner::default()
            },
            Some(process) => Owner {
                pid: process.number(),
                uid,
                name: process.name(),
                is_kernel: false,
            },
        }
    }

    /// Returns the nanoseconds since the adapter was opened.
    pub(in crate::dat) fn age_ns(&self) -> u64 {
        let age = now().wrapping_sub(self.opened);
        u64::try_from(age).unwrap_or(0)
    }

    /// Returns whether the consumer may hand requests to a service point of `other`, in the same
    /// network namespace.
    ///
    /// - A process may if both are the same user, or if it administers the namespace. A service
    ///   point of a kernel module must also ask for it (`asks`).
    /// - A kernel module may if `user` has opened `other`. Without `user` it may if `other` is one,
    ///   or a process of the user that opened the adapter. The rights of its thread do not count:
    ///   it might reach a process that has taken the qualifier of another one.
    ///
    /// Context: process.
    pub(in crate::dat) fn may_hand_to(&self, other: &Self, asks: bool, user: Option<Kuid>) -> bool {
        match (self.is_of_kernel, other.is_of_kernel) {
            (true, true) => user.is_none_or(|user| other.owner() == user),
            (true, false) => other.owner() == user.unwrap_or_else(|| self.owner()),
            (false, is_of_kernel) => {
                (asks || !is_of_kernel)
                    && (self.owner() == other.owner() || self.net.may_administer())
            }
        }
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

    /// Returns the error to report for a failed call: the removal of the device, if it was removed.
    /// Its memory and its connections are gone, too, and made the call fail.
    #[cold]
    pub(in crate::dat) fn removal_or(&self, error: DatError) -> DatError {
        self.device().map_or_else(|gone| gone, |_| error)
    }

    /// Takes the reference to the device. Only the first caller gets it, and has to drop it without
    /// locks held.
    pub(in crate::dat) fn unlink(&self) -> Option<Link> {
        self.link.lock().take()
    }
}
