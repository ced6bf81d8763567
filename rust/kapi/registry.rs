// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Registry of the Interface Adapters (IAs) that kernel consumers have open.

use super::{
    export::raw_handle,
    waits::{
        WaitInProgress,
        Waits, //
    },
};
use crate::{
    dat::{
        base::Until,
        ia::{
            Ia,
            Tabled, //
        },
        prelude::*, //
    },
    model::{
        ep::Close,
        handle::{
            Handle,
            HandleKind,
            KernelHandle,
            MAX_ADAPTERS, //
        },
    },
    sys::rcu::RcuTable,
};
use core::cell::UnsafeCell;
use kernel::{
    ffi::c_void,
    new_mutex,
    sync::{
        rcu::{
            self,
            Guard, //
        },
        Mutex, //
    },
};

/// Number of IAs that kernel consumers can have open at a time.
const SLOTS: u32 = 256;

/// Slot for one open IA.
///
/// `number` changes each time an IA is closed, so that a stale handle of the closed IA does not
/// resolve to the next IA in the slot.
struct AdapterSlot {
    number: u32,
    open: Option<OpenAdapter>,
}

/// An open IA, and the threads that wait on its objects.
struct OpenAdapter {
    ia: Arc<Ia>,
    waits: Arc<Waits>,
}

/// Slots of all adapters.
///
/// Each slot has its own lock, so that consumers of different IAs do not contend. An object's
/// handle is resolved in the IA's table while the slot is locked. A call on an object therefore
/// needs no reference to its IA.
type AdapterSlots = KVec<Pin<KBox<Mutex<AdapterSlot>>>>;

/// Open adapters.
struct OpenAdapters {
    slots: AdapterSlots,
    /// The same adapters by slot, for lookups in any context.
    lookups: RcuTable<Ia>,
}

/// Open adapters, from module load to module unload.
struct AdapterTable(UnsafeCell<Option<OpenAdapters>>);

// SAFETY: Only `ConsumerApi` writes to it, while there are no readers; see `AdapterTable::get`.
unsafe impl Sync for AdapterTable {}

static ADAPTERS: AdapterTable = AdapterTable(UnsafeCell::new(None));

impl AdapterTable {
    fn get(&self) -> Option<&OpenAdapters> {
        // SAFETY: The cell is written twice: at module load, before the kernel resolves another
        // module's references to the exported symbols, and at module unload, when no module that
        // refers to them is left. Upcalls read it too, but only those of an open adapter, which its
        // consumer closes before it is unloaded. Hence no write happens during a shared borrow.
        unsafe { &*self.0.get() }.as_ref()
    }

    fn slots(&self) -> &[Pin<KBox<Mutex<AdapterSlot>>>] {
        self.get().map_or(&[], |adapters| &adapters.slots)
    }

    /// Returns the slot of the adapter with this number.
    fn slot(&self, number: u32) -> Option<&Mutex<AdapterSlot>> {
        let index = usize::try_from(slot_of(number)).ok()?;
        self.slots().get(index).map(|slot| &**slot)
    }
}

/// Reference to an open IA, together with its number in the registry.
#[derive(Clone)]
pub(super) struct Adapter {
    number: u32,
    pub(super) ia: Arc<Ia>,
}

/// Handle that no object has.
const NO_OBJECT: u64 = u64::MAX;

fn invalid(subtype: Subtype) -> DatError {
    DatError::new(Kind::InvalidHandle, subtype)
}

impl Adapter {
    /// Opens an IA with `open` and enters it in a free slot. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// Those of `open`; INSUFFICIENT_RESOURCES if all slots are taken.
    pub(super) fn open(open: impl FnOnce() -> DatResult<Arc<Ia>>) -> DatResult<Self> {
        let waits = Waits::new()?;
        let ia = open()?;
        let number = ADAPTERS.slots().iter().find_map(|slot| {
            let mut slot = slot.lock();
            if slot.open.is_some() {
                return None;
            }
            // With the slot locked, so that no close of an invented handle comes in between.
            Self::begin_lookups(slot.number, &ia).ok()?;
            slot.open = Some(OpenAdapter {
                ia: ia.clone(),
                waits: waits.clone(),
            });
            Some(slot.number)
        });
        match number {
            Some(number) => Ok(Self { number, ia }),
            None => {
                ia.close(Close::Abrupt, Until::Done)?;
                Err(DatError::memory())
            }
        }
    }

