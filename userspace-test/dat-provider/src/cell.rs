// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cells: what a handle points to.
//!
//! `libdat2` reads the first word of whatever a program passes as a handle, and takes it for the table
//! of functions. So a cell keeps that word for ever, also while it has no object. Cells lie in one
//! mapping, so that a number which is no handle is told by its address alone.
//!
//! A child of `fork` has a copy of the cells, of which some thread of its parent may have held the locks.
//! A page that the kernel empties in a child says so: there every handle is stale, and whoever opens an
//! adapter gets a mapping of his own.
#![allow(unsafe_code)]

use crate::abi::{DAT_HANDLE, DAT_PROVIDER};
use crate::object::{Noun, Object};
use crate::ret::{Result, Ret};
use libkdapl::{Subtype, Type};
use std::collections::VecDeque;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cells of a process: as many objects as one open `/dev/kdapl` can have. Only those that are used take
/// memory.
const CELLS: usize = 1 << 20;
/// So many are free before one is used again: a handle that was kept too long is stale for a while.
const RESTING: usize = 1024;
/// What the first page of the mapping begins with, but in a child.
const ALIVE: u32 = 1;
const PAGE: usize = 4096;

/// What a handle points to.
#[repr(C, align(64))]
pub struct Cell {
    /// Read by `libdat2`, which knows of nothing else here.
    provider: AtomicPtr<DAT_PROVIDER>,
    /// `dat_set_consumer_context`.
    context: AtomicU64,
    object: Mutex<Option<Object>>,
}

const _: () = assert!(size_of::<Cell>() == 64 && std::mem::offset_of!(Cell, provider) == 0);

impl Cell {
    fn empty(provider: *mut DAT_PROVIDER) -> Self {
        let (provider, context) = (AtomicPtr::new(provider), AtomicU64::new(0));
        Self { provider, context, object: Mutex::new(None) }
    }

    /// As programs know it.
    pub fn handle(&'static self) -> DAT_HANDLE {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// What it stands for at this moment.
    pub fn object(&self) -> Option<Object> {
        self.lock().clone()
    }

    /// [`object`](Self::object), if it is of that kind. Every call begins with this.
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
        // Nothing but a whole value is ever put there.
        self.object.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cells of this process.
struct Cells {
    /// The page that is emptied in a child.
    alive: &'static AtomicU32,
    first: NonNull<Cell>,
    /// So many have been made.
    made: AtomicUsize,
    spare: Mutex<VecDeque<&'static Cell>>,
}

// SAFETY: cells are shared and never go; `first` is only where they begin.
unsafe impl Send for Cells {}
// SAFETY: as above.
unsafe impl Sync for Cells {}

static CURRENT: AtomicPtr<Cells> = AtomicPtr::new(ptr::null_mut());

impl Cells {
    /// Those that this process may use.
    fn current() -> Option<&'static Self> {
        // SAFETY: it is null, or was made by `replace` and is never dropped.
        let cells = unsafe { CURRENT.load(Ordering::Acquire).as_ref() }?;
        (cells.alive.load(Ordering::Relaxed) == ALIVE).then_some(cells)
    }

    fn current_or_new() -> Result<&'static Self> {
        while Self::current().is_none() {
            let old = CURRENT.load(Ordering::Acquire);
            // SAFETY: as in `current`.
            if unsafe { old.as_ref() }.is_none_or(|c| c.alive.load(Ordering::Relaxed) != ALIVE) {
                Self::replace(old)?;
            }
        }
        Self::current().ok_or(Ret::of(Type::INTERNAL_ERROR))
    }

