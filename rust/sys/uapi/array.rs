// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Arrays that a message names by an address, a count, and the size that the caller's elements have.

use super::{
    copy_out,
    read_known,
    unknown_is_zero, //
};
use crate::model::event::Record;
use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    slice, //
};
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};
use zerocopy::Immutable;

/// Multiple of which the size of an element is.
const ALIGNMENT: u32 = 8;

/// An element of an array.
pub(crate) trait Element: FromBytes + IntoBytes + Immutable {
    /// The first published size in bytes: shorter elements are refused.
    const FIRST: u32;
}

impl Element for bindings::kdapl_dto {
    const FIRST: u32 = bindings::KDAPL_DTO_SIZE_MIN;
}

impl Element for bindings::kdapl_triplet {
    const FIRST: u32 = 16;
}

// An event as words: `struct kdapl_event`, bit for bit.
impl Element for Record {
    const FIRST: u32 = bindings::KDAPL_EVENT_SIZE_MIN;
}
const _: () = assert!(size_of::<Record>() == size_of::<bindings::kdapl_event>());

/// An array in user space. Its addresses may be anything.
#[derive(Clone, Copy)]
pub(crate) struct Array<T> {
    address: u64,
    /// Size of an element in bytes, as the caller knows it.
    size: u32,
    element: PhantomData<T>,
}

impl<T: Element> Array<T> {
    /// The array at `address` with elements of `size` bytes.
    ///
    /// # Errors
    ///
    /// `EINVAL` for elements shorter than the first published size or of a size that is no
    /// multiple of 8, `E2BIG` for those above `KDAPL_ELEMENT_MAX`.
    #[inline(always)]
    pub(crate) fn new(address: u64, size: u32) -> Result<Self> {
        if size < T::FIRST || size & ALIGNMENT.wrapping_sub(1) != 0 {
            return Err(EINVAL);
        }
        if size > bindings::KDAPL_ELEMENT_MAX {
            return Err(E2BIG);
        }
        Ok(Self {
            address,
            size,
            element: PhantomData,
        })
    }

    /// Bytes of an element, as the caller knows it.
    fn stride(&self) -> usize {
        self.size as usize
    }

    /// Where an element lies.
    #[inline(always)]
    fn place(&self, index: u32) -> Result<UserPtr> {
        let offset = u64::from(index).wrapping_mul(u64::from(self.size));
        let address = self.address.checked_add(offset).ok_or(EFAULT)?;
        let address = usize::try_from(address).map_err(|_| EFAULT)?;
        Ok(UserPtr::from_addr(address))
    }

    /// Copies an element in; what the caller does not know of it is zero.
    ///
    /// # Errors
    ///
    /// `E2BIG` if what the kernel does not know of it is not zero, `EFAULT`.
    #[inline(always)]
    pub(crate) fn read(&self, index: u32) -> Result<T> {
        let place = self.place(index)?;
        let element = read_known(place, self.stride())?;
        if self.stride() > size_of::<T>() {
            unknown_is_zero(place, self.stride(), size_of::<T>())?;
        }
        Ok(element)
    }

    /// Finds out whether an element can be written. Changes nothing there.
    ///
    /// # Errors
    ///
    /// `EFAULT`.
    #[inline(always)]
    pub(crate) fn may_write(&self, index: u32) -> Result {
        let place = self.place(index)?;
        // SAFETY: What lies in user space may be anything.
        if unsafe { bindings::kdapl_helper_can_write(place.as_mut_ptr(), self.stride()) } {
            Ok(())
        } else {
            Err(EFAULT)
        }
    }

    /// Copies an element out; what the kernel does not know of the caller's becomes zero.
    ///
    /// # Errors
    ///
    /// `EFAULT`.
    #[inline(always)]
    pub(crate) fn write(&self, index: u32, element: &T) -> Result {
        let place = self.place(index)?;
        let known = size_of::<T>().min(self.stride());
        copy_out(place, element.as_bytes().get(..known).ok_or(EINVAL)?)?;
        if self.stride() > known {
            Self::clear(place, known, self.stride())?;
        }
        Ok(())
    }

    /// Clears the bytes from `known` to `size` of an element.
    #[inline(never)]
    fn clear(place: UserPtr, known: usize, size: usize) -> Result {
        const ZEROS: [u8; 64] = [0; 64];
        let mut from = known;
        while from < size {
            let count = size.wrapping_sub(from).min(ZEROS.len());
            let zeros = ZEROS.get(..count).ok_or(EINVAL)?;
            copy_out(place.wrapping_byte_add(from), zeros)?;
            from = from.saturating_add(count);
        }
        Ok(())
    }
}

/// Room for an array of at most `N`: on the stack, and not cleared.
pub(crate) struct ShortArray<T, const N: usize>([MaybeUninit<T>; N]);

impl<T: Element, const N: usize> ShortArray<T, N> {
    /// Room for `N`.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // SAFETY: An array of what may be uninitialised may be.
        Self(unsafe { MaybeUninit::uninit().assume_init() })
    }

    /// Copies the first `count` elements of an array in.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are more than `N`, `E2BIG` as [`Array::read`], `EFAULT`.
    pub(crate) fn read(&mut self, array: &Array<T>, count: u32) -> Result<&[T]> {
        let room = self.0.get_mut(..count as usize).ok_or(EINVAL)?;
        if array.stride() == size_of::<T>() {
            // SAFETY: The same memory, as bytes that need not be written yet.
            let bytes = unsafe {
                slice::from_raw_parts_mut(room.as_mut_ptr().cast(), size_of_val::<[_]>(room))
            };
            UserSlice::new(array.place(0)?, bytes.len())
                .reader()
                .read_raw(bytes)?;
        } else {
            for (index, room) in (0..).zip(room) {
                room.write(array.read(index)?);
            }
        }
        // SAFETY: `count` of them are written now, and any bytes are a `T`.
        Ok(unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), count as usize) })
    }
}
