// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Directory of service points by connection qualifier, over all processes.
//!
//! Each device has a directory, which is stored with it ([`Device::annex`]). It is searched when a
//! request arrives on the shared port, and when one is handed off. A [`QualifierClaim`] is the
//! entry of a service point. At first it only reserves the qualifier against other claims. Once it
//! is announced, searches find it.
//!
//! A [`ListenAddress`] stands for one address in one network namespace. Qualifiers that are no
//! ports share a listener on the shared port, which exists from the first such claim of a
//! listening address to the last. `rdma_cm` leaves that port to the administrator, so no other
//! program binds it first. `ListenAddress::shared` is held while the listener is created and
//! destroyed, and is taken before the handler mutex of IDs. The directory's lock is taken after the
//! handler mutex, so that the handler of the listener can search.

use super::{
    Arrival,
    Point,
    RequestData, //
};
use crate::{
    dat::{
        base::{
            IaBase,
            PrivateData, //
        },
        prelude::*, //
    },
    model::{
        footprint::IWARP_BACKLOG,
        qualifier::{
            decode,
            SHARED_PORT, //
        },
    },
    rdma::{
        addr::SockAddr,
        cm::{
            CmId,
            Event,
            Handler,
            IdRef,
            NewId,
            Refusal,
            RequestDecision, //
        },
        device::Device, //
    },
    sys::{
        cred::as_kernel,
        net::NetRef, //
    },
};
use kernel::{
    new_mutex,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::Mutex, //
};

/// Service points of a device.
#[derive(Default)]
struct Directory {
    points: RBTree<AddressKey, AddressPoints>,
}

/// Key of a listening address of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AddressKey {
    net: usize,
    /// Address with port 0.
    address: SockAddr,
}

impl AddressKey {
    fn new(net: &NetRef, address: SockAddr) -> Self {
        Self {
            net: net.id(),
            address: address.with_port(0),
        }
    }
}

/// Service points of a listening address, by qualifier; `None` for one that is not announced.
struct AddressPoints {
    listen_address: Arc<ListenAddress>,
    points: RBTree<u64, Option<Arc<Point>>>,
}

/// A claim before it is entered, with the memory for it. The directory's lock is taken in the
/// worker of `rdma_cm`, so no memory is allocated under it.
struct NewClaim {
    key: AddressKey,
    conn_qual: u64,
    /// Node for a new listening address.
    address_points: Option<RBTreeNode<AddressKey, AddressPoints>>,
    point: Option<RBTreeNode<u64, Option<Arc<Point>>>>,
}

impl NewClaim {
    fn new(ia: &IaBase, address: SockAddr, conn_qual: u64) -> DatResult<Self> {
        let key = AddressKey::new(ia.net(), address);
        let address_points = AddressPoints {
            listen_address: ListenAddress::new(ia, key.address)?,
            points: RBTree::new(),
        };
        Ok(Self {
            key,
            conn_qual,
            address_points: Some(RBTreeNode::new(key, address_points, GFP_KERNEL_ACCOUNT)?),
            point: Some(RBTreeNode::new(conn_qual, None, GFP_KERNEL_ACCOUNT)?),
        })
    }
}

impl Directory {
    /// Enters a qualifier of a listening address. Adds the listening address if it has no entry
    /// yet.
    ///
    /// # Errors
    ///
    /// CONN_QUAL_IN_USE.
    fn enter(&mut self, entry: &mut NewClaim) -> DatResult<Arc<ListenAddress>> {
        if self.points.get(&entry.key).is_none() {
            if let Some(address_points) = entry.address_points.take() {
                self.points.insert(address_points);
            }
        }
        let address_points = self.points.get_mut(&entry.key);
        let address_points = address_points.ok_or(DatError::internal())?;
        if address_points.points.get(&entry.conn_qual).is_some() {
            return Err(Kind::ConnQualInUse.into());
        }
        if let Some(point) = entry.point.take() {
            address_points.points.insert(point);
        }
        Ok(address_points.listen_address.clone())
    }