    /// Makes new ones in the place of `old`, unless another thread was first.
    fn replace(old: *mut Self) -> Result<()> {
        let length = PAGE + CELLS * size_of::<Cell>();
        let new = Box::into_raw(Box::new(Self::map(length)?));
        if CURRENT.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: it was made above, and nobody else has seen it.
            let new = unsafe { Box::from_raw(new) };
            // SAFETY: the mapping is its own, and no cell in it was ever made.
            unsafe { libc::munmap(ptr::from_ref(new.alive).cast_mut().cast(), length) };
        }
        Ok(())
    }

    fn map(length: usize) -> Result<Self> {
        let memory = Ret::new(Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY);
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        let kind = kind | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing else.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, kind, -1, 0) };
        let start = NonNull::new(start).filter(|start| start.as_ptr() != libc::MAP_FAILED);
        let start = start.ok_or(memory)?.cast::<u8>();
        // SAFETY: it is the first page of our own mapping.
        if unsafe { libc::madvise(start.as_ptr().cast(), PAGE, libc::MADV_WIPEONFORK) } != 0 {
            return Err(Ret::of(Type::INTERNAL_ERROR));
        }
        // SAFETY: it is mapped for ever, zeroed, aligned, and used as nothing else.
        let alive = unsafe { start.cast::<AtomicU32>().as_ref() };
        alive.store(ALIVE, Ordering::Relaxed);
        // SAFETY: it is within the mapping.
        let first = unsafe { start.add(PAGE) }.cast();
        Ok(Self { alive, first, made: AtomicUsize::new(0), spare: Mutex::default() })
    }

    fn find(&self, handle: DAT_HANDLE) -> Option<&'static Cell> {
        let offset = (handle as usize).wrapping_sub(self.first.as_ptr() as usize);
        let index = offset / size_of::<Cell>();
        let fits = offset % size_of::<Cell>() == 0 && index < self.made.load(Ordering::Acquire);
        // SAFETY: it is one of those that were made, which stay for ever.
        fits.then(|| unsafe { self.first.add(index).as_ref() })
    }

    fn spare(&self) -> MutexGuard<'_, VecDeque<&'static Cell>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cell without an object.
    fn take(&self, provider: *mut DAT_PROVIDER) -> Result<&'static Cell> {
        let mut spare = self.spare();
        let made = self.made.load(Ordering::Relaxed);
        if spare.len() > RESTING || made == CELLS {
            let memory = Ret::new(Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY);
            let cell = spare.pop_front().ok_or(memory)?;
            cell.provider.store(provider, Ordering::Relaxed);
            cell.set_context(0);
            return Ok(cell);
        }
        // SAFETY: it is within the mapping, behind those that were made: nobody knows of it yet. The
        // lock keeps others from making the same.
        let cell = unsafe {
            self.first.add(made).write(Cell::empty(provider));
            self.first.add(made).as_ref()
        };
        self.made.store(made + 1, Ordering::Release);
        Ok(cell)
    }
}

/// The cell that a handle names; whether it has an object is another question.
pub fn find(handle: DAT_HANDLE) -> Option<&'static Cell> {
    Cells::current()?.find(handle)
}

/// A new cell, for what `build` makes of it.
pub fn make<T>(
    provider: *mut DAT_PROVIDER,
    build: impl FnOnce(&'static Cell) -> (Object, T),
) -> Result<T> {
    let cell = Cells::current_or_new()?.take(provider)?;
    let (object, result) = build(cell);
    *cell.lock() = Some(object);
    Ok(result)
}

/// Takes its object from a cell, which may then stand for another one, later.
pub fn release(cell: &'static Cell) {
    let object = cell.lock().take();
    if object.is_none() {
        return;
    }
    // Of a mapping that a parent had, none is used again.
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
        let table = ptr::dangling_mut();
        let cells = Cells::current_or_new().unwrap();
        let cell = cells.take(table).unwrap();
        assert!(ptr::eq(find(cell.handle()).unwrap(), cell));
        for offset in [1, 8, 63] {
            assert!(find(cell.handle().wrapping_byte_add(offset)).is_none());
        }
        let behind = cell.handle().wrapping_byte_add(CELLS * size_of::<Cell>());
        assert!(find(behind).is_none() && find(ptr::null_mut()).is_none());
        assert!(find(ptr::from_ref(&table).cast_mut().cast()).is_none());
        // What libdat2 reads.
        // SAFETY: the first word of a cell is that.
        assert_eq!(unsafe { cell.handle().cast::<*mut DAT_PROVIDER>().read() }, table);
    }

    #[test]
    fn in_a_child_every_handle_is_stale_and_a_new_one_can_be_had() {
        let cell = Cells::current_or_new().unwrap().take(ptr::dangling_mut()).unwrap();
        // SAFETY: the child calls nothing but what is under test, and leaves by `_exit`.
        match unsafe { libc::fork() } {
            0 => {
                let stale = find(cell.handle()).is_none();
                let new = Cells::current_or_new().and_then(|c| c.take(ptr::dangling_mut()));
                let good = stale && new.is_ok_and(|new| find(new.handle()).is_some());
                // SAFETY: ends the process, and runs nothing of its parent's.
                unsafe { libc::_exit(i32::from(!good)) };
            }
            child => {
                let mut status = -1;
                // SAFETY: `status` is ours to write.
                unsafe { libc::waitpid(child, &mut status, 0) };
                assert_eq!(status, 0);
                assert!(find(cell.handle()).is_some());
            }
        }
    }
}
