// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Conversion of the arguments of exported functions, and the `export!` macro that defines those
//! functions.
//!
//! The types here hold pointers from C. The header obliges the caller to pass valid ones; the
//! safety arguments below rely on that.

use crate::{
    dat::prelude::*,
    model::handle::KernelHandle,
    rdma::addr::{
        SockAddr,
        RAW_LEN, //
    },
    sys::net::NetRef,
};
use core::slice;
use kdapl_bindings as bindings;
use kernel::ffi::{
    c_char,
    c_void, //
};

/// Type of an argument of an exported function. [`export!`] compares `Raw` with the header.
pub(super) trait Argument: Sized {
    /// C type of the argument.
    type Raw;

    /// Converts the C argument.
    ///
    /// # Safety
    ///
    /// `raw` satisfies the header for the duration of the call: a pointer is null or valid.
    unsafe fn from_raw(raw: Self::Raw) -> Self;
}

macro_rules! plain {
    ($($name:ty),+ $(,)?) => {
        $(
            impl Argument for $name {
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

// A handle is a number cast to a pointer, which is never dereferenced.
impl Argument for KernelHandle {
    type Raw = *mut c_void;

    unsafe fn from_raw(raw: *mut c_void) -> Self {
        Self::from_raw(raw.addr() as u64)
    }
}

/// Converts a handle to its C form, a number cast to a pointer.
pub(super) fn raw_handle(handle: KernelHandle) -> *mut c_void {
    // Both are 64 bits wide: the header refuses to compile for 32-bit architectures.
    core::ptr::without_provenance_mut(handle.into_raw() as usize)
}

/// Output argument.
///
/// # Invariants
///
/// The pointer is null, or valid for reads and writes for as long as the call takes.
pub(super) struct Out<T>(*mut T);

impl<T> Argument for Out<T> {
    type Raw = *mut T;

    unsafe fn from_raw(raw: *mut T) -> Self {
        // INVARIANT: Holds by the safety requirement of `from_raw`.
        Self(raw)
    }
}

impl<T> Out<T> {
    /// Returns whether the caller passed a pointer.
    pub(super) fn is_needed(&self) -> bool {
        !self.0.is_null()
    }

    /// Checks that the caller passed a pointer.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (`arg`) for NULL.
    pub(super) fn needed(&self, arg: Arg) -> DatResult {
        if self.0.is_null() {
            return Err(DatError::Invalid(arg));
        }
        Ok(())
    }

    /// Writes a value, unless the pointer is NULL.
    pub(super) fn put(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: By the type invariant the pointer, which is not null, is valid for writes.
            unsafe { self.0.write(value) };
        }
    }
}

impl<T: Copy> Out<T> {
    /// Reads the value of an argument that is input, too; returns `None` for NULL.
    pub(super) fn get(&self) -> Option<T> {
        // SAFETY: By the type invariant the pointer, which is not null, is valid for reads.
        (!self.0.is_null()).then(|| unsafe { self.0.read() })
    }
}

impl Out<*mut c_void> {
    /// Writes a handle, unless the pointer is NULL.
    pub(super) fn put_handle(&self, handle: KernelHandle) {
        self.put(raw_handle(handle));
    }

    /// Returns whether the caller passed a handle in the output argument.
    pub(super) fn has_handle(&self) -> bool {
        self.get().is_some_and(|handle| !handle.is_null())
    }
}

/// Input argument passed by pointer.
///
/// # Invariants
///
/// The pointer is null, or valid for reads for as long as the call takes.
pub(super) struct In<T>(*const T);

impl<T> Argument for In<T> {
    type Raw = *const T;

    unsafe fn from_raw(raw: *const T) -> Self {
        // INVARIANT: Holds by the safety requirement of `from_raw`.
        Self(raw)
    }
}

impl<T: Copy> In<T> {
    /// Reads the value; returns `None` for NULL.
    pub(super) fn get(&self) -> Option<T> {
        // SAFETY: By the type invariant the pointer, which is not null, is valid for reads.
        (!self.0.is_null()).then(|| unsafe { self.0.read() })
    }

    /// Returns the pointer, which may be null.
    pub(super) fn as_ptr(&self) -> *const T {
        self.0
    }

    /// Borrows an array of `count` elements.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (`arg`) for NULL, unless `count` is 0.
    ///
    /// # Safety
    ///
    /// By the header, the pointer refers to at least `count` elements, unless it is NULL.
    pub(super) unsafe fn slice(&self, count: usize, arg: Arg) -> DatResult<&[T]> {
        if count == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(DatError::Invalid(arg));
        }
        // SAFETY: By the type invariant and the safety requirement, the pointer, which is not null,
        // is valid for reads of `count` elements.
        Ok(unsafe { slice::from_raw_parts(self.0, count) })
    }
}

/// Private data. Their length is another argument of the call.
///
/// # Invariants
///
/// The pointer is null, or valid for reads of that length for the duration of the call.
pub(super) struct Data(*const c_void);

impl Argument for Data {
    type Raw = *const c_void;

    unsafe fn from_raw(raw: *const c_void) -> Self {
        // INVARIANT: Holds by the safety requirement of `from_raw`.
        Self(raw)
    }
}

impl Data {
    /// Copies the private data to `bytes`.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (private data) for NULL, unless `bytes` is empty.
    ///
    /// # Safety
    ///
    /// The length of `bytes` is the length that the caller of the exported function passed.
    pub(super) unsafe fn read(&self, bytes: &mut [u8]) -> DatResult {
        // SAFETY: By the type invariant the pointer is null or valid for reads of `bytes.len()`
        // bytes, which is the length that was passed.
        let data = unsafe {
            In(self.0.cast::<u8>())
                .slice(bytes.len(), Arg::PrivateData)?
                .as_ptr()
        };
        // SAFETY: As above for the source. The destination is an exclusive borrow of the same
        // length.
        unsafe { core::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
}

/// NUL-terminated string.
///
/// # Invariants
///
/// The pointer is null, or refers to a NUL-terminated string for the duration of the call.
pub(super) struct CText(*const c_char);

impl Argument for CText {
    type Raw = *const c_char;

    unsafe fn from_raw(raw: *const c_char) -> Self {
        // INVARIANT: Holds by the safety requirement of `from_raw`.
        Self(raw)
    }
}

impl CText {
    /// Returns the bytes of the string without the NUL; empty for NULL.
    pub(super) fn bytes(&self) -> &[u8] {
        if self.0.is_null() {
            return &[];
        }
        // SAFETY: By the type invariant the pointer, which is not null, refers to a NUL-terminated
        // string.
        unsafe { CStr::from_char_ptr(self.0.cast()) }.to_bytes()
    }
}

/// Network namespace.
///
/// # Invariants
///
/// The pointer is null, or refers to a namespace to which the caller of the exported function has a
/// reference for the duration of the call.
pub(super) struct Namespace(*mut bindings::net);

impl Argument for Namespace {
    type Raw = *mut bindings::net;

    unsafe fn from_raw(raw: *mut bindings::net) -> Self {
        // INVARIANT: Holds by the safety requirement of `from_raw`.
        Self(raw)
    }
}

impl Namespace {
    /// Takes a reference to the namespace.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (network namespace) for NULL, and for one that has ended.
    pub(super) fn get(&self) -> DatResult<NetRef> {
        // SAFETY: By the type invariant the pointer is null, or the namespace is alive.
        unsafe { NetRef::from_raw(self.0) }.map_err(|_| DatError::Invalid(Arg::Net))
    }
}

/// IP address.
///
/// # Invariants
///
/// The pointer is null, or refers to a socket address of its family's size for the duration of the
/// call.
pub(super) struct Address(*const bindings::sockaddr);

impl Argument for Address {
    type Raw = *mut bindings::sockaddr;

    unsafe fn from_raw(raw: *mut bindings::sockaddr) -> Self {
        // INVARIANT: Holds by the safety requirement of `from_raw`.
        Self(raw)
    }
}

impl Address {
    /// Reads the address. Returns `None` for NULL, and for a family that is neither IPv4 nor IPv6.
    pub(super) fn get(&self) -> Option<SockAddr> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: By the type invariant the pointer, which is not null, refers to at least a
        // family.
        let family = unsafe { self.0.cast::<u16>().read_unaligned() };
        let length = match u32::from(family) {
            bindings::AF_INET => size_of::<bindings::sockaddr_in>(),
            bindings::AF_INET6 => size_of::<bindings::sockaddr_in6>(),
            _ => return None,
        };
        let mut raw = [0_u8; RAW_LEN];
        // SAFETY: By the type invariant the pointer is valid for reads of `length` bytes. `raw` has
        // room for the longer of the two structures.
        unsafe { core::ptr::copy_nonoverlapping(self.0.cast(), raw.as_mut_ptr(), length) };
        SockAddr::from_raw(raw).ok()
    }
}

/// Converts an address to its C form. The header says how long the pointer stays valid.
pub(super) fn raw_address(address: *const SockAddr) -> *mut bindings::sockaddr {
    address.cast_mut().cast()
}

/// Converts a count to its C form.
pub(super) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Defines functions that C can call.
///
/// A function whose signature differs from the header's does not compile. Its name selects the
/// order of its arguments, and so the number of one that is invalid.
macro_rules! export {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        const _: () = {
            let _: [unsafe extern "C" fn(
                $(<$type as $crate::kapi::export::Argument>::Raw),*
            ) -> u32; 2] = [kdapl_bindings::$name, $name];
            // `dat_ep_modify` has more: its order includes members of its last argument.
            assert!(
                $crate::model::code::order::$name.len() >= [$(stringify!($argument)),*].len()
            );
        };

        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// The caller satisfies the header in `include/rdma`: a pointer is NULL or valid.
        #[no_mangle]
        pub(super) unsafe extern "C" fn $name(
            $($argument: <$type as $crate::kapi::export::Argument>::Raw),*
        ) -> u32 {
            $(
                // SAFETY: The safety requirement of this function is that of `from_raw`.
                let $argument = unsafe {
                    <$type as $crate::kapi::export::Argument>::from_raw($argument)
                };
            )*
            let call = || -> $crate::model::code::DatResult { $body };
            call().map_or_else(|error| error.code($crate::model::code::order::$name), |()| 0)
        }
    )*};
}
pub(super) use export;
