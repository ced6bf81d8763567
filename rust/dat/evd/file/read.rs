// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Reads events from a file of an Event Dispatcher (EVD).
//!
//! A read copies events out before it takes them, and no lock is held meanwhile: the memory of the
//! caller may be on a slow disk, or in the hands of another process (`userfaultfd`). If another
//! thread takes one of these events in the meantime, the read gives up its copies, and copies the
//! events that are the oldest then.

use super::{
    call::FileCall,
    sleepers::FileSleepers,
    EvdFile, //
};
use crate::{
    dat::{
        evd::{
            Consumer,
            Evd, //
        },
        prelude::*, //
    },
    model::{
        direct_event::{
            DrainEnd,
            DrainRetries, //
        },
        event::Record,
        wait::{
            wait_for,
            ArmResult,
            SleepEnd,
            WaitError,
            Waiter, //
        },
    },
    sys::{
        record_file::{
            Blocking,
            RecordDest, //
        },
        task, //
    },
};
use zerocopy::IntoBytes;

/// Largest number of events that are copied out together.
const AT_ONCE: usize = 8;

/// Outcome of reading events that were queued.
enum ReadEnd {
    /// Events were copied out and taken.
    Taken,
    /// Not even the oldest event could be copied.
    Fault,
    /// A signal is pending, and other threads have taken each event that was copied.
    Interrupted,
}

/// Ring and index of the oldest event.
#[derive(Clone, Copy)]
enum Oldest {
    /// At this index of the ring that the process maps.
    Mapped(u32),
    /// At this index of the EVD's ring.
    Ring(u32),
}

/// The oldest events of an EVD, which were not taken.
struct Peeked {
    records: [Record; AT_ONCE],
    count: usize,
    oldest: Oldest,
}

impl Peeked {
    /// Copies the events out. Returns the number of those that could be copied.
    fn put_into(&self, to: &mut RecordDest<'_, '_>) -> usize {
        let records = self.records.iter().take(self.count);
        records
            .take_while(|record| to.put(record.as_bytes()).is_ok())
            .count()
    }
}

impl Evd {
    /// Returns the oldest events, at most `most`, and takes none. If none is mapped, completions
    /// are drained first.
    fn peek(&self, consumer: &mut Consumer, most: usize) -> (Peeked, DrainEnd) {
        let mut records = [Record::default(); AT_ONCE];
        let room = records.get_mut(..most.min(AT_ONCE)).unwrap_or_default();
        let mapped = self.queue.mapped.as_ref().map(|ring| ring.peek(room));
        let ((index, count), origin, drained): (_, fn(u32) -> Oldest, _) = match mapped {
            Some(found) if found.1 != 0 => (found, Oldest::Mapped, DrainEnd::Complete),
            _ => {
                let drained = self.drain_to_ring(consumer);
                let found = self.queue.ring.peek(&consumer.slots, room);
                (found, Oldest::Ring, drained)
            }
        };
        let oldest = origin(index);
        let peeked = Peeked {
            records,
            count,
            oldest,
        };
        (peeked, drained)
    }

    /// Takes the first `count` of these events, unless another thread has taken one of them.
    /// Returns whether they were taken.
    fn take_peeked(self: &Arc<Self>, peeked: &Peeked, count: usize) -> bool {
        let mut consumer = self.consumer.lock();
        let number = u32::try_from(count).unwrap_or(u32::MAX);
        let is_taken = match peeked.oldest {
            Oldest::Mapped(index) => {
                let mapped = self.queue.mapped.as_ref();
                let is_taken = mapped.is_some_and(|ring| ring.take_from(index, number));
                self.note_taken(&mut consumer);
                is_taken
            }
            Oldest::Ring(index) => {
                let slots = &mut consumer.slots;
                let is_taken = self.queue.ring.take_from(slots, index, number);
                if is_taken {
                    let taken = peeked.records.iter().take(count);
                    taken.for_each(|record| self.report_if_receive(record));
                }
                is_taken
            }
        };
        drop(consumer);
        self.queue_pump_if_needed();
        is_taken
    }

