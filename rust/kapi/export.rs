// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From C to Rust: what the arguments of an exported function are, and who vouches for them.

use crate::{
    dat::prelude::*,
    model::handle::OuterHandle,
    rdma::addr::{
        SockAddr,
        RAW_LEN, //
    },
};
use core::slice;
use kdapl_bindings as bindings;
use kernel::ffi::{
    c_char,
    c_void, //
};

/// An argument of an exported function.
///
/// # Safety
///
/// `Raw` is what the header has in this place.
pub(super) unsafe trait Argument: Sized {
    /// As it comes from C.
    type Raw;

    /// Takes it.
    ///
    /// # Safety
    ///
    /// `raw` is as the header says, for as long as the call takes: a pointer is null or valid.
    unsafe fn from_raw(raw: Self::Raw) -> Self;
}

macro_rules! plain {
    ($($name:ty),+ $(,)?) => {
        $(
            // SAFETY: It is the same type.
            unsafe impl Argument for $name {
                type Raw = Self;

                unsafe fn from_raw(raw: Self) -> Self {
                    raw
                }
            }
        )+
    };
}

plain!(
    i32,
    u32,
    u64,
    bindings::DAT_CONTEXT,
    bindings::DAT_OS_WAIT_PROXY_AGENT,
    bindings::DAT_REGION_DESCRIPTION,
);

// SAFETY: A handle is a number in the guise of a pointer, which is never followed.
unsafe impl Argument for OuterHandle {
    type Raw = *mut c_void;

    unsafe fn from_raw(raw: *mut c_void) -> Self {
        Self::from_raw(raw.addr() as u64)
    }
}

/// A handle in the guise of a pointer.
pub(super) fn raw_handle(handle: OuterHandle) -> *mut c_void {
    // As wide: the header refuses other machines.
    core::ptr::without_provenance_mut(handle.into_raw() as usize)
}

/// Where a result goes.
///
/// # Invariants
///
/// The pointer is null, or valid for reads and writes for as long as the call takes.
pub(super) struct Out<T>(*mut T);

// SAFETY: The header has a pointer here.
unsafe impl<T> Argument for Out<T> {
    type Raw = *mut T;

    unsafe fn from_raw(raw: *mut T) -> Self {
        // INVARIANT: The caller vouches for it.
        Self(raw)
    }
}

impl<T> Out<T> {
    /// Whether it is wanted.
    pub(super) fn is_needed(&self) -> bool {
        !self.0.is_null()
    }

    /// # Errors
    ///
    /// INVALID_PARAMETER (`argument`) for NULL.
    pub(super) fn needed(&self, argument: u8) -> DatResult {
        if self.0.is_null() {
            return Err(DatError::invalid_parameter(argument));
        }
        Ok(())
    }

    /// Puts a value there; NULL takes none.
    pub(super) fn put(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: By the invariant.
            unsafe { self.0.write(value) };
        }
    }
}

impl Out<*mut c_void> {
    /// Puts a handle there.
    pub(super) fn put_handle(&self, handle: OuterHandle) {
        self.put(raw_handle(handle));
    }

    /// Whether a handle is there already.
    pub(super) fn has_handle(&self) -> bool {
        // SAFETY: By the invariant.
        !self.0.is_null() && !unsafe { self.0.read() }.is_null()
    }
}

/// Where a value comes from.
///
/// # Invariants
///
/// The pointer is null, or valid for reads for as long as the call takes.
pub(super) struct In<T>(*const T);

// SAFETY: The header has a pointer here.
unsafe impl<T> Argument for In<T> {
    type Raw = *const T;

    unsafe fn from_raw(raw: *const T) -> Self {
        // INVARIANT: The caller vouches for it.
        Self(raw)
    }
}

impl<T: Copy> In<T> {
    /// The value; `None` for NULL.
    pub(super) fn get(&self) -> Option<T> {
        // SAFETY: By the invariant.
        (!self.0.is_null()).then(|| unsafe { self.0.read() })
    }

    /// `count` of them.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (`argument`) for NULL, unless `count` is 0.
    ///
    /// # Safety
    ///
    /// The header says that as many are there.
    pub(super) unsafe fn slice(&self, count: usize, argument: u8) -> DatResult<&[T]> {
        if count == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(DatError::invalid_parameter(argument));
        }
        // SAFETY: The caller vouches for it.
        Ok(unsafe { slice::from_raw_parts(self.0, count) })
    }
}

