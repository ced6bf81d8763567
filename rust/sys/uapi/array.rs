// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Arrays in user space. A message gives their address, their count, and the caller's element size.

use super::{
    copy_out,
    read_known, //
};
use crate::model::{
    direct_event::EventSink,
    event::{
        Event,
        Record, //
    },
};
use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    slice, //
};
use kdapl_bindings as bindings;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};
use zerocopy::Immutable;

/// The element size is a multiple of this.
const ALIGNMENT: u32 = 8;

/// An element of an array.
pub(crate) trait Element: FromBytes + IntoBytes + Immutable {
    /// The first published size in bytes. Shorter elements are refused.
    const FIRST: u32;
}

impl Element for bindings::kdapl_dto {
    const FIRST: u32 = bindings::KDAPL_DTO_SIZE_MIN;
}

impl Element for bindings::kdapl_triplet {
    const FIRST: u32 = 16;
}

// An event as an array of words, with the layout of `struct kdapl_event`.
impl Element for Record {
    const FIRST: u32 = bindings::KDAPL_EVENT_SIZE_MIN;
}
const _: () = assert!(size_of::<Record>() == size_of::<bindings::kdapl_event>());

/// An array in user space. Its address is not validated until it is accessed.
#[derive(Clone, Copy)]
pub(crate) struct Array<T> {
    address: u64,
    /// Size of an element in the caller's version, in bytes.
    size: u32,
    element: PhantomData<T>,
}

impl<T: Element> Array<T> {
    /// Describes the array at `address` with elements of `size` bytes.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `size` is less than the first published size or no multiple of 8, `E2BIG` if it
    /// exceeds `KDAPL_ELEMENT_MAX`.
    pub(crate) fn new(address: u64, size: u32) -> Result<Self> {
        check_size::<T>(size)?;
        Ok(Self {
            address,
            size,
            element: PhantomData,
        })
    }

    /// Returns the array from an element on.
    ///
    /// # Errors
    ///
    /// `EFAULT` if the address wraps.
    pub(crate) fn from(&self, index: u32) -> Result<Self> {
        let offset = u64::from(index).wrapping_mul(u64::from(self.size));
        let address = self.address.checked_add(offset).ok_or(EFAULT)?;
        Ok(Self { address, ..*self })
    }

    /// Returns the size of an element in the caller's version.
    fn stride(&self) -> usize {
        self.size as usize
    }

    /// Returns the address of an element.
    fn address(&self, index: u32) -> Result<UserPtr> {
        let address = usize::try_from(self.from(index)?.address).map_err(|_| EFAULT)?;
        Ok(UserPtr::from_addr(address))
    }

    /// Copies in an element. Fields that the caller's version lacks are zero.
    ///
    /// # Errors
    ///
    /// `E2BIG` if the part that the kernel does not know is not zero, `EFAULT`.
    pub(crate) fn read(&self, index: u32) -> Result<T> {
        let mut element = T::new_zeroed();
        read_known(self.address(index)?, self.stride(), &mut element)?;
        Ok(element)
    }

    /// Checks whether an element can be written. The element keeps its content.
    ///
    /// # Errors
    ///
    /// `EFAULT`.
    pub(crate) fn may_write(&self, index: u32) -> Result {
        if can_write(self.address(index)?, self.stride()) {
            Ok(())
        } else {
            Err(EFAULT)
        }
    }

    /// Returns the number of elements, beginning with `index`, that can be written. It is at most
    /// `count` and, except for 1, at most what fits in a page. The elements keep their content.
    pub(crate) fn may_write_some(&self, index: u32, count: u32) -> u32 {
        let most = (PAGE_SIZE as u32).checked_div(self.size).unwrap_or(0);
        let count = count.min(most);
        let size = self.stride().wrapping_mul(count as usize);
        if count > 1
            && self
                .address(index)
                .is_ok_and(|address| can_write(address, size))
        {
            return count;
        }
        self.may_write(index).map_or(0, |()| 1)
    }

    /// Copies out an element. The part that the kernel does not know is cleared.
    ///
    /// # Errors
    ///
    /// `EFAULT`.
    pub(crate) fn write(&self, index: u32, element: &T) -> Result {
        let address = self.address(index)?;
        let known = size_of::<T>().min(self.stride());
        copy_out(address, element.as_bytes().get(..known).ok_or(EINVAL)?)?;
        if self.stride() > known {
            Self::clear(address, known, self.stride())?;
        }
        Ok(())
    }

