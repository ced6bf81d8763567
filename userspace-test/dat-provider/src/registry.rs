// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Functions that `libdat2` calls to load and unload the provider, and the list of registrations.
//!
//! Each line of `dat.conf` is a registration with its own function table, because `libdat2` looks
//! up a table's `device_name` when an adapter is closed. Registrations are never freed, so that a
//! table stays valid for all pointers to it; there are only as many as lines. No function here
//! takes a lock, so that a child of `fork` cannot find one held.
#![allow(unsafe_code)]

use crate::provider;
use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use udat::abi::{DAT_IA_HANDLE, DAT_PROVIDER, DAT_PROVIDER_INFO, DAT_RETURN};
use udat::foreign;
use udat::options::Options;

/// Registration of a line of `dat.conf`.
pub struct Registration {
    name: CString,
    pub thread_safe: bool,
    pub options: Options,
    table: DAT_PROVIDER,
    info: DAT_PROVIDER_INFO,
    next: *const Registration,
}

// SAFETY: The value is not modified after it was published. `table` and `next` point to data that
// is never freed.
unsafe impl Sync for Registration {}

static FIRST: AtomicPtr<Registration> = AtomicPtr::new(ptr::null_mut());

type Register = unsafe extern "C" fn(*const DAT_PROVIDER, *const DAT_PROVIDER_INFO) -> DAT_RETURN;
type Adapter = unsafe extern "C" fn(DAT_IA_HANDLE, *mut DAT_IA_HANDLE) -> DAT_RETURN;

impl Registration {
    /// Returns the name of the adapter in `dat.conf`.
    pub fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    /// Returns the pointer for the first word of a cell.
    pub fn table(&'static self) -> *mut DAT_PROVIDER {
        ptr::from_ref(&self.table).cast_mut()
    }

    fn new(info: &DAT_PROVIDER_INFO, options: Options) -> Self {
        // SAFETY: `libdat2` terminates the name with a NUL.
        let name = unsafe { CStr::from_ptr(info.ia_name.as_ptr()) }.to_owned();
        let thread_safe = info.is_thread_safe != 0;
        // The text is on the heap, so that its address does not change when `name` moves.
        let table = provider::table(name.as_ptr(), thread_safe);
        Self { name, thread_safe, options, table, info: *info, next: ptr::null() }
    }

    /// Prepends the registration to the list.
    fn enter(self) -> &'static Self {
        let new = Box::leak(Box::new(self));
        loop {
            let first = FIRST.load(Ordering::Acquire);
            new.next = first;
            let entered =
                FIRST.compare_exchange(first, new, Ordering::AcqRel, Ordering::Acquire).is_ok();
            if entered {
                return new;
            }
        }
    }
}

/// Iterates over all registrations.
fn registrations() -> impl Iterator<Item = &'static Registration> {
    // SAFETY: The pointer is null or that of a registration, which is never freed.
    let first = unsafe { FIRST.load(Ordering::Acquire).as_ref() };
    // SAFETY: As above.
    std::iter::successors(first, |one| unsafe { one.next.as_ref() })
}

/// Returns the registration for a name and its thread safety.
pub fn find(name: &str, thread_safe: bool) -> Option<&'static Registration> {
    registrations().find(|one| one.name() == name && one.thread_safe == thread_safe)
}

/// Returns whether there is a registration with this name.
pub fn is_known(name: &str) -> bool {
    registrations().any(|one| one.name() == name)
}

/// Looks up a function of `libdat2`. It is resolved at run time because `libdat2`, which has loaded
/// this library, provides it.
fn libdat(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `name` is a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}

fn register(name: &CStr, registration: &'static Registration) {
    let Some(symbol) = libdat(name) else {
        eprintln!("kdapl: there is no {name:?}: only libdat2, which has it, can load this library");
        return;
    };
    // SAFETY: Both functions of `libdat2` with these names have this type.
    let call = unsafe { std::mem::transmute::<*mut c_void, Register>(symbol) };
    // SAFETY: Registrations are never freed.
    unsafe { call(&registration.table, &registration.info) };
}

/// Returns the number that `libdat2` has assigned to the adapter at `handle`. Programs use that
/// number.
pub fn number_of(handle: DAT_IA_HANDLE) -> DAT_IA_HANDLE {
    const MOST: usize = 1 << 16;
    let Some(symbol) = libdat(c"dats_get_ia_handle") else {
        return handle;
    };
    // SAFETY: The function of `libdat2` with this name has this type.
    let adapter = unsafe { std::mem::transmute::<*mut c_void, Adapter>(symbol) };
    let stands_for = |number: &usize| {
        let mut found = ptr::null_mut();
        // SAFETY: The function accepts any number, and `found` is valid for writes.
        let ret = unsafe { adapter(*number as DAT_IA_HANDLE, &mut found) };
        ret == 0 && found == handle
    };
    (0..MOST).find(stands_for).map_or(handle, |number| number as DAT_IA_HANDLE)
}

/// Registers an adapter. Called by `libdat2` before it opens the first adapter of a line of
/// `dat.conf`.
///
/// # Safety
/// `info` describes that line. `parameters` are its parameters, or null.
#[no_mangle]
pub unsafe extern "C" fn dat_provider_init(
    info: *const DAT_PROVIDER_INFO,
    parameters: *const c_char,
) {
    // SAFETY: By the safety requirement, `info` is null or valid.
    let Some(info) = (unsafe { info.as_ref() }) else {
        return;
    };
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: `libdat2` terminates the name with a NUL.
        let name = unsafe { CStr::from_ptr(info.ia_name.as_ptr()) }.to_string_lossy();
        let known = find(&name, info.is_thread_safe != 0);
        let text = foreign::text(parameters).unwrap_or_default();
        let registration = match (known, Options::parse(&text)) {
            (Some(known), _) => known,
            (None, Ok(options)) => Registration::new(info, options).enter(),
            (None, Err(why)) => return eprintln!("kdapl: {name} in dat.conf: {why}"),
        };
        register(c"dat_registry_add_provider", registration);
    });
}

/// Removes an adapter. Called by `libdat2` when the last adapter of a line of `dat.conf` was
/// closed.
///
/// # Safety
/// `info` describes that line.
#[no_mangle]
pub unsafe extern "C" fn dat_provider_fini(info: *const DAT_PROVIDER_INFO) {
    // SAFETY: By the safety requirement, `info` is null or valid.
    let Some(info) = (unsafe { info.as_ref() }) else {
        return;
    };
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: `libdat2` terminates the name with a NUL.
        let name = unsafe { CStr::from_ptr(info.ia_name.as_ptr()) }.to_string_lossy();
        if let Some(registration) = find(&name, info.is_thread_safe != 0) {
            register(c"dat_registry_remove_provider", registration);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str, thread_safe: bool) -> DAT_PROVIDER_INFO {
        DAT_PROVIDER_INFO {
            ia_name: foreign::name_field(name),
            dapl_version_major: 2,
            dapl_version_minor: 0,
            is_thread_safe: thread_safe.into(),
        }
    }

    #[test]
    fn a_line_is_found_by_name_and_thread_safety() {
        for (name, thread_safe) in [("a", false), ("a", true), ("b", false)] {
            Registration::new(&info(name, thread_safe), Options::default()).enter();
        }
        let found = find("a", true).unwrap();
        assert!(found.thread_safe && found.name() == "a");
        // SAFETY: The name of a table is a C string that is never freed.
        assert_eq!(unsafe { CStr::from_ptr((*found.table()).device_name) }, c"a");
        assert!(find("b", true).is_none() && is_known("b") && !is_known("c"));
    }
}