    /// Copies events out and takes them, until none is queued or `to` is full. Calls `before_copy`
    /// before each copy, which may wait for a page. Returns `None` if no event was queued.
    fn read_into(
        self: &Arc<Self>,
        to: &mut RecordDest<'_, '_>,
        before_copy: impl Fn(),
    ) -> Option<ReadEnd> {
        let before = to.count();
        let mut retries = DrainRetries::new();
        while to.room() != 0 {
            let mut consumer = self.consumer.lock();
            let (peeked, drained) = self.peek(&mut consumer, to.room());
            if peeked.count == 0 {
                if drained == DrainEnd::Complete || !retries.next(|| consumer.cqs.depth()) {
                    break;
                }
                continue;
            }
            drop(consumer);
            before_copy();
            let copied = peeked.put_into(to);
            if copied == 0 {
                return Some(ReadEnd::Fault);
            }
            if !self.take_peeked(&peeked, copied) {
                to.undo(copied);
                if task::has_signal() {
                    return Some(ReadEnd::Interrupted);
                }
            } else if copied < peeked.count {
                break;
            }
        }
        (to.count() != before).then_some(ReadEnd::Taken)
    }
}

/// A thread that reads, until the drop.
struct EventReader<'a, 'to, 'iter, 'data> {
    evd: &'a Arc<Evd>,
    sleepers: &'a FileSleepers,
    to: &'to mut RecordDest<'iter, 'data>,
    call: FileCall<'a>,
}

/// Wakes another read, if one sleeps and an event is queued.
///
/// An event wakes one read. The woken read may be interrupted, may take another event, or may wait
/// for a page of its buffer for ever.
fn pass_on(evd: &Arc<Evd>, sleepers: &FileSleepers) {
    if !sleepers.readers().queue().has_sleepers() {
        return;
    }
    evd.arm_and_drain(&mut evd.consumer.lock());
    if evd.queued() != 0 {
        sleepers.announce_event();
    }
}

impl Waiter for EventReader<'_, '_, '_, '_> {
    type Output = ReadEnd;

    fn queued(&self) -> u32 {
        self.evd.queued()
    }

    fn take(&mut self, _threshold: u32) -> Option<ReadEnd> {
        let (evd, sleepers, has_slept) = (self.evd, self.sleepers, self.call.has_slept());
        // The wake-up of this read may have been the only one for the event.
        evd.read_into(self.to, || {
            if has_slept {
                pass_on(evd, sleepers);
            }
        })
    }

    fn arm_and_take(&mut self, threshold: u32) -> (ArmResult, Option<ReadEnd>) {
        self.call.hear();
        // If this leaves completions behind, the pump drains them and notifies.
        self.evd.arm_and_drain(&mut self.evd.consumer.lock());
        (ArmResult::Empty, self.take(threshold))
    }

    fn stop(&mut self) -> Option<WaitError> {
        if self.evd.is_over() {
            return Some(WaitError::Closed);
        }
        self.call.stop()
    }

    fn sleep(&mut self) -> SleepEnd {
        if self.evd.is_over() {
            return SleepEnd::Closed;
        }
        self.call.sleep()
    }
}

impl Drop for EventReader<'_, '_, '_, '_> {
    /// Passes remaining events to another reader.
    fn drop(&mut self) {
        if self.call.has_slept() {
            pass_on(self.evd, self.sleepers);
        }
    }
}

impl EvdFile {
    /// Reads events: see [`RecordFile::read`](crate::sys::record_file::RecordFile::read). Events
    /// that are queued when waits are stopped are returned. After them, the file ends.
    ///
    /// # Errors
    ///
    /// As for `RecordFile::read`; `EPERM` instead of a sleep if the EVD is unwaitable.
    pub(super) fn read_events(&self, to: &mut RecordDest<'_, '_>, blocking: Blocking) -> Result {
        let Some(evd) = self.evd() else {
            return Ok(());
        };
        let mut reader = EventReader {
            evd: &evd,
            sleepers: &self.sleepers,
            to,
            call: FileCall::new(self.sleepers.readers(), blocking),
        };
        match wait_for(&mut reader, 1) {
            Ok(ReadEnd::Taken) => Ok(()),
            Ok(ReadEnd::Fault) => Err(EFAULT),
            Ok(ReadEnd::Interrupted) | Err(WaitError::Interrupted) => Err(ERESTARTSYS),
            Err(WaitError::TimedOut) => Err(EAGAIN),
            Err(WaitError::Closed) if evd.wakeup.closed.load_acquire() => Ok(()),
            Err(WaitError::Closed) if blocking == Blocking::MayNot => Err(EAGAIN),
            Err(WaitError::Closed) => Err(EPERM),
        }
    }
}
