// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion vectors of the completion queues (CQs) of an Event Dispatcher (EVD).
//!
//! A completion vector is an interrupt of the device, and drivers spread their vectors over the
//! CPUs in order. The first CQ of an EVD uses the vector of the CPU on which the EVD is created,
//! since the same thread usually waits on it. Each further CQ uses the next vector. If the consumer
//! names a vector, all CQs use that one: such a consumer has bound its threads to a CPU.

/// Completion vector of the first CQ, and whether the consumer named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    first: u32,
    asked: bool,
}

impl Placement {
    /// Value of a consumer that names no vector.
    pub(crate) const ANY: i32 = -1;

    /// Chooses the vector for a consumer that asks for `asked` on CPU `cpu`, of a device with
    /// `count` vectors. `None` if the device does not have the vector.
    pub(crate) fn new(asked: i32, cpu: u32, count: u32) -> Option<Self> {
        // A device has at least one vector, even if its driver reports 0.
        let count = count.max(1);
        if asked == Self::ANY {
            return Some(Self {
                first: cpu.checked_rem(count)?,
                asked: false,
            });
        }
        let first = u32::try_from(asked).ok()?;
        (first < count).then_some(Self { first, asked: true })
    }

    /// Returns the vector of the first CQ.
    pub(crate) const fn first(self) -> u32 {
        self.first
    }

    /// Returns the vector of the `nth` CQ, counted from 0, on a device with `count` vectors.
    pub(crate) fn vector_of_queue(self, nth: u32, count: u32) -> u32 {
        if self.asked {
            return self.first;
        }
        let offset = nth.checked_rem(count).unwrap_or(0);
        let sum = self.first.saturating_add(offset);
        sum.checked_rem(count).unwrap_or(0)
    }
}