/// Private data; how long they are another argument says.
///
/// # Invariants
///
/// The pointer is null, or valid for reads of as many bytes for as long as the call takes.
pub(super) struct Data(*const c_void);

// SAFETY: The header has a pointer here.
unsafe impl Argument for Data {
    type Raw = *const c_void;

    unsafe fn from_raw(raw: *const c_void) -> Self {
        // INVARIANT: The caller vouches for it.
        Self(raw)
    }
}

impl Data {
    /// Copies them.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (`argument`) for NULL, unless there are none.
    ///
    /// # Safety
    ///
    /// There are as many as the other argument says.
    pub(super) unsafe fn read(&self, bytes: &mut [u8], argument: u8) -> DatResult {
        // SAFETY: By the invariant, and the caller vouches for the length.
        let data = unsafe {
            In(self.0.cast::<u8>())
                .slice(bytes.len(), argument)?
                .as_ptr()
        };
        // SAFETY: As above; the bytes are ours.
        unsafe { core::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
}

/// A string.
///
/// # Invariants
///
/// The pointer is null, or a string for as long as the call takes.
pub(super) struct Text(*const c_char);

// SAFETY: The header has a pointer here.
unsafe impl Argument for Text {
    type Raw = *const c_char;

    unsafe fn from_raw(raw: *const c_char) -> Self {
        // INVARIANT: The caller vouches for it.
        Self(raw)
    }
}

impl Text {
    /// Without the NUL; empty for NULL.
    pub(super) fn bytes(&self) -> &[u8] {
        if self.0.is_null() {
            return &[];
        }
        // SAFETY: By the invariant.
        unsafe { CStr::from_char_ptr(self.0.cast()) }.to_bytes()
    }
}

/// An address.
///
/// # Invariants
///
/// The pointer is null, or that of an address, as long as its family says, for as long as the call takes.
pub(super) struct Address(*const bindings::sockaddr);

// SAFETY: The header has a pointer here.
unsafe impl Argument for Address {
    type Raw = *mut bindings::sockaddr;

    unsafe fn from_raw(raw: *mut bindings::sockaddr) -> Self {
        // INVARIANT: The caller vouches for it.
        Self(raw)
    }
}

impl Address {
    /// The address; `None` for NULL, or if it is neither of IPv4 nor of IPv6.
    pub(super) fn get(&self) -> Option<SockAddr> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: By the invariant there is a family at least.
        let family = unsafe { self.0.cast::<u16>().read_unaligned() };
        let length = match u32::from(family) {
            bindings::AF_INET => size_of::<bindings::sockaddr_in>(),
            bindings::AF_INET6 => size_of::<bindings::sockaddr_in6>(),
            _ => return None,
        };
        let mut raw = [0_u8; RAW_LEN];
        // SAFETY: By the invariant there are as many bytes; and `raw` has room for the longer one.
        unsafe { core::ptr::copy_nonoverlapping(self.0.cast(), raw.as_mut_ptr(), length) };
        SockAddr::from_raw(raw).ok()
    }
}

/// An address as C takes it. It stays where it is for as long as the header says.
pub(super) fn raw_address(address: *const SockAddr) -> *mut bindings::sockaddr {
    address.cast_mut().cast()
}

/// A count as C has it.
pub(super) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Makes functions that C can call.
///
/// A function whose arguments are not those of the header does not build.
macro_rules! export {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        const _: () = {
            let _: [unsafe extern "C" fn(
                $(<$type as $crate::kapi::export::Argument>::Raw),*
            ) -> u32; 2] = [kdapl_bindings::$name, $name];
        };

        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// As the header in `include/rdma` says: a pointer is NULL or valid.
        #[no_mangle]
        pub(super) unsafe extern "C" fn $name(
            $($argument: <$type as $crate::kapi::export::Argument>::Raw),*
        ) -> u32 {
            $(
                // SAFETY: The caller keeps to the header.
                let $argument = unsafe {
                    <$type as $crate::kapi::export::Argument>::from_raw($argument)
                };
            )*
            let call = || -> $crate::model::code::DatResult { $body };
            call().map_or_else($crate::model::code::DatError::code, |()| 0)
        }
    )*};
}
pub(super) use export;
