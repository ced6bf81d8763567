// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Which service point has which connection qualifier, over all processes.
//!
//! Each device has a directory, kept with it ([`Device::annex`]). It is asked when a request comes
//! to the shared port, and when one is handed over. A [`Claim`] is a service point's entry: first
//! only taken, so that nobody else takes the qualifier, then announced, from when on it is found.
//!
//! All that is at one address of one network namespace is a [`Site`]. It listens at the shared port
//! from its first claim of a qualifier that is no port to its last. That port is one that `rdma_cm`
//! leaves to the administrator, so that no other program has it before. The listener is made and
//! destroyed under a lock of its own, above the handler mutex of ids; the directory's lock is below
//! it, so that the listener's handler can look things up.

use super::{
    Arrival,
    Point,
    Request, //
};
use crate::{
    dat::{
        base::PrivateData,
        prelude::*, //
    },
    model::qualifier::{
        decode,
        SHARED_PORT, //
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
            Verdict, //
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

/// Requests that iWARP lets wait at a shared listener before the kernel has seen them.
const SHARED_BACKLOG: u32 = 1024;

/// The service points of a device.
#[derive(Default)]
struct Directory {
    shelves: RBTree<Key, Shelf>,
}

/// What names a site of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    net: usize,
    /// With port 0.
    address: SockAddr,
}

impl Key {
    fn new(net: &NetRef, address: SockAddr) -> Self {
        Self {
            net: net.id(),
            address: address.with_port(0),
        }
    }
}

/// The service points of a site, by qualifier; `None` while one is not announced.
struct Shelf {
    site: Arc<Site>,
    points: RBTree<u64, Option<Arc<Point>>>,
}

/// A claim that is to be entered, with the memory for it: nobody waits for memory under the lock of
/// the directory, which is taken in `rdma_cm`'s worker.
struct Entry {
    key: Key,
    conn_qual: u64,
    /// For a site where nothing is yet.
    shelf: Option<RBTreeNode<Key, Shelf>>,
    point: Option<RBTreeNode<u64, Option<Arc<Point>>>>,
}

impl Entry {
    fn new(
        device: &Arc<Device>,
        net: &NetRef,
        address: SockAddr,
        conn_qual: u64,
    ) -> DatResult<Self> {
        let key = Key::new(net, address);
        let shelf = Shelf {
            site: Site::new(device, net, key.address)?,
            points: RBTree::new(),
        };
        Ok(Self {
            key,
            conn_qual,
            shelf: Some(RBTreeNode::new(key, shelf, GFP_KERNEL_ACCOUNT)?),
            point: Some(RBTreeNode::new(conn_qual, None, GFP_KERNEL_ACCOUNT)?),
        })
    }
}

impl Directory {
    /// Enters a qualifier of a site, which is added if nothing is there yet.
    ///
    /// # Errors
    ///
    /// CONN_QUAL_IN_USE.
    fn enter(&mut self, entry: &mut Entry) -> DatResult<Arc<Site>> {
        if self.shelves.get(&entry.key).is_none() {
            if let Some(shelf) = entry.shelf.take() {
                self.shelves.insert(shelf);
            }
        }
        let shelf = self.shelves.get_mut(&entry.key);
        let shelf = shelf.ok_or(DatError::internal())?;
        if shelf.points.get(&entry.conn_qual).is_some() {
            return Err(Kind::ConnQualInUse.into());
        }
        if let Some(point) = entry.point.take() {
            shelf.points.insert(point);
        }
        Ok(shelf.site.clone())
    }

    /// Changes who is found under a qualifier; returns who was.
    fn replace(
        &mut self,
        key: &Key,
        conn_qual: u64,
        point: Option<Arc<Point>>,
    ) -> Option<Arc<Point>> {
        let entry = self.shelves.get_mut(key)?.points.get_mut(&conn_qual)?;
        core::mem::replace(entry, point)
    }

    /// Who is found under a qualifier.
    fn find(&self, key: &Key, conn_qual: u64) -> Option<Arc<Point>> {
        self.shelves.get(key)?.points.get(&conn_qual)?.clone()
    }

    /// Strikes a qualifier, and with the last one the site.
    fn strike(&mut self, key: &Key, conn_qual: u64) -> Option<Shelf> {
        if let Some(shelf) = self.shelves.get_mut(key) {
            shelf.points.remove(&conn_qual);
        }
        self.sweep(key)
    }

    /// Takes a site out that nobody is at any more.
    fn sweep(&mut self, key: &Key) -> Option<Shelf> {
        let empty = self.shelves.get(key)?.points.is_empty();
        empty.then(|| self.shelves.remove(key)).flatten()
    }
}

/// The service point with this qualifier, if it listens. Context: process; sleeps.
pub(super) fn find(
    device: &Device,
    net: &NetRef,
    address: SockAddr,
    conn_qual: u64,
) -> Option<Arc<Point>> {
    let key = Key::new(net, address);
    let found = device.annex(|directory: &mut Directory| directory.find(&key, conn_qual));
    found.ok().flatten()
}

/// A qualifier that is taken, from its making to its drop.
pub(super) struct Claim {
    site: Arc<Site>,
    conn_qual: u64,
    /// Whether the shared listener listens for it.
    shared: bool,
}

impl Claim {
    /// Takes a qualifier at an address. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// CONN_QUAL_IN_USE.
    pub(super) fn new(
        device: &Arc<Device>,
        net: &NetRef,
        address: SockAddr,
        conn_qual: u64,
    ) -> DatResult<Self> {
        let mut entry = Entry::new(device, net, address, conn_qual)?;
        let site = device.annex(|directory: &mut Directory| directory.enter(&mut entry))??;
        Ok(Self {
            site,
            conn_qual,
            shared: false,
        })
    }

    /// Sees that requests for it come to the shared port. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// CONN_QUAL_UNAVAILABLE if somebody else listens there.
    pub(super) fn listen(&mut self) -> DatResult {
        self.site.join()?;
        self.shared = true;
        Ok(())
    }

    /// From now on the service point is found. Context: process; sleeps.
    pub(super) fn announce(&self, point: &Arc<Point>) {
        let _none = self.show(Some(point.clone()));
    }

    /// Changes who is found.
    fn show(&self, point: Option<Arc<Point>>) -> Option<Arc<Point>> {
        let shown = self.site.device.annex(|directory: &mut Directory| {
            directory.replace(&self.site.key(), self.conn_qual, point)
        });
        // Never an error: the directory is there, since the claim stands in it.
        shown.ok().flatten()
    }
}

impl Drop for Claim {
    /// Context: process; sleeps, and not in a handler: waits for those of the shared listener.
    fn drop(&mut self) {
        // Dropped after the directory's lock, as all that comes out of it.
        let shown = self.show(None);
        drop(shown);
        if self.shared {
            self.site.leave();
        }
        // Last, so that the site stays the same for whoever comes while its listener is destroyed.
        let struck = self
            .site
            .device
            .annex(|directory: &mut Directory| directory.strike(&self.site.key(), self.conn_qual));
        drop(struck);
    }
}

/// An address of a device in a network namespace.
#[pin_data]
struct Site {
    device: Arc<Device>,
    net: NetRef,
    /// With port 0.
    address: SockAddr,
    #[pin]
    shared: Mutex<Shared>,
}

/// The listener at the shared port.
struct Shared {
    /// How many claims need it.
    users: u32,
    listener: Option<CmId>,
}

impl Site {
    fn new(device: &Arc<Device>, net: &NetRef, address: SockAddr) -> DatResult<Arc<Self>> {
        let shared = Shared {
            users: 0,
            listener: None,
        };
        Ok(Arc::pin_init(
            pin_init!(Self {
                device: device.clone(),
                net: net.clone(),
                address,
                shared <- new_mutex!(shared, "Site::shared"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    fn key(&self) -> Key {
        Key::new(&self.net, self.address)
    }

    /// One more needs the shared listener.
    fn join(self: &Arc<Self>) -> DatResult {
        let mut spare = None;
        loop {
            let mut shared = self.shared.lock();
            if let (None, Some(id)) = (&shared.listener, spare.take()) {
                self.listen(&id)?;
                shared.listener = Some(id);
            }
            if shared.listener.is_some() {
                shared.users = shared.users.saturating_add(1);
                return Ok(());
            }
            drop(shared);
            // Made without the lock: its memory is the caller's, who may have to wait for it.
            spare = Some(CmId::unheard(self.device.clone(), &self.net)?);
        }
    }

    /// One needs it no more.
    fn leave(&self) {
        let mut shared = self.shared.lock();
        shared.users = shared.users.saturating_sub(1);
        if shared.users == 0 {
            // Destroyed under the lock: who comes next needs the port.
            shared.listener = None;
        }
    }

    /// Makes an id the shared listener.
    ///
    /// # Errors
    ///
    /// CONN_QUAL_UNAVAILABLE if another program listens there, which the kernel's log reports.
    fn listen(self: &Arc<Self>, id: &CmId) -> DatResult {
        let address = self.address.with_port(SHARED_PORT);
        // The port is privileged, so that no ordinary user takes it first.
        let listening = as_kernel(|| -> DatResult {
            id.bind_listener(address)?;
            id.set_handler(&id.lock(), self.clone());
            Ok(id.listen(SHARED_BACKLOG)?)
        });
        listening.map_err(|error| match error.kind {
            // It is not the consumer's qualifier that is taken.
            Kind::ConnQualInUse => {
                self.device.warn_port_taken(SHARED_PORT);
                Kind::ConnQualUnavailable.into()
            }
            _ => error,
        })
    }

    /// The service point that a request is for, and the consumer's data.
    fn addressee(&self, data: &[u8]) -> Option<(Arc<Point>, PrivateData)> {
        let (conn_qual, data) = decode(data)?;
        let point = find(&self.device, &self.net, self.address, conn_qual)?;
        Some((point, PrivateData::truncated(data)))
    }
}

impl Handler for Site {
    fn event(self: Arc<Self>, _id: &IdRef<'_>, _event: Event<'_>) {}

    fn request<'a>(self: Arc<Self>, id: NewId<'a>, data: &[u8]) -> Verdict<'a> {
        match self.addressee(data) {
            Some((point, data)) => {
                let request = Request::new(&id, point.conn_qual(), data);
                Arrival::receive(&point, id, request)
            }
            None => id.refuse(Refusal::NobodyListens),
        }
    }
}
