// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RDMA devices, which may be removed at any time.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    cm::LingeringIds,
    driver::WarnedOnce, //
};
use crate::{
    model::retry::{
        RetryLimits,
        ENDLESS,
        LONGER_THAN_RNR, //
    },
    sys::{
        kvvec,
        net::NetRef, //
    },
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

/// Size of the name of a device or a network device in bytes, with the NUL.
pub(crate) const NAME_LEN: usize = bindings::KDAPL_NAME_MAX as usize;

/// Upper limit for the length of a completion queue.
///
/// Drivers allocate an array beside the queue with `kmalloc()`: bnxt_re 72 bytes for each entry,
/// cxgb4 128. The kernel warns of a request above 4 MiB as of a bug.
const MAX_CQE: u32 = 32_768;

/// Receiver of the notification that a device is being removed.
pub(crate) trait Watcher: Send + Sync {
    /// Drops every wrapper that depends on the device. The removal waits for that.
    ///
    /// Context: process; sleeps. Called once.
    fn removed(self: Arc<Self>);
}

/// Transport protocol of a device.
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
/// `raw` is registered with `ib_core` as long as this value exists: [`Device::remove`] waits for
/// its drop.
#[pin_data(PinnedDrop)]
pub(crate) struct Device {
    raw: NonNull<bindings::ib_device>,
    /// Watchers to notify. `None` once they have been notified.
    #[pin]
    watchers: Mutex<Option<KVVec<Arc<dyn Watcher>>>>,
    /// Data that the layer above attaches to the device: see [`Device::annex`].
    #[pin]
    annex: Mutex<Option<KBox<dyn Any + Send>>>,
    /// IDs whose destruction is deferred, for example until the peer answers a disconnect.
    lingering: Arc<LingeringIds>,
    warned: WarnedOnce,
    gone: Arc<Released>,
}

/// Completion of the drop of the last reference to a [`Device`].
#[pin_data]
pub(super) struct Released {
    #[pin]
    completion: Completion,
}

// SAFETY: An `ib_device` may be used from any thread. The mutable fields have locks.
unsafe impl Send for Device {}
// SAFETY: As above.
unsafe impl Sync for Device {}

impl Device {
    /// Wraps a device that `ib_core` has just added.
    ///
    /// # Safety
    ///
    /// `raw` is registered, and stays so until [`Device::remove`] has returned.
    pub(super) unsafe fn new(raw: NonNull<bindings::ib_device>) -> Result<Arc<Self>> {
        let gone = Arc::pin_init(
            pin_init!(Released { completion <- Completion::new() }),
            GFP_KERNEL,
        )?;
        Arc::pin_init(
            // INVARIANT: The caller guarantees that the device is and stays registered.
            try_pin_init!(Self {
                raw,
                watchers <- new_mutex!(Some(KVVec::new()), "Device::watchers"),
                annex <- new_mutex!(None, "Device::annex"),
                lingering: LingeringIds::new()?,
                warned: WarnedOnce::none(),
                gone,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Notifies the watchers, and waits until the last reference to the device is dropped.
    ///
    /// Context: process; sleeps.
    pub(super) fn remove(this: Arc<Self>) {
        let gone = this.gone.clone();
        let watchers = this.watchers.lock().take();
        for watcher in watchers.into_iter().flatten() {
            watcher.removed();
        }
        LingeringIds::close(&this.lingering);
        drop(this);
        gone.completion.wait_for_completion();
    }

    /// Returns the limits of retransmission for a queue pair whose path has this encoded local ACK
    /// time-out.
    pub(super) fn retry_limits(&self, path: u8) -> RetryLimits {
        if self.driver().has_endless_retries {
            RetryLimits {
                min_timeout: path.max(LONGER_THAN_RNR),
                max_retries: ENDLESS - 1,
                may_be_endless: true,
            }
        } else {
            RetryLimits {
                min_timeout: path,
                max_retries: ENDLESS,
                may_be_endless: false,
            }
        }
    }

    /// Registers a watcher, which is notified when the device is removed.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the device is being removed, `ENOMEM`.
    pub(crate) fn watch(&self, watcher: Arc<dyn Watcher>) -> Result {
        let mut guard = self.watchers.lock();
        let watchers = (*guard).as_mut().ok_or(ENODEV)?;
        Ok(kvvec::push(watchers, watcher, GFP_KERNEL)?)
    }

    /// Unregisters a watcher.
    ///
    /// Does nothing if the device is being removed: the removal then drops the reference.
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
        // Drop it after the lock is released: it may be the last reference.
        drop(found);
    }

    /// Runs `action`, under a lock, on the data that the layer above attaches to the device. There
    /// is one such value for each device, created at the first call.
    ///
    /// The caller drops the values that `action` takes out of the data, so that they are dropped
    /// after the lock is released.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` if the data has another type.
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

    /// Returns the list of IDs whose destruction is deferred.
    pub(super) fn lingering(&self) -> &Arc<LingeringIds> {
        &self.lingering
    }

    /// Returns which warnings were logged for the device.
    pub(super) fn warned(&self) -> &WarnedOnce {
        &self.warned
    }

    /// Returns the C pointer, which is valid as long as `self`.
    pub(super) fn as_ptr(&self) -> *mut bindings::ib_device {
        self.raw.as_ptr()
    }

    /// Returns `ib_core`'s index of the device, which no other device has while `self` exists.
    pub(super) fn index(&self) -> u32 {
        // SAFETY: By the invariant the device is registered; its index does not change.
        unsafe { (*self.raw.as_ptr()).index }
    }

    /// Returns the attributes that the driver reported.
    fn raw_attrs(&self) -> &bindings::ib_device_attr {
        // SAFETY: By the type invariant the device is alive. Its attributes do not change.
        unsafe { &(*self.raw.as_ptr()).attrs }
    }

    /// Returns the name of the device.
    pub(crate) fn name(&self) -> [u8; NAME_LEN] {
        let mut name = [0; NAME_LEN];
        // SAFETY: The device is alive, and the array is part of it.
        let source = unsafe { (&raw const (*self.as_ptr()).name).cast::<u8>() };
        for (index, to) in name.iter_mut().enumerate().take(NAME_LEN - 1) {
            // SAFETY: `index` is within the array. A rename may write it meanwhile, so each byte is
            // read once, as by READ_ONCE().
            match unsafe { source.add(index).read_volatile() } {
                0 => break,
                byte => *to = byte,
            }
        }
        name
    }

    /// Logs that another program uses a port of kDAPL.
    pub(crate) fn warn_port_taken(&self, port: u16) {
        // SAFETY: The device is alive.
        unsafe { bindings::kdapl_helper_warn_port_taken(self.as_ptr(), port) };
    }

    /// Returns whether processes in this namespace may use the device.
    pub(crate) fn is_visible(&self, net: &NetRef) -> bool {
        // SAFETY: Both pointers are valid.
        unsafe { bindings::rdma_dev_access_netns(self.as_ptr(), net.as_ptr()) }
    }

    /// Returns the GUID (globally unique identifier) of the node, in host byte order.
    pub(crate) fn guid(&self) -> u64 {
        // SAFETY: The device is alive.
        unsafe { bindings::kdapl_helper_device_guid(self.as_ptr()) }
    }

    /// Returns the limits of the device.
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
            max_fast_reg_pages: self
                .driver()
                .max_fast_region_pages(fast_region_pages(attrs)),
            max_srq: limit(attrs.max_srq),
            max_srq_wr: limit(attrs.max_srq_wr),
            max_srq_sge: limit(attrs.max_srq_sge),
            max_pd: limit(attrs.max_pd),
            max_qp_rd_atom: limit(attrs.max_qp_rd_atom),
            max_qp_init_rd_atom: limit(attrs.max_qp_init_rd_atom),
            has_atomics: attrs.atomic_cap != bindings::ib_atomic_cap_IB_ATOMIC_NONE,
        }
    }

    /// Returns whether the device has shared receive queues.
    pub(crate) fn has_srqs(&self) -> bool {
        // SAFETY: The device is alive.
        unsafe { bindings::kdapl_helper_has_srqs(self.as_ptr()) }
    }

    /// Returns the number of completion vectors: interrupts through which a completion queue may
    /// notify.
    pub(crate) fn completion_vectors(&self) -> u32 {
        // SAFETY: The device is alive, and the number does not change.
        limit(unsafe { (*self.as_ptr()).num_comp_vectors }).max(1)
    }
}

/// Returns the length in pages of the largest region that a work request can register, or 0 if none
/// can.
fn fast_region_pages(attrs: &bindings::ib_device_attr) -> u32 {
    let extensions = bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS;
    if attrs.device_cap_flags & extensions as u64 != 0 {
        limit(attrs.max_fast_reg_page_list_len)
    } else {
        0
    }
}

/// Converts a limit to an unsigned number. In some kernels some limits are signed.
fn limit(value: impl TryInto<u32>) -> u32 {
    value.try_into().unwrap_or(0)
}

/// Limits of a device. The names are those of `struct ib_device_attr`.
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
    /// Pages of a memory region for fast registration (`max_fast_reg_page_list_len`); 0 if the
    /// device does not support it.
    pub(crate) max_fast_reg_pages: u32,
    pub(crate) max_srq: u32,
    pub(crate) max_srq_wr: u32,
    pub(crate) max_srq_sge: u32,
    pub(crate) max_pd: u32,
    pub(crate) max_qp_rd_atom: u32,
    pub(crate) max_qp_init_rd_atom: u32,
    /// Whether the device supports atomic operations (`atomic_cap`). They may be atomic only with
    /// respect to each other.
    pub(crate) has_atomics: bool,
}

#[pinned_drop]
impl PinnedDrop for Device {
    fn drop(self: Pin<&mut Self>) {
        self.gone.completion.complete_all();
    }
}