    /// Replaces the service point that is found under a qualifier. Returns the previous one.
    fn replace(
        &mut self,
        key: &AddressKey,
        conn_qual: u64,
        point: Option<Arc<Point>>,
    ) -> Option<Arc<Point>> {
        let entry = self.points.get_mut(key)?.points.get_mut(&conn_qual)?;
        core::mem::replace(entry, point)
    }

    /// Returns the service point that is found under a qualifier.
    fn find(&self, key: &AddressKey, conn_qual: u64) -> Option<Arc<Point>> {
        self.points.get(key)?.points.get(&conn_qual)?.clone()
    }

    /// Removes a qualifier. Removes the listening address with its last qualifier.
    fn remove(&mut self, key: &AddressKey, conn_qual: u64) -> Option<AddressPoints> {
        if let Some(address_points) = self.points.get_mut(key) {
            address_points.points.remove(&conn_qual);
        }
        self.remove_if_empty(key)
    }

    /// Removes a listening address without qualifiers.
    fn remove_if_empty(&mut self, key: &AddressKey) -> Option<AddressPoints> {
        let empty = self.points.get(key)?.points.is_empty();
        empty.then(|| self.points.remove(key)).flatten()
    }
}

/// Returns the service point with this qualifier, if it listens. Context: process; sleeps.
pub(super) fn find(
    device: &Device,
    net: &NetRef,
    address: SockAddr,
    conn_qual: u64,
) -> Option<Arc<Point>> {
    let key = AddressKey::new(net, address);
    let found = device.annex(|directory: &mut Directory| directory.find(&key, conn_qual));
    found.ok().flatten()
}

/// A reserved qualifier, until the drop.
pub(super) struct QualifierClaim {
    listen_address: Arc<ListenAddress>,
    conn_qual: u64,
    /// Whether the claim needs the shared listener.
    shared: bool,
}

impl QualifierClaim {
    /// Reserves a qualifier at an address of the adapter's port. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// CONN_QUAL_IN_USE.
    pub(super) fn new(ia: &IaBase, address: SockAddr, conn_qual: u64) -> DatResult<Self> {
        let mut entry = NewClaim::new(ia, address, conn_qual)?;
        let device = ia.device()?;
        let entered = device.annex(|directory: &mut Directory| directory.enter(&mut entry))?;
        Ok(Self {
            listen_address: entered?,
            conn_qual,
            shared: false,
        })
    }

    /// Listens on the shared port for the qualifier. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// CONN_QUAL_UNAVAILABLE if another program listens there.
    pub(super) fn listen(&mut self) -> DatResult {
        self.listen_address.join()?;
        self.shared = true;
        Ok(())
    }

    /// Publishes the service point, so that searches find it. Context: process; sleeps.
    pub(super) fn announce(&self, point: &Arc<Point>) {
        let _none = self.set_point(Some(point.clone()));
    }

    /// Replaces the service point that searches find.
    fn set_point(&self, point: Option<Arc<Point>>) -> Option<Arc<Point>> {
        let shown = self
            .listen_address
            .device
            .annex(|directory: &mut Directory| {
                directory.replace(&self.listen_address.key(), self.conn_qual, point)
            });
        // This never fails: the directory exists as long as the claim.
        shown.ok().flatten()
    }
}

impl Drop for QualifierClaim {
    /// Removes the entry. Context: process; sleeps. Must not be called in a handler: waits for
    /// those of the shared listener.
    fn drop(&mut self) {
        // All values from the directory are dropped after its lock.
        let shown = self.set_point(None);
        drop(shown);
        if self.shared {
            self.listen_address.leave();
        }
        // The entry is removed last, so that claims that come while the listener is destroyed get
        // the same listening address.
        let removed = self
            .listen_address
            .device
            .annex(|directory: &mut Directory| {
                directory.remove(&self.listen_address.key(), self.conn_qual)
            });
        drop(removed);
    }
}

