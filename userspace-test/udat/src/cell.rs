// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cells: the memory that handles point to.
//!
//! `libdat2` reads the first word of each handle that a program passes, and uses it as a pointer to
//! the function table. A cell therefore keeps that word for the lifetime of the process, also while
//! it has no object. All cells are in one mapping, so that the address alone shows whether a number
//! is a handle.
//!
//! A child of `fork` has a copy of the cells, in which a thread of the parent may have held locks.
//! The first page of the mapping is one that the kernel clears in a child, so that a child detects
//! this. In a child every handle is stale, and the first call that opens an adapter makes a new
//! mapping.
#![allow(unsafe_code)]

use crate::abi::DAT_HANDLE;
use crate::object::{Noun, Object};
use crate::ret::{Result, Ret};
use libkdapl::{Subtype, Type};
use std::collections::VecDeque;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of cells of a process: as many as one open `/dev/kdapl` can have objects. Memory is
/// allocated only for the cells in use.
const CELLS: usize = 1 << 20;
/// Number of free cells that are kept before one is reused, so that a handle that is used after its
/// object was freed stays stale for a while.
const RESTING: usize = 1024;
/// First word of the mapping. The kernel clears it in a child.
const ALIVE: u32 = 1;
const PAGE: usize = 4096;

/// Memory that a handle points to.
#[repr(C, align(64))]
pub struct Cell {
    /// Address of the function table. `libdat2` reads this field and no other.
    first_word: AtomicUsize,
    /// Context from `dat_set_consumer_context`.
    context: AtomicU64,
    object: Mutex<Option<Object>>,
}

const _: () = assert!(size_of::<Cell>() == 64 && std::mem::offset_of!(Cell, first_word) == 0);

impl Cell {
    fn empty(first_word: usize) -> Self {
        let (first_word, context) = (AtomicUsize::new(first_word), AtomicU64::new(0));
        Self { first_word, context, object: Mutex::new(None) }
    }

    /// Returns the handle that points to the cell.
    pub fn handle(&'static self) -> DAT_HANDLE {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// Returns the object of the cell, if there is one.
    pub fn object(&self) -> Option<Object> {
        self.lock().clone()
    }

    /// Returns the object of the cell if it has type `T`. Every call begins with this.
    pub fn get<T: Noun>(&self) -> Option<Arc<T>> {
        self.lock().as_ref().and_then(T::of).cloned()
    }

    pub fn context(&self) -> u64 {
        self.context.load(Ordering::Relaxed)
    }

    pub fn set_context(&self, context: u64) {
        self.context.store(context, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Object>> {
        // A panic cannot leave the object half changed, since it is replaced as a whole.
        self.object.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cells of this process.
struct Cells {
    /// First page of the mapping, which the kernel clears in a child.
    alive: &'static AtomicU32,
    first: NonNull<Cell>,
    /// Number of cells that have been initialised.
    made: AtomicUsize,
    spare: Mutex<VecDeque<&'static Cell>>,
}

// SAFETY: `first` only marks the start of the cells, which are `Sync` and are never unmapped.
unsafe impl Send for Cells {}
// SAFETY: As above.
unsafe impl Sync for Cells {}

static CURRENT: AtomicPtr<Cells> = AtomicPtr::new(ptr::null_mut());

impl Cells {
    /// Returns the cells if they belong to this process and not to its parent.
    fn current() -> Option<&'static Self> {
        // SAFETY: The pointer is null or was made by `replace`. The value is never dropped.
        let cells = unsafe { CURRENT.load(Ordering::Acquire).as_ref() }?;
        (cells.alive.load(Ordering::Relaxed) == ALIVE).then_some(cells)
    }

    fn current_or_new() -> Result<&'static Self> {
        while Self::current().is_none() {
            let old = CURRENT.load(Ordering::Acquire);
            // SAFETY: As in `current`.
            if unsafe { old.as_ref() }.is_none_or(|c| c.alive.load(Ordering::Relaxed) != ALIVE) {
                Self::replace(old)?;
            }
        }
        Self::current().ok_or(Ret::of(Type::INTERNAL_ERROR))
    }

    /// Makes a new mapping in place of `old`, unless another thread has done so.
    fn replace(old: *mut Self) -> Result<()> {
        let length = PAGE + CELLS * size_of::<Cell>();
        let new = Box::into_raw(Box::new(Self::map(length)?));
        if CURRENT.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: `new` was made by `Box::into_raw` above and has not been published.
            let new = unsafe { Box::from_raw(new) };
            // SAFETY: The mapping belongs to `new`, and no cell in it was initialised.
            unsafe { libc::munmap(ptr::from_ref(new.alive).cast_mut().cast(), length) };
        }
        Ok(())
    }

    fn map(length: usize) -> Result<Self> {
        let memory = Ret::new(Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY);
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        let kind = kind | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: An anonymous mapping at an address that the kernel chooses affects no other
        // memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, kind, -1, 0) };
        let start = NonNull::new(start).filter(|start| start.as_ptr() != libc::MAP_FAILED);
        let start = start.ok_or(memory)?.cast::<u8>();
        // SAFETY: The range is the first page of the mapping made above.
        if unsafe { libc::madvise(start.as_ptr().cast(), PAGE, libc::MADV_WIPEONFORK) } != 0 {
            return Err(Ret::of(Type::INTERNAL_ERROR));
        }
        // SAFETY: The page stays mapped for the lifetime of the process. It is zeroed, aligned, and
        // used for nothing else.
        let alive = unsafe { start.cast::<AtomicU32>().as_ref() };
        alive.store(ALIVE, Ordering::Relaxed);
        // SAFETY: The offset is within the mapping.
        let first = unsafe { start.add(PAGE) }.cast();
        Ok(Self { alive, first, made: AtomicUsize::new(0), spare: Mutex::default() })
    }

    fn find(&self, handle: DAT_HANDLE) -> Option<&'static Cell> {
        let offset = (handle as usize).wrapping_sub(self.first.as_ptr() as usize);
        let index = offset / size_of::<Cell>();
        let fits = offset % size_of::<Cell>() == 0 && index < self.made.load(Ordering::Acquire);
        // SAFETY: The index is that of an initialised cell, and cells stay for the lifetime of the
        // process.
        fits.then(|| unsafe { self.first.add(index).as_ref() })
    }

    fn spare(&self) -> MutexGuard<'_, VecDeque<&'static Cell>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a cell without an object.
    fn take(&self, first_word: usize) -> Result<&'static Cell> {
        let mut spare = self.spare();
        let made = self.made.load(Ordering::Relaxed);
        if spare.len() > RESTING || made == CELLS {
            let memory = Ret::new(Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY);
            let cell = spare.pop_front().ok_or(memory)?;
            cell.first_word.store(first_word, Ordering::Relaxed);
            cell.set_context(0);
            return Ok(cell);
        }
        // SAFETY: The cell is within the mapping and after the initialised ones, so that there is
        // no reference to it. The lock keeps other threads from initialising the same cell.
        let cell = unsafe {
            self.first.add(made).write(Cell::empty(first_word));
            self.first.add(made).as_ref()
        };
        self.made.store(made + 1, Ordering::Release);
        Ok(cell)
    }
}