    /// Lets lookups in any context find an adapter. Called with its slot locked.
    fn begin_lookups(number: u32, ia: &Arc<Ia>) -> Result {
        let lookups = &ADAPTERS.get().ok_or(ENODEV)?.lookups;
        lookups.store(
            slot_of(number),
            number.into(),
            ia.clone(),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Ends the lookups of the adapter. Called with its slot locked.
    fn end_lookups(&self) {
        if let Some(adapters) = ADAPTERS.get() {
            adapters.lookups.remove(slot_of(self.number));
        }
    }

    /// Closes the IA and frees its slot. On return no thread waits on one of its objects. Context:
    /// process; sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`Ia::close`].
    pub(super) fn close(&self, close: Close) -> DatResult {
        self.ia.close(close, Until::Done)?;
        let closed = ADAPTERS.slot(self.number).and_then(|slot| {
            let mut slot = slot.lock();
            if slot.number != self.number {
                return None;
            }
            self.end_lookups();
            slot.number = slot.number.wrapping_add(SLOTS) % MAX_ADAPTERS;
            slot.open.take()
        });
        if let Some(closed) = closed {
            closed.waits.await_ends();
        }
        Ok(())
    }

    /// Calls `action` on the IA with this number while its slot is locked. Returns `None` if there
    /// is no such IA.
    ///
    /// `action` must be short and must not close an IA.
    fn within<R>(number: u32, action: impl FnOnce(&Arc<Ia>) -> R) -> Option<R> {
        Self::within_open(number, |open| action(&open.ia))
    }

    /// As [`Adapter::within`], with the threads that wait.
    fn within_open<R>(number: u32, action: impl FnOnce(&OpenAdapter) -> R) -> Option<R> {
        let slot = ADAPTERS.slot(number)?.lock();
        let open = slot.open.as_ref().filter(|_| slot.number == number)?;
        Some(action(open))
    }

    /// Returns the adapter with this number.
    pub(super) fn numbered(number: u32) -> Option<Self> {
        let ia = Self::within(number, Arc::clone)?;
        Some(Self { number, ia })
    }

    /// Returns the adapter that an object's handle belongs to. Context: process.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with `subtype`.
    fn named_by(handle: KernelHandle, subtype: Subtype) -> DatResult<Self> {
        Self::numbered(handle.adapter()).ok_or(invalid(subtype))
    }

    /// Resolves an IA handle.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE (IA).
    pub(super) fn of(handle: KernelHandle) -> DatResult<Self> {
        let this = Self::named_by(handle, Subtype::InvalidHandleIa)?;
        if this.handle() != handle {
            return Err(invalid(Subtype::InvalidHandleIa));
        }
        Ok(this)
    }

    /// Returns the adapter that an object's handle belongs to, and the object's handle in the
    /// adapter's table. Does not check that the object exists.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the object type's subtype.
    pub(super) fn of_object<T: Tabled>(handle: KernelHandle) -> DatResult<(Self, u64)> {
        let this = Self::named_by(handle, T::INVALID)?;
        let inner = this.inner(handle);
        Ok((this, inner))
    }

    /// Returns the adapter that an object's handle belongs to, and the object.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the object type's subtype.
    pub(super) fn find<T: Tabled>(handle: KernelHandle) -> DatResult<(Self, Arc<T>)> {
        let this = Self::named_by(handle, T::INVALID)?;
        let object = this.ia.get_for_kernel(handle)?;
        Ok((this, object))
    }

    /// Resolves an object's handle without taking a reference to its adapter.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the object type's subtype.
    // Inlined because most calls begin with it.
    #[inline(always)]
    pub(super) fn object<T: Tabled>(handle: KernelHandle) -> DatResult<Arc<T>> {
        Self::within(handle.adapter(), |ia| ia.get_for_kernel(handle))
            .unwrap_or(Err(invalid(T::INVALID)))
    }

    /// Resolves the handle of an object on which the caller waits. The close of the adapter waits
    /// for the drop of the second result.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the object type's subtype.
    pub(super) fn waited<T: Tabled>(handle: KernelHandle) -> DatResult<(Arc<T>, WaitInProgress)> {
        Self::within_open(handle.adapter(), |open| {
            Ok((open.ia.get_for_kernel(handle)?, open.waits.begin()))
        })
        .unwrap_or(Err(invalid(T::INVALID)))
    }

    /// Resolves the handle of an Endpoint, an SRQ or an LMR. The object's memory stays while the
    /// guard exists, also if the object is freed.
    ///
    /// Context: any.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the object type's subtype.
    pub(super) fn borrow<T: Tabled>(guard: &Guard, handle: KernelHandle) -> DatResult<&Arc<T>> {
        let ia = Self::borrow_ia(guard, handle.adapter());
        ia.ok_or(invalid(T::INVALID))?
            .borrow_for_kernel(guard, handle)
    }

    /// Returns the IA with this number. Its memory stays while the guard exists.
    ///
    /// Context: any.
    pub(super) fn borrow_ia(guard: &Guard, number: u32) -> Option<&Arc<Ia>> {
        let lookups = &ADAPTERS.get()?.lookups;
        lookups.get(guard, slot_of(number), |key| key == u64::from(number))
    }

    /// Checks the handle of an Endpoint, an SRQ or an LMR. Context: any.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the object type's subtype.
    pub(super) fn check<T: Tabled>(handle: KernelHandle) -> DatResult {
        Self::borrow::<T>(&rcu::read_lock(), handle).map(|_| ())
    }

    /// Returns the type of the object with this handle, if the object exists.
    pub(super) fn kind_of(handle: KernelHandle) -> Option<HandleKind> {
        let this = Self::named_by(handle, Subtype::InvalidHandleIa).ok()?;
        let exists = this.handle() == handle || this.ia.full_handle(handle).is_some();
        handle.kind().filter(|_| exists)
    }

    /// Converts a consumer's handle to a handle of this adapter's table; DAT_HANDLE_NULL becomes 0.
    /// Returns an invalid handle for an object of another adapter.
    pub(super) fn inner(&self, handle: KernelHandle) -> u64 {
        if handle == KernelHandle::NULL {
            return 0;
        }
        if handle.adapter() != self.number {
            return NO_OBJECT;
        }
        let full = self.ia.full_handle(handle);
        full.map_or(NO_OBJECT, Handle::into_raw)
    }

    /// Converts a handle of this adapter's table to the consumer's handle.
    pub(super) fn outer(&self, handle: u64) -> KernelHandle {
        KernelHandle::new(self.number, Handle::from_raw(handle))
    }

    /// Converts a handle of this adapter's table to the consumer's handle, as a C pointer.
    pub(super) fn raw(&self, handle: u64) -> *mut c_void {
        Self::raw_of(self.number, handle)
    }

    /// Converts a handle of adapter `number`'s table to the consumer's handle, as a C pointer.
    /// Context: any.
    pub(super) fn raw_of(number: u32, handle: u64) -> *mut c_void {
        raw_handle(KernelHandle::new(number, Handle::from_raw(handle)))
    }

    /// Returns the adapter's number in the registry.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the consumer's handle of the IA.
    pub(super) fn handle(&self) -> KernelHandle {
        self.outer(self.ia.handle())
    }
}

fn slot_of(number: u32) -> u32 {
    number % SLOTS
}

/// Kernel consumer API, available from module load to module unload.
pub(crate) struct ConsumerApi(());

impl ConsumerApi {
    /// Allocates the slots. Called once, by the module's `init`.
    pub(crate) fn new() -> Result<Self> {
        let mut slots = KVec::with_capacity(SLOTS as usize, GFP_KERNEL)?;
        for number in 0..SLOTS {
            let slot = AdapterSlot { number, open: None };
            let slot = KBox::pin_init(new_mutex!(slot, "Adapter::slot"), GFP_KERNEL)?;
            slots.push_within_capacity(slot).map_err(|_| ENOMEM)?;
        }
        let lookups = RcuTable::new();
        Self::replace(Some(OpenAdapters { slots, lookups }));
        Ok(Self(()))
    }

    /// Replaces the table and returns the old one.
    fn replace(adapters: Option<OpenAdapters>) -> Option<OpenAdapters> {
        // SAFETY: The module is being loaded or unloaded, so that no other module can call an
        // exported function and nothing else borrows the cell.
        core::mem::replace(unsafe { &mut *ADAPTERS.0.get() }, adapters)
    }
}

impl Drop for ConsumerApi {
    fn drop(&mut self) {
        let adapters = Self::replace(None);
        for slot in adapters.iter().flat_map(|adapters| &adapters.slots) {
            let left = slot.lock().open.take();
            if let Some(left) = left {
                pr_warn!("an adapter was left open by a module that has been unloaded\n");
                let _ = left.ia.close(Close::Abrupt, Until::Done);
            }
        }
    }
}
