// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What `libdat2` calls when it loads the provider, and the names under which that is known.
//!
//! Each line of `dat.conf` is a registration with a table of its own, since `libdat2` looks a table's
//! `device_name` up when an adapter is closed. Registrations stay for ever, as few as there are lines, so
//! that a table outlives whatever still points to it; nothing here takes a lock, so that a child of `fork`
//! finds none held.
#![allow(unsafe_code)]

use crate::abi::{DAT_IA_HANDLE, DAT_PROVIDER, DAT_PROVIDER_INFO, DAT_RETURN};
use crate::foreign;
use crate::options::Options;
use crate::provider;
use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A line of `dat.conf`.
pub struct Registration {
    name: CString,
    pub thread_safe: bool,
    pub options: Options,
    table: DAT_PROVIDER,
    info: DAT_PROVIDER_INFO,
    next: *const Registration,
}

// SAFETY: it is changed by nobody once others can see it; `table` and `next` point to what stays.
unsafe impl Sync for Registration {}

static FIRST: AtomicPtr<Registration> = AtomicPtr::new(ptr::null_mut());

type Register = unsafe extern "C" fn(*const DAT_PROVIDER, *const DAT_PROVIDER_INFO) -> DAT_RETURN;
type Adapter = unsafe extern "C" fn(DAT_IA_HANDLE, *mut DAT_IA_HANDLE) -> DAT_RETURN;

impl Registration {
    /// The name in `dat.conf`.
    pub fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    /// What the first word of a cell points to.
    pub fn table(&'static self) -> *mut DAT_PROVIDER {
        ptr::from_ref(&self.table).cast_mut()
    }

    fn new(info: &DAT_PROVIDER_INFO, options: Options) -> Self {
        // SAFETY: `libdat2` has put a NUL at its end.
        let name = unsafe { CStr::from_ptr(info.ia_name.as_ptr()) }.to_owned();
        let thread_safe = info.is_thread_safe != 0;
        // The heap keeps the text where it is when the value moves.
        let table = provider::table(name.as_ptr(), thread_safe);
        Self { name, thread_safe, options, table, info: *info, next: ptr::null() }
    }

    /// Puts it before the others.
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

/// All of them.
fn registrations() -> impl Iterator<Item = &'static Registration> {
    // SAFETY: null, or a registration that was leaked.
    let first = unsafe { FIRST.load(Ordering::Acquire).as_ref() };
    // SAFETY: as above.
    std::iter::successors(first, |one| unsafe { one.next.as_ref() })
}

/// The line of `dat.conf` that an adapter is opened by.
pub fn find(name: &str, thread_safe: bool) -> Option<&'static Registration> {
    registrations().find(|one| one.name() == name && one.thread_safe == thread_safe)
}

/// Whether there is a line of that name.
pub fn is_known(name: &str) -> bool {
    registrations().any(|one| one.name() == name)
}

/// A function of `libdat2`. It is looked for when needed: who loads this library has that.
fn libdat(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}

fn register(name: &CStr, registration: &'static Registration) {
    let Some(symbol) = libdat(name) else {
        eprintln!(
            "kdapl: this library is loaded by libdat2, which has {name:?}; nobody has it here"
        );
        return;
    };
    // SAFETY: in `libdat2` these two have this type.
    let call = unsafe { std::mem::transmute::<*mut c_void, Register>(symbol) };
    // SAFETY: both live for ever.
    unsafe { call(&registration.table, &registration.info) };
}

/// What the program calls the adapter at `handle`: `libdat2` numbers them.
pub fn number_of(handle: DAT_IA_HANDLE) -> DAT_IA_HANDLE {
    const MOST: usize = 1 << 16;
    let Some(symbol) = libdat(c"dats_get_ia_handle") else {
        return handle;
    };
    // SAFETY: in `libdat2` it has this type.
    let adapter = unsafe { std::mem::transmute::<*mut c_void, Adapter>(symbol) };
    let stands_for = |number: &usize| {
        let mut found = ptr::null_mut();
        // SAFETY: any number may be asked for, and `found` is ours to write.
        let ret = unsafe { adapter(*number as DAT_IA_HANDLE, &mut found) };
        ret == 0 && found == handle
    };
    (0..MOST).find(stands_for).map_or(handle, |number| number as DAT_IA_HANDLE)
}

/// Called by `libdat2` when the first adapter of a line of `dat.conf` is to be opened.
///
/// # Safety
/// `info` is that line, and `parameters` its parameters, or null.
#[no_mangle]
pub unsafe extern "C" fn dat_provider_init(
    info: *const DAT_PROVIDER_INFO,
    parameters: *const c_char,
) {
    // SAFETY: the caller's promise.
    let Some(info) = (unsafe { info.as_ref() }) else {
        return;
    };
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: `libdat2` has put a NUL at its end.
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

/// Called by `libdat2` when the last adapter of a line of `dat.conf` is closed.
///
/// # Safety
/// `info` is that line.
#[no_mangle]
pub unsafe extern "C" fn dat_provider_fini(info: *const DAT_PROVIDER_INFO) {
    // SAFETY: the caller's promise.
    let Some(info) = (unsafe { info.as_ref() }) else {
        return;
    };
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: `libdat2` has put a NUL at its end.
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
        // SAFETY: the name of a table is a C string that stays.
        assert_eq!(unsafe { CStr::from_ptr((*found.table()).device_name) }, c"a");
        assert!(find("b", true).is_none() && is_known("b") && !is_known("c"));
    }
}
