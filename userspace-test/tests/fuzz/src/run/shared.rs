// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory that the processes of a run share: the program's text, the created objects, the outcomes
//! of calls.

use crate::abi::Abi;
use crate::kinds::{Resource, RESOURCES, SLOTS};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Longest text of a program in bytes.
pub const TEXT: usize = 256 * 1024;
/// Limits the number of calls.
const CALLS: usize = 128;

/// Counts of a call's successes, DAT codes and errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Successes.
    pub good: u64,
    /// DAT codes.
    pub refused: u64,
    /// Errors of ioctl(2) itself.
    pub failed: u64,
}

/// Shared by mapped memory.
#[repr(C)]
pub struct Shared {
    slots: [[AtomicU64; SLOTS]; RESOURCES.len()],
    answers: [[AtomicU64; 3]; CALLS],
    /// Processes A and B.
    pub pids: [AtomicI32; 2],
    /// Longest duration of a process before it is killed.
    pub milliseconds: AtomicU32,
    /// The action requested from root; 0: none. See [`Errand`](super::errand::Errand).
    pub errand: AtomicU64,
    length: AtomicU32,
    text: [AtomicU64; TEXT / 8],
}

impl Shared {
    /// Maps the shared memory.
    pub fn map() -> std::io::Result<&'static Self> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let null = std::ptr::null_mut();
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing else.
        let at = unsafe { libc::mmap(null, size_of::<Self>(), prot, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the mapping has this length, zeros are valid, and it is never unmapped.
        Ok(unsafe { &*at.cast::<Self>() })
    }

    /// Clears the slots of the previous program, and stores the next one.
    pub fn begin(&self, text: &str) {
        self.slots.iter().flatten().for_each(|slot| slot.store(0, Relaxed));
        self.pids.iter().for_each(|pid| pid.store(0, Relaxed));
        self.errand.store(0, Relaxed);
        let length = text.len().min(TEXT);
        for (word, bytes) in self.text.iter().zip(text.as_bytes()[..length].chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Relaxed);
        }
        self.length.store(length as u32, Relaxed);
    }

    /// Returns the longest time-out of a call in nanoseconds, unless it is endless.
    pub fn longest_wait(&self) -> u64 {
        u64::from(self.milliseconds.load(Relaxed)) * 1_000_000 / 5
    }

    /// Returns the program.
    pub fn text(&self) -> String {
        let length = self.length.load(Relaxed) as usize;
        let words = self.text[..length.div_ceil(8)].iter();
        let bytes: Vec<u8> = words.flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// Returns the content of a slot; 0 if it is empty, or -1 for a descriptor.
    pub fn slot(&self, resource: Resource, slot: u8) -> u64 {
        let value = self.slots[resource as usize][usize::from(slot) % SLOTS].load(Relaxed);
        match resource {
            // A descriptor may be 0.
            Resource::Fd => value.wrapping_sub(1),
            _ => value,
        }
    }

    /// Stores an object in a slot.
    pub fn set_slot(&self, resource: Resource, slot: u8, value: u64) {
        let value = match resource {
            Resource::Fd => value.wrapping_add(1),
            _ => value,
        };
        self.slots[resource as usize][usize::from(slot) % SLOTS].store(value, Relaxed);
    }

    /// Counts the outcome of a call: 0 for success, 1 for a DAT code, 2 for an errno.
    pub fn answered(&self, call: usize, how: usize) {
        self.answers[call][how].fetch_add(1, Relaxed);
    }

    /// Returns the outcomes by call.
    pub fn answers(&self) -> Vec<(&'static str, Answers)> {
        let calls = Abi::get().calls.iter().zip(&self.answers);
        calls
            .map(|(call, counts)| {
                let [good, refused, failed] = [0, 1, 2].map(|how| counts[how].load(Relaxed));
                (call.name.as_str(), Answers { good, refused, failed })
            })
            .collect()
    }
}