/// An address of a device in a network namespace.
#[pin_data]
struct ListenAddress {
    device: Arc<Device>,
    /// Port of the device.
    ib_port: u32,
    net: NetRef,
    /// Address with port 0.
    address: SockAddr,
    #[pin]
    shared: Mutex<SharedListener>,
}

/// Listener on the shared port.
struct SharedListener {
    /// Number of claims that need it.
    uses: u32,
    listener: Option<CmId>,
}

impl ListenAddress {
    fn new(ia: &IaBase, address: SockAddr) -> DatResult<Arc<Self>> {
        let device = ia.device()?;
        let shared = SharedListener {
            uses: 0,
            listener: None,
        };
        Ok(Arc::pin_init(
            pin_init!(Self {
                device,
                ib_port: ia.port(),
                net: ia.net().clone(),
                address,
                shared <- new_mutex!(shared, "ListenAddress::shared"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    fn key(&self) -> AddressKey {
        AddressKey::new(&self.net, self.address)
    }

    /// Counts a claim that needs the shared listener, and creates the listener for the first one.
    fn join(self: &Arc<Self>) -> DatResult {
        let mut spare = None;
        loop {
            let mut shared = self.shared.lock();
            if let (None, Some(id)) = (&shared.listener, spare.take()) {
                self.listen(&id)?;
                shared.listener = Some(id);
            }
            if shared.listener.is_some() {
                shared.uses = shared.uses.saturating_add(1);
                return Ok(());
            }
            drop(shared);
            // The ID is created without the lock. The caller is charged for its memory, and may
            // have to wait for it.
            spare = Some(CmId::without_handler(self.device.clone(), &self.net)?);
        }
    }

    /// Counts the end of such a claim, and destroys the listener after the last one.
    fn leave(&self) {
        let mut shared = self.shared.lock();
        shared.uses = shared.uses.saturating_sub(1);
        if shared.uses == 0 {
            // The listener is destroyed under the lock, since the next claim needs the port.
            shared.listener = None;
        }
    }

    /// Binds an ID to the shared port, and listens.
    ///
    /// # Errors
    ///
    /// CONN_QUAL_UNAVAILABLE if another program listens there. This is also written to the kernel's
    /// log.
    fn listen(self: &Arc<Self>, id: &CmId) -> DatResult {
        let address = self.address.with_port(SHARED_PORT);
        // The port is privileged, so that no ordinary user binds it first.
        let listening = as_kernel(|| -> DatResult {
            id.bind_listener(address, self.ib_port)?;
            id.set_handler(&id.lock(), self.clone());
            Ok(id.listen(IWARP_BACKLOG)?)
        });
        listening.map_err(|error| match error.kind() {
            // The port is taken, not the consumer's qualifier.
            Kind::ConnQualInUse => {
                self.device.warn_port_taken(SHARED_PORT);
                Kind::ConnQualUnavailable.into()
            }
            _ => error,
        })
    }

    /// Returns the service point that a request is for, and the consumer's private data.
    fn find_point(&self, data: &[u8]) -> Option<(Arc<Point>, PrivateData)> {
        let (conn_qual, data) = decode(data)?;
        let point = find(&self.device, &self.net, self.address, conn_qual)?;
        Some((point, PrivateData::truncated(data)))
    }
}

impl Handler for ListenAddress {
    fn event(self: Arc<Self>, _id: &IdRef<'_>, _event: Event<'_>) {}

    fn request<'a>(self: Arc<Self>, id: NewId<'a>, data: &[u8]) -> RequestDecision<'a> {
        match self.find_point(data) {
            Some((point, data)) => {
                let request = RequestData::new(&id, point.conn_qual, data);
                Arrival::receive(&point, id, request)
            }
            None => id.refuse(Refusal::NoListener),
        }
    }
}