/// Returns the cell that a handle points to, whether or not it has an object.
pub fn find(handle: DAT_HANDLE) -> Option<&'static Cell> {
    Cells::current()?.find(handle)
}

/// Takes a cell and stores the object that `build` makes for it.
pub fn make<T>(first_word: usize, build: impl FnOnce(&'static Cell) -> (Object, T)) -> Result<T> {
    let cell = Cells::current_or_new()?.take(first_word)?;
    let (object, result) = build(cell);
    *cell.lock() = Some(object);
    Ok(result)
}

/// Removes the object of a cell. The cell can later be used for another object.
pub fn release(cell: &'static Cell) {
    let object = cell.lock().take();
    if object.is_none() {
        return;
    }
    // Cells of a mapping that belongs to the parent process are not reused.
    if let Some(cells) = Cells::current().filter(|cells| cells.find(cell.handle()).is_some()) {
        cells.spare().push_back(cell);
    }
    drop(object);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_told_from_any_other_number() {
        let table = 0x1234_5678_usize;
        let cells = Cells::current_or_new().unwrap();
        let cell = cells.take(table).unwrap();
        assert!(ptr::eq(find(cell.handle()).unwrap(), cell));
        for offset in [1, 8, 63] {
            assert!(find(cell.handle().wrapping_byte_add(offset)).is_none());
        }
        let behind = cell.handle().wrapping_byte_add(CELLS * size_of::<Cell>());
        assert!(find(behind).is_none() && find(ptr::null_mut()).is_none());
        assert!(find(ptr::from_ref(&table).cast_mut().cast()).is_none());
        // The word that `libdat2` reads.
        // SAFETY: The first word of a cell is a number.
        assert_eq!(unsafe { cell.handle().cast::<usize>().read() }, table);
    }

    #[test]
    fn in_a_child_every_handle_is_stale_and_a_new_one_can_be_had() {
        let cell = Cells::current_or_new().unwrap().take(0).unwrap();
        // SAFETY: The child calls only the code under test, and ends with `_exit`.
        match unsafe { libc::fork() } {
            0 => {
                let stale = find(cell.handle()).is_none();
                let new = Cells::current_or_new().and_then(|c| c.take(0));
                let good = stale && new.is_ok_and(|new| find(new.handle()).is_some());
                // SAFETY: Ends the process without running the parent's exit handlers.
                unsafe { libc::_exit(i32::from(!good)) };
            }
            child => {
                let mut status = -1;
                // SAFETY: `status` is valid for writes.
                unsafe { libc::waitpid(child, &mut status, 0) };
                assert_eq!(status, 0);
                assert!(find(cell.handle()).is_some());
            }
        }
    }
}
