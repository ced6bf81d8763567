// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RDMA devices that come and go.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    addr::SockAddr,
    cm::Lingering,
    driver::Warned, //
};
use crate::{
    model::retry::{
        Bounds,
        LONGER_THAN_RNR, //
    },
    sys::net::NetRef, //
};
use core::{
    any::Any,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Completion,
        Mutex, //
    },
};

/// Bytes of a device's or a network device's name, with the NUL.
pub(crate) const NAME_LEN: usize = bindings::KDAPL_NAME_MAX as usize;

/// The port that an Interface Adapter uses; every device has one, counted from 1.
pub(crate) const PORT: u32 = 1;

/// The longest completion queue. Drivers keep an array beside theirs that comes from `kmalloc()`:
/// bnxt_re 72 bytes for each entry, cxgb4 128. A request for more than 4 MiB is a bug to the kernel.
const MAX_CQE: u32 = 32_768;

/// Who wants to know that a device goes away.
pub(crate) trait Watcher: Send + Sync {
    /// Drop every wrapper that stands on the device; it is destroyed once that is done.
    ///
    /// Context: process; sleeps. Called once.
    fn removed(self: Arc<Self>);
}

/// How a device speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// InfiniBand.
    Ib,
    /// RDMA over converged Ethernet.
    Roce,
    /// RDMA over TCP.
    Iwarp,
}

/// An RDMA device.
///
/// # Invariants
///
/// `raw` is registered with `ib_core` as long as this exists: [`Device::remove`] waits for that.
#[pin_data(PinnedDrop)]
pub(crate) struct Device {
    raw: NonNull<bindings::ib_device>,
    /// Who is to be told; `None` once they have been.
    #[pin]
    watchers: Mutex<Option<KVVec<Arc<dyn Watcher>>>>,
    /// What the layer above keeps with the device; see [`Device::annex`].
    #[pin]
    annex: Mutex<Option<KBox<dyn Any + Send>>>,
    /// Ids whose peers have not answered a disconnect yet.
    lingering: Arc<Lingering>,
    warned: Warned,
    gone: Arc<Gone>,
}

/// Completed when the last reference to a [`Device`] is dropped.
#[pin_data]
pub(super) struct Gone {
    #[pin]
    completion: Completion,
}

// SAFETY: An `ib_device` may be used from any thread; what is mutable here is behind a lock.
unsafe impl Send for Device {}
// SAFETY: As above.
unsafe impl Sync for Device {}

