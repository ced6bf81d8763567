// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! References to processes, and to their address spaces, that survive the end of the process.
//!
//! C header: [`include/linux/pid.h`](srctree/include/linux/pid.h)

use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::{
    mm::Mm,
    prelude::*,
    sync::aref::ARef, //
};

/// Bytes of the name of a process, with the zero byte at the end.
pub(crate) const COMM_LEN: usize = bindings::KDAPL_COMM_LEN as usize;

/// A process, by a counted reference to its number.
///
/// # Invariants
///
/// The pointer is valid, and this value owns one reference to its target.
pub(crate) struct Process {
    pid: NonNull<bindings::pid>,
    name: [u8; COMM_LEN],
}

// SAFETY: References to a `struct pid` may be taken and dropped from any thread.
unsafe impl Send for Process {}
// SAFETY: As above. No method changes it.
unsafe impl Sync for Process {}

impl Process {
    /// Returns the calling process, with the name that it has now.
    ///
    /// Context: process.
    pub(crate) fn current() -> Result<Self> {
        // SAFETY: A running process has a number. The helper takes a reference.
        let pid = unsafe { bindings::kdapl_helper_current_process() };
        let pid = NonNull::new(pid).ok_or(ESRCH)?;
        let mut name = [0; COMM_LEN];
        // SAFETY: The array has the length that the helper writes.
        unsafe { bindings::kdapl_helper_current_comm(name.as_mut_ptr()) };
        // INVARIANT: The helper returned a counted reference.
        Ok(Self { pid, name })
    }

    /// Returns the number of the process in the PID namespace of the caller, or 0 if it has none
    /// there, or has ended.
    ///
    /// Context: process.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: By the type invariant the pointer is valid.
        unsafe { bindings::kdapl_helper_pid_number(self.pid.as_ptr()) }
    }

    /// Returns the name, which ends with a zero byte.
    pub(crate) fn name(&self) -> [u8; COMM_LEN] {
        self.name
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this value owns a reference.
        unsafe { bindings::kdapl_helper_put_pid(self.pid.as_ptr()) };
    }
}

/// Address space of a process, by a counted reference to its `struct mm_struct`.
///
/// The memory of the process is not kept. While the reference exists, no other address space has
/// the same identity.
pub(crate) struct AddressSpace(ARef<Mm>);

impl AddressSpace {
    /// Returns the address space of the calling process; `None` in a thread of the kernel.
    pub(crate) fn current() -> Option<Self> {
        current!().mm().map(|mm| Self(ARef::<Mm>::from(&**mm)))
    }

    /// Returns whether the calling process has this address space.
    pub(crate) fn is_current(&self) -> bool {
        let raw = self.0.as_raw();
        current!().mm().is_some_and(|mm| mm.as_raw() == raw)
    }
}

#[kunit_tests(kdapl_sys_process)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_process_has_a_number_and_a_name() -> Result {
        let process = Process::current()?;
        assert!(process.number() != 0);
        assert_eq!(process.number(), Process::current()?.number());
        let name = process.name();
        assert!(name[0] != 0);
        assert_eq!(name[COMM_LEN - 1], 0);
        Ok(())
    }
}
