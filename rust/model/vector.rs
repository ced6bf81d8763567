// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! On which of a device's completion vectors the completion queues of an EVD notify.
//!
//! A vector is an interrupt, and drivers spread theirs over the processors in order. So the first
//! queue of an EVD goes to the vector of the processor that its creator runs on, and so do the waits, as
//! a rule; further ones go to the vectors behind, each to another. Where a consumer has asked for a
//! vector all go there: it has bound its threads to a processor.

/// Which vector a consumer asked for, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    first: u32,
    asked: bool,
}

impl Placement {
    /// Asks for none in particular.
    pub(crate) const ANY: i32 = -1;

    /// What a consumer gets who asks for `asked` on `cpu`, of a device with `count` vectors. `None` if
    /// there is no such vector.
    pub(crate) fn new(asked: i32, cpu: u32, count: u32) -> Option<Self> {
        // A device has one at least, whatever it says.
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

    /// The vector of the first queue.
    pub(crate) const fn first(self) -> u32 {
        self.first
    }

    /// The vector of the `nth` queue, counted from 0, on a device with `count` vectors.
    pub(crate) fn of_queue(self, nth: u32, count: u32) -> u32 {
        if self.asked {
            return self.first;
        }
        let behind = nth.checked_rem(count).unwrap_or(0);
        let sum = self.first.saturating_add(behind);
        sum.checked_rem(count).unwrap_or(0)
    }
}