impl Device {
    /// Wraps a device that `ib_core` has just announced.
    ///
    /// # Safety
    ///
    /// `raw` is registered, and stays so until [`Device::remove`] has returned.
    pub(super) unsafe fn new(raw: NonNull<bindings::ib_device>) -> Result<Arc<Self>> {
        let gone = Arc::pin_init(
            pin_init!(Gone { completion <- Completion::new() }),
            GFP_KERNEL,
        )?;
        Arc::pin_init(
            // INVARIANT: The caller vouches for it.
            try_pin_init!(Self {
                raw,
                watchers <- new_mutex!(Some(KVVec::new()), "Device::watchers"),
                annex <- new_mutex!(None, "Device::annex"),
                lingering: Lingering::new()?,
                warned: Warned::none(),
                gone,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Makes everybody let go of the device, and waits until they have.
    ///
    /// Context: process; sleeps.
    pub(super) fn remove(this: Arc<Self>) {
        let gone = this.gone.clone();
        let watchers = this.watchers.lock().take();
        for watcher in watchers.into_iter().flatten() {
            watcher.removed();
        }
        Lingering::close(&this.lingering);
        drop(this);
        gone.completion.wait_for_completion();
    }

    /// The retries that a queue pair may have over a path with this local ACK time-out, encoded.
    ///
    /// Soft-RoCE retries for ever on a count of 7. And it counts a retry whenever the time-out ends,
    /// also while a receiver has asked it to wait: for up to 655 ms.
    pub(super) fn retry_bounds(&self, path: u8) -> Bounds {
        // SAFETY: By the invariant the device is registered; its operations do not change.
        let driver = unsafe { (*self.raw.as_ptr()).ops.driver_id };
        if driver == bindings::rdma_driver_id_RDMA_DRIVER_RXE {
            Bounds {
                shortest: path.max(LONGER_THAN_RNR),
                most: 6,
            }
        } else {
            Bounds {
                shortest: path,
                most: 7,
            }
        }
    }

    /// Asks to be told when the device goes.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it is going already, `ENOMEM`.
    pub(crate) fn watch(&self, watcher: Arc<dyn Watcher>) -> Result {
        let mut guard = self.watchers.lock();
        let watchers = (*guard).as_mut().ok_or(ENODEV)?;
        Ok(watchers.push(watcher, GFP_KERNEL)?)
    }

    /// The opposite of [`Device::watch`].
    ///
    /// Nothing happens if the device is going already: then its removal drops the reference.
    pub(crate) fn unwatch(&self, watcher: &dyn Watcher) {
        let address = core::ptr::from_ref(watcher).cast::<()>();
        let found = {
            let mut guard = self.watchers.lock();
            let Some(watchers) = (*guard).as_mut() else {
                return;
            };
            let position = watchers
                .iter()
                .position(|other| core::ptr::eq(Arc::as_ptr(other).cast::<()>(), address));
            position.and_then(|position| watchers.remove(position).ok())
        };
        // Outside the lock: it may be the last reference.
        drop(found);
    }

    /// Runs `action` on what the layer above keeps with the device, under a lock of its own. There is
    /// one such value for each device, made when it is first asked for.
    ///
    /// What `action` takes out of it is dropped after the lock, by the caller.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` if it is kept as another type.
    pub(crate) fn annex<T: Any + Send + Default, R>(
        &self,
        action: impl FnOnce(&mut T) -> R,
    ) -> Result<R> {
        let mut annex = self.annex.lock();
        if annex.is_none() {
            let new: KBox<dyn Any + Send> = KBox::new(T::default(), GFP_KERNEL)?;
            *annex = Some(new);
        }
        let kept = (*annex).as_mut().ok_or(EINVAL)?;
        Ok(action(kept.downcast_mut::<T>().ok_or(EINVAL)?))
    }

    /// Where ids stay until the peer has answered.
    pub(super) fn lingering(&self) -> &Arc<Lingering> {
        &self.lingering
    }

    /// Which warnings the log has for it.
    pub(super) fn warned(&self) -> &Warned {
        &self.warned
    }

    /// The C pointer, valid as long as `self`.
    pub(super) fn as_ptr(&self) -> *mut bindings::ib_device {
        self.raw.as_ptr()
    }

    /// The attributes that the driver reported.
    fn raw_attrs(&self) -> &bindings::ib_device_attr {
        // SAFETY: By the invariant the device is alive; its attributes do not change while it is.
        unsafe { &(*self.raw.as_ptr()).attrs }
    }

    /// The device's name.
    pub(crate) fn name(&self) -> [u8; NAME_LEN] {
        let mut name = [0; NAME_LEN];
        // SAFETY: The device is alive. The array is part of it; a rename may be seen half done, but
        // its last byte is always NUL.
        let source = unsafe { &(*self.as_ptr()).name };
        for (to, from) in name.iter_mut().zip(source).take(NAME_LEN - 1) {
            if *from == 0 {
                break;
            }
            *to = *from;
        }
        name
    }

    /// Name and address of its network device; `None` if it has none in this namespace.
    pub(crate) fn netdev(&self, net: &NetRef) -> Option<([u8; NAME_LEN], SockAddr)> {
        let mut name = [0; NAME_LEN];
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        // SAFETY: Device and namespace are alive; the buffers are ours, and as large as said.
        let found = unsafe {
            bindings::kdapl_helper_device_netdev(
                self.as_ptr(),
                PORT,
                net.as_ptr(),
                name.as_mut_ptr().cast(),
                NAME_LEN,
                &raw mut storage,
            )
        };
        // SAFETY: `storage` is initialised, by us or by the helper.
        found.then(|| (name, unsafe { SockAddr::from_storage(&raw const storage) }))
    }

    /// Reports in the kernel's log that another program has a port that is kDAPL's.
    pub(crate) fn warn_port_taken(&self, port: u16) {
        // SAFETY: The device is alive.
        unsafe { bindings::kdapl_helper_warn_port_taken(self.as_ptr(), port) };
    }

    /// Whether processes in this namespace may use the device.
    pub(crate) fn is_visible(&self, net: &NetRef) -> bool {
        // SAFETY: Both pointers are valid.
        unsafe { bindings::rdma_dev_access_netns(self.as_ptr(), net.as_ptr()) }
    }

    /// How the device speaks.
    pub(crate) fn transport(&self) -> Transport {
        // SAFETY: The device is alive, and every device has this port.
        match unsafe { bindings::kdapl_helper_device_transport(self.as_ptr(), PORT) } {
            bindings::KDAPL_TRANSPORT_IWARP => Transport::Iwarp,
            bindings::KDAPL_TRANSPORT_ROCE => Transport::Roce,
            _ => Transport::Ib,
        }
    }

    /// The GUID of the node, in host byte order.
    pub(crate) fn guid(&self) -> u64 {
        // SAFETY: The device is alive.
        unsafe { bindings::kdapl_helper_device_guid(self.as_ptr()) }
    }

    /// What the port says of itself.
    fn port(&self) -> Option<bindings::ib_port_attr> {
        let mut attr = bindings::ib_port_attr::default();
        // SAFETY: The device is alive, and `attr` is ours.
        let ret = unsafe { bindings::ib_query_port(self.as_ptr(), PORT, &raw mut attr) };
        (ret == 0).then_some(attr)
    }

    /// Whether the port is up.
    pub(crate) fn is_port_active(&self) -> bool {
        self.port()
            .is_some_and(|attr| attr.state == bindings::ib_port_state_IB_PORT_ACTIVE)
    }

    /// The longest message, in bytes.
    pub(crate) fn max_message_size(&self) -> u32 {
        self.port().map_or(0, |attr| attr.max_msg_sz)
    }

    /// The limits of the device.
    pub(crate) fn limits(&self) -> Limits {
        let attrs = self.raw_attrs();
        Limits {
            max_mr_size: attrs.max_mr_size,
            fw_version: attrs.fw_ver,
            vendor_id: attrs.vendor_id,
            hw_version: attrs.hw_ver,
            max_qp: limit(attrs.max_qp),
            max_qp_wr: limit(attrs.max_qp_wr),
            max_send_sge: limit(attrs.max_send_sge),
            max_recv_sge: limit(attrs.max_recv_sge),
            max_sge_rd: limit(attrs.max_sge_rd),
            max_cq: limit(attrs.max_cq),
            max_cqe: limit(attrs.max_cqe).min(MAX_CQE),
            max_mr: limit(attrs.max_mr),
            max_pd: limit(attrs.max_pd),
            max_qp_rd_atom: limit(attrs.max_qp_rd_atom),
            max_qp_init_rd_atom: limit(attrs.max_qp_init_rd_atom),
            has_atomics: attrs.atomic_cap != bindings::ib_atomic_cap_IB_ATOMIC_NONE,
        }
    }

    /// How many completion vectors there are: interrupts that a completion queue may notify by.
    pub(crate) fn completion_vectors(&self) -> u32 {
        // SAFETY: The device is alive; the number does not change while it is.
        limit(unsafe { (*self.as_ptr()).num_comp_vectors }).max(1)
    }
}

/// A limit as an unsigned number; some of them are signed in some kernels.
fn limit(value: impl TryInto<u32>) -> u32 {
    value.try_into().unwrap_or(0)
}

/// What a device can do; the names are those of `struct ib_device_attr`.
pub(crate) struct Limits {
    pub(crate) max_mr_size: u64,
    pub(crate) fw_version: u64,
    pub(crate) vendor_id: u32,
    pub(crate) hw_version: u32,
    pub(crate) max_qp: u32,
    pub(crate) max_qp_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
    pub(crate) max_sge_rd: u32,
    pub(crate) max_cq: u32,
    pub(crate) max_cqe: u32,
    pub(crate) max_mr: u32,
    pub(crate) max_pd: u32,
    pub(crate) max_qp_rd_atom: u32,
    pub(crate) max_qp_init_rd_atom: u32,
    /// `atomic_cap`: whether there are atomic operations, be it among themselves only.
    pub(crate) has_atomics: bool,
}

#[pinned_drop]
impl PinnedDrop for Device {
    fn drop(self: Pin<&mut Self>) {
        self.gone.completion.complete_all();
    }
}
