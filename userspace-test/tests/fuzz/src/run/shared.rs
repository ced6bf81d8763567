// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What the processes of a run share: the program's text, what its calls made, how they ended.

use crate::abi::Abi;
use crate::kinds::{Resource, RESOURCES, SLOTS};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bytes of a program's text at most.
pub const TEXT: usize = 256 * 1024;
/// Calls there may be.
const CALLS: usize = 128;

/// How often a call has succeeded, was refused with a DAT code, and failed with an errno.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Successes.
    pub good: u64,
    /// DAT codes.
    pub refused: u64,
    /// Errors of ioctl(2) itself.
    pub failed: u64,
}

/// Lies in memory that all of them have mapped.
#[repr(C)]
pub struct Shared {
    slots: [[AtomicU64; SLOTS]; RESOURCES.len()],
    answers: [[AtomicU64; 3]; CALLS],
    /// Processes A and B.
    pub pids: [AtomicI32; 2],
    /// How long a process may take before it is killed.
    pub milliseconds: AtomicU32,
    /// What root is asked for; 0: nothing. See [`Errand`](super::errand::Errand).
    pub errand: AtomicU64,
    length: AtomicU32,
    text: [AtomicU64; TEXT / 8],
}

impl Shared {
    /// Maps one.
    pub fn map() -> std::io::Result<&'static Self> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let null = std::ptr::null_mut();
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing else.
        let at = unsafe { libc::mmap(null, size_of::<Self>(), prot, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: it is as long as that, zeros are valid, and it is never unmapped.
        Ok(unsafe { &*at.cast::<Self>() })
    }

    /// Forgets what an earlier program made, and stores the next one.
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

    /// How many nanoseconds a call may wait, if not for ever.
    pub fn longest_wait(&self) -> u64 {
        u64::from(self.milliseconds.load(Relaxed)) * 1_000_000 / 5
    }

    /// The program.
    pub fn text(&self) -> String {
        let length = self.length.load(Relaxed) as usize;
        let words = self.text[..length.div_ceil(8)].iter();
        let bytes: Vec<u8> = words.flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// What is in a slot; 0 if nothing is, and -1 for a descriptor.
    pub fn slot(&self, resource: Resource, slot: u8) -> u64 {
        let value = self.slots[resource as usize][usize::from(slot) % SLOTS].load(Relaxed);
        match resource {
            // A descriptor may be 0.
            Resource::Fd => value.wrapping_sub(1),
            _ => value,
        }
    }

    /// Stores what a call made.
    pub fn set_slot(&self, resource: Resource, slot: u8, value: u64) {
        let value = match resource {
            Resource::Fd => value.wrapping_add(1),
            _ => value,
        };
        self.slots[resource as usize][usize::from(slot) % SLOTS].store(value, Relaxed);
    }

    /// Counts how a call ended: 0 well, 1 with a DAT code, 2 with an errno.
    pub fn answered(&self, call: usize, how: usize) {
        self.answers[call][how].fetch_add(1, Relaxed);
    }

    /// How the calls ended, by name.
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
