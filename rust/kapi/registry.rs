// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The adapters that consumers in the kernel have open.

use super::export::raw_handle;
use crate::{
    dat::{
        ia::Ia,
        Noun,
        Until, //
    },
    model::{
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        ep::Close,
        handle::{
            Handle,
            HandleKind,
            OuterHandle,
            MAX_ADAPTERS, //
        },
    },
};
use core::cell::UnsafeCell;
use kernel::{
    ffi::c_void,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// How many there may be.
const SLOTS: u32 = 256;

/// Room for an adapter. Its number changes with each one that has the room, so that handles of one that was
/// closed are not taken for the next one's.
struct Slot {
    number: u32,
    ia: Option<Arc<Ia>>,
}

/// The room for each of them. Each has a lock of its own, so that consumers of different adapters do not
/// meet. What is found under it is found in the adapter's table under that lock as well: so a call on an
/// object counts no use of its adapter.
type Slots = KVec<Pin<KBox<Mutex<Slot>>>>;

/// The rooms, from the load of the module to its unload.
struct Rooms(UnsafeCell<Slots>);

// SAFETY: Written by `Registration` only, while nobody else looks; see `Rooms::slots`.
unsafe impl Sync for Rooms {}

static ADAPTERS: Rooms = Rooms(UnsafeCell::new(KVec::new()));

impl Rooms {
    fn slots(&self) -> &Slots {
        // SAFETY: It is written twice: when this module is loaded, before the kernel lets another one call
        // what it exports, and when it is unloaded, when there is no such module any more.
        unsafe { &*self.0.get() }
    }

    /// The room of the adapter with this number.
    fn slot(&self, number: u32) -> Option<&Mutex<Slot>> {
        self.slots().get(slot_of(number)).map(|slot| &**slot)
    }
}

/// An open adapter.
#[derive(Clone)]
pub(super) struct Adapter {
    number: u32,
    pub(super) ia: Arc<Ia>,
}

/// No object has this handle.
const NOBODY: u64 = u64::MAX;

fn invalid(subtype: Subtype) -> DatError {
    DatError::new(Kind::InvalidHandle, subtype)
}

impl Adapter {
    /// Opens one. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As `open`; INSUFFICIENT_RESOURCES if there are too many.
    pub(super) fn open(open: impl FnOnce() -> DatResult<Arc<Ia>>) -> DatResult<Self> {
        let ia = open()?;
        let number = ADAPTERS.slots().iter().find_map(|slot| {
            let mut slot = slot.lock();
            if slot.ia.is_some() {
                return None;
            }
            slot.ia = Some(ia.clone());
            Some(slot.number)
        });
        match number {
            Some(number) => Ok(Self { number, ia }),
            None => {
                Ia::close(&ia, Close::Abrupt, Until::Done)?;
                Err(DatError::memory())
            }
        }
    }

    /// Closes it. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As [`Ia::close`].
    pub(super) fn close(&self, close: Close) -> DatResult {
        Ia::close(&self.ia, close, Until::Done)?;
        let closed = ADAPTERS.slot(self.number).and_then(|slot| {
            let mut slot = slot.lock();
            if slot.number != self.number {
                return None;
            }
            slot.number = slot.number.wrapping_add(SLOTS) % MAX_ADAPTERS;
            slot.ia.take()
        });
        drop(closed);
        Ok(())
    }

    /// What `look` finds in the adapter with this number; it must not take long, nor close the adapter.
    /// `None` if there is no such adapter.
    #[inline(always)]
    fn within<R>(number: u32, look: impl FnOnce(&Arc<Ia>) -> R) -> Option<R> {
        let slot = ADAPTERS.slot(number)?.lock();
        let ia = slot.ia.as_ref().filter(|_| slot.number == number)?;
        Some(look(ia))
    }

    /// The one with this number.
    pub(super) fn numbered(number: u32) -> Option<Self> {
        let ia = Self::within(number, Arc::clone)?;
        Some(Self { number, ia })
    }

    /// The one that a handle names. Context: process.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with this subtype.
    fn named_by(handle: OuterHandle, subtype: Subtype) -> DatResult<Self> {
        Self::numbered(handle.adapter()).ok_or(invalid(subtype))
    }

    /// The one that a handle is of.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE (IA).
    pub(super) fn of(handle: OuterHandle) -> DatResult<Self> {
        let this = Self::named_by(handle, Subtype::InvalidHandleIa)?;
        if this.handle() != handle {
            return Err(invalid(Subtype::InvalidHandleIa));
        }
        Ok(this)
    }

    /// The one that an object's handle names, and the object's handle in its table; the object need not
    /// be there.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE of the object's kind.
    pub(super) fn of_object<T: Noun>(handle: OuterHandle) -> DatResult<(Self, u64)> {
        let this = Self::named_by(handle, T::INVALID)?;
        let inner = this.inner(handle);
        Ok((this, inner))
    }

    /// The one that an object's handle names, and the object.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE of the object's kind.
    pub(super) fn find<T: Noun>(handle: OuterHandle) -> DatResult<(Self, Arc<T>)> {
        let this = Self::named_by(handle, T::INVALID)?;
        let object = this.ia.objects().get_outer(handle)?;
        Ok((this, object))
    }

    /// The object of a handle, where its adapter is of no further interest.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE of the object's kind.
    // Most calls begin with it.
    #[inline(always)]
    pub(super) fn object<T: Noun>(handle: OuterHandle) -> DatResult<Arc<T>> {
        Self::within(handle.adapter(), |ia| ia.objects().get_outer(handle))
            .unwrap_or(Err(invalid(T::INVALID)))
    }

    /// What kind of object a handle is of, if there is one.
    pub(super) fn kind_of(handle: OuterHandle) -> Option<HandleKind> {
        let this = Self::named_by(handle, Subtype::InvalidHandleIa).ok()?;
        let exists = this.handle() == handle || this.ia.objects().whole(handle).is_some();
        handle.kind().filter(|_| exists)
    }

    /// The handle in this one's table of what a consumer means; 0 for DAT_HANDLE_NULL.
    pub(super) fn inner(&self, handle: OuterHandle) -> u64 {
        if handle == OuterHandle::NULL {
            return 0;
        }
        if handle.adapter() != self.number {
            return NOBODY;
        }
        self.ia
            .objects()
            .whole(handle)
            .map_or(NOBODY, Handle::into_raw)
    }

    /// What a consumer has for a handle of this one's table.
    pub(super) fn outer(&self, handle: u64) -> OuterHandle {
        OuterHandle::new(self.number, Handle::from_raw(handle))
    }

    /// The same, as C takes it.
    pub(super) fn raw(&self, handle: u64) -> *mut c_void {
        Self::raw_of(self.number, handle)
    }

    /// The same, of the adapter with this number. Context: any.
    pub(super) fn raw_of(number: u32, handle: u64) -> *mut c_void {
        raw_handle(OuterHandle::new(number, Handle::from_raw(handle)))
    }

    /// Its number.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Its own handle.
    pub(super) fn handle(&self) -> OuterHandle {
        self.outer(self.ia.handle())
    }
}

fn slot_of(number: u32) -> usize {
    // Fewer than the type can tell.
    (number % SLOTS) as usize
}

/// The front, from the load of the module to its unload.
pub(crate) struct Registration(());

impl Registration {
    /// Makes room. Made once, by the module's `init`.
    pub(crate) fn new() -> Result<Self> {
        let mut slots = KVec::with_capacity(SLOTS as usize, GFP_KERNEL)?;
        for number in 0..SLOTS {
            let slot = Slot { number, ia: None };
            let slot = KBox::pin_init(new_mutex!(slot, "Adapter::slot"), GFP_KERNEL)?;
            slots.push_within_capacity(slot).map_err(|_| ENOMEM)?;
        }
        Self::replace(slots);
        Ok(Self(()))
    }

    /// Puts others in the place of the rooms.
    fn replace(slots: Slots) -> Slots {
        // SAFETY: The module is being loaded or unloaded: nobody else looks.
        core::mem::replace(unsafe { &mut *ADAPTERS.0.get() }, slots)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        for slot in Self::replace(KVec::new()) {
            let left = slot.lock().ia.take();
            if let Some(ia) = left {
                pr_warn!("an adapter was left open by a module that is gone\n");
                let _ = Ia::close(&ia, Close::Abrupt, Until::Done);
            }
        }
    }
}