    /// Clears the bytes of an element from `known` up to `size`.
    #[inline(never)]
    fn clear(address: UserPtr, known: usize, size: usize) -> Result {
        const ZEROS: [u8; 64] = [0; 64];
        let mut from = known;
        while from < size {
            let count = size.wrapping_sub(from).min(ZEROS.len());
            let zeros = ZEROS.get(..count).ok_or(EINVAL)?;
            copy_out(address.wrapping_byte_add(from), zeros)?;
            from = from.saturating_add(count);
        }
        Ok(())
    }
}

/// Checks the size of an element in the caller's version.
///
/// # Errors
///
/// As for [`Array::new`].
pub(crate) fn check_size<T: Element>(size: u32) -> Result {
    if size < T::FIRST || size & ALIGNMENT.wrapping_sub(1) != 0 {
        return Err(EINVAL);
    }
    if size > bindings::KDAPL_ELEMENT_MAX {
        return Err(E2BIG);
    }
    Ok(())
}

/// Returns whether `size` bytes, at most a page, can be written.
fn can_write(address: UserPtr, size: usize) -> bool {
    // SAFETY: The helper accepts any user address.
    unsafe { bindings::kdapl_helper_can_write(address.as_mut_ptr(), size) }
}

/// A buffer for at most `N` events that are copied out together. It is on the stack and not
/// cleared.
///
/// # Invariants
///
/// The first `len` records are initialised.
pub(crate) struct Records<const N: usize> {
    records: [MaybeUninit<Record>; N],
    len: usize,
}

impl<const N: usize> Records<N> {
    /// Creates an empty buffer.
    pub(crate) fn new() -> Self {
        // INVARIANT: No record has to be initialised.
        Self {
            // SAFETY: An array of `MaybeUninit` needs no initialisation.
            records: unsafe { MaybeUninit::uninit().assume_init() },
            len: 0,
        }
    }

    /// Appends a record. Ignores it if there is no room.
    fn push(&mut self, record: Record) {
        if let Some(place) = self.records.get_mut(self.len) {
            // INVARIANT: This initialises one more record.
            place.write(record);
            self.len = self.len.wrapping_add(1);
        }
    }

    /// Copies the records out, to the elements from `index` on.
    ///
    /// # Errors
    ///
    /// `EFAULT`.
    pub(crate) fn write(&self, array: &Array<Record>, index: u32) -> Result {
        // SAFETY: By the type invariant the first `len` records are initialised.
        let records: &[Record] =
            unsafe { slice::from_raw_parts(self.records.as_ptr().cast(), self.len) };
        if array.stride() == size_of::<Record>() {
            return copy_out(array.address(index)?, records.as_bytes());
        }
        (index..)
            .zip(records)
            .try_for_each(|(index, record)| array.write(index, record))
    }
}

impl<const N: usize> EventSink for Records<N> {
    fn put(&mut self, evd: u64, event: &Event) {
        self.push(event.encode(evd));
    }

    fn put_record(&mut self, record: &Record) {
        self.push(*record);
    }
}

/// A buffer for an array of at most `N` elements. It is on the stack and not cleared.
pub(crate) struct ShortArray<T, const N: usize>([MaybeUninit<T>; N]);

impl<T: Element, const N: usize> ShortArray<T, N> {
    /// Creates a buffer for `N` elements.
    pub(crate) fn new() -> Self {
        // SAFETY: An array of `MaybeUninit` needs no initialisation.
        Self(unsafe { MaybeUninit::uninit().assume_init() })
    }

    /// Copies in the first `count` elements of an array.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `count` exceeds `N`, `E2BIG` as for [`Array::read`], `EFAULT`.
    pub(crate) fn read(&mut self, array: &Array<T>, count: u32) -> Result<&[T]> {
        let room = self.0.get_mut(..count as usize).ok_or(EINVAL)?;
        // One element has a size that is known at compile time, so the copy is cheaper.
        if count != 1 && array.stride() == size_of::<T>() {
            // SAFETY: The bytes are those of `room`, which is borrowed exclusively. `read_raw`
            // takes bytes that need not be initialised.
            let bytes = unsafe {
                slice::from_raw_parts_mut(room.as_mut_ptr().cast(), size_of_val::<[_]>(room))
            };
            UserSlice::new(array.address(0)?, bytes.len())
                .reader()
                .read_raw(bytes)?;
        } else {
            for (index, room) in (0..).zip(room) {
                room.write(array.read(index)?);
            }
        }
        // SAFETY: The first `count` elements are initialised now, and any bytes are a valid `T`.
        Ok(unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), count as usize) })
    }
}
