// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Requests in flight, in the order of their posts, and which of them the device reports.
//!
//! A completion costs the device, the driver and the drain of the completion queue more than most
//! other steps of a small request. So a request whose success produces no event is *unsignalled*:
//! the device reports it only if it fails. It completes requests in the order of their posts (if
//! not, all are signalled). So the completion of any request shows that all earlier unsignalled
//! ones have succeeded: it [retires](Requests::retire_before) them.
//!
//! ```text
//!   posted:     U  U  U  S  U  U  U  S  U  U          U unsignalled, S signalled
//!   retired by: \______/    \_____/     \__/ none so far: the end is open
//! ```
//!
//! A registration that is reported [with the next request](CompletionFlags::WITH_NEXT) is
//! unsignalled, and the request after it is signalled.
//!
//! Requests that no completion retires would hold their slots for ever. Two rules prevent that:
//!
//! - At least one request in [`interval`] is signalled, and so is one that takes the last free
//!   slot.
//! - A *marker* closes an open end, if the connection ends or its owner has to know that the
//!   requests have completed. It is a signalled request without data and without an event. By the
//!   first rule there is a free slot for it.

use super::{
    completion::CompletionFlags,
    dto::{
        Dto,
        DtoSlots,
        Neighbour,
        PostPosition,
        Scan,
        Slot, //
    }, //
};
use core::ops::DerefMut;

/// Largest number of requests of which one is signalled. More would save little, and hold back
/// more slots.
const LONGEST_INTERVAL: u32 = 16;

/// Returns the length of a run of requests of which at least one is signalled. `capacity` is the
/// number of requests that may be in flight.
pub(crate) const fn interval(capacity: u32) -> u32 {
    let quarter = capacity / 4;
    if quarter > LONGEST_INTERVAL {
        LONGEST_INTERVAL
    } else {
        quarter
    }
}

/// A request that has got a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    /// Slot of the request.
    pub(crate) slot: u32,
    /// Whether the device has to report its success.
    pub(crate) signalled: bool,
}

/// Returns whether `number` was given to an earlier post than `other`. Numbers wrap.
const fn precedes(number: u32, other: u32) -> bool {
    let distance = other.wrapping_sub(number);
    distance != 0 && distance <= u32::MAX / 2
}

/// Choice of the requests that are signalled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signalling {
    /// All of them: the driver does not allow unsignalled requests.
    All,
    /// As few as possible, of those without an event.
    Few,
}

/// Requests of an Endpoint in flight.
pub(crate) struct Requests<S> {
    slots: DtoSlots<S>,
    signalling: Signalling,
    next_number: u32,
    /// Number of the last signalled request; an earlier one if that was cancelled.
    last_signalled: u32,
    /// First and last of the list of unsignalled requests, in the order of their posts.
    oldest: Neighbour,
    newest: Neighbour,
    /// Number of markers in flight.
    markers: u32,
    /// Number of the next request at the last [`Requests::is_idle_since_last_call`].
    seen_number: u32,
}

impl<S: DerefMut<Target = [Slot]>> Requests<S> {
    /// Creates the slots over `storage`, whose elements are all [`Slot::vacant`].
    pub(crate) const fn new(storage: S, signalling: Signalling) -> Self {
        Self::numbered_after(storage, signalling, 0)
    }

    /// As [`Requests::new`]. The number of the first request follows `last`.
    pub(crate) const fn numbered_after(storage: S, signalling: Signalling, last: u32) -> Self {
        Self {
            slots: DtoSlots::new(storage),
            signalling,
            next_number: last.wrapping_add(1),
            last_signalled: last,
            oldest: Neighbour::NONE,
            newest: Neighbour::NONE,
            markers: 0,
            seen_number: last,
        }
    }

    /// Returns the slots.
    pub(crate) fn slots(&self) -> &DtoSlots<S> {
        &self.slots
    }

    /// Returns the largest number of requests that can be in flight at once.
    pub(crate) fn capacity(&self) -> u32 {
        self.slots.capacity()
    }

    /// Returns the number of requests in flight, markers included.
    pub(crate) fn outstanding(&self) -> u32 {
        self.slots.outstanding()
    }

    /// Returns the number of the consumer's requests in flight.
    pub(crate) fn outstanding_of_consumer(&self) -> u32 {
        self.outstanding().saturating_sub(self.markers)
    }

    /// Searches for a request in flight: see [`DtoSlots::find_busy`].
    pub(crate) fn find_busy(&self, from: u32) -> Scan {
        self.slots.find_busy(from)
    }

    /// Stores the time of the post of the request in flight in a slot.
    pub(crate) fn set_post_time(&mut self, slot: u32, time_ns: u64) {
        self.slots.set_post_time(slot, time_ns);
    }

    /// Allocates a slot for a request; `None` if all are busy.
    #[inline(always)]
    pub(crate) fn post(&mut self, dto: Dto) -> Option<Posted> {
        let number = self.next_number;
        let signalled = !self.may_be_unsignalled(&dto, number);
        let position = PostPosition {
            number,
            previous: if signalled {
                Neighbour::NONE
            } else {
                self.newest
            },
            next: Neighbour::NONE,
        };
        let slot = self.slots.post_in_order(dto, position)?;
        self.next_number = number.wrapping_add(1);
        if signalled {
            self.last_signalled = number;
        } else {
            self.append(slot);
        }
        if dto.flags.has(CompletionFlags::MARKER) {
            self.markers = self.markers.wrapping_add(1);
        }
        Some(Posted { slot, signalled })
    }

    /// Decides whether the next request, which has this number, may be unsignalled.
    ///
    /// Requests that change memory regions own the region until they are retired. So they are
    /// signalled, unless the consumer has said that it waits for the next request. So are requests
    /// that follow the end of the connection: the device may still carry them out, and the open end
    /// that they leave is not closed any more.
    #[inline]
    fn may_be_unsignalled(&self, dto: &Dto, number: u32) -> bool {
        dto.flags.has(CompletionFlags::SUPPRESS) && self.may_omit_signal(dto, number)
    }

    fn may_omit_signal(&self, dto: &Dto, number: u32) -> bool {
        self.signalling == Signalling::Few
            && !dto.flags.has(CompletionFlags::MARKER)
            && !dto.flags.has(CompletionFlags::AFTER_END)
            && (!dto.operation.is_local() || dto.flags.has(CompletionFlags::WITH_NEXT))
            && !self.ends_registration()
            && number.wrapping_sub(self.last_signalled) < interval(self.capacity())
            && self.outstanding().saturating_add(1) < self.capacity()
    }

    /// Returns whether the last request is a registration that is reported with the next request.
    fn ends_registration(&self) -> bool {
        let newest = self.newest.slot().filter(|_| self.has_open_end());
        let dto = newest.and_then(|slot| self.slots.get(slot));
        dto.is_some_and(|dto| dto.flags.has(CompletionFlags::WITH_NEXT))
    }

    /// Frees the slot of a request that could not be posted to the device.
    pub(crate) fn cancel(&mut self, slot: u32) {
        let number = self.slots.position(slot).map(|position| position.number);
        if self.complete(slot).is_some() && number == Some(self.last_signalled) {
            // The last one before it is not known. So all unsignalled requests count as its
            // followers.
            let oldest = self.number_of(self.oldest);
            let first = oldest.unwrap_or(self.next_number);
            self.last_signalled = first.wrapping_sub(1);
        }
    }

    /// Returns whether an unsignalled request is in flight.
    pub(crate) fn has_unsignalled(&self) -> bool {
        self.oldest != Neighbour::NONE
    }

    /// Retires the oldest unsignalled request that was posted before the one in `slot`, which has
    /// completed: frees its slot. Returns its slot and the request; `None` if there is none.
    pub(crate) fn retire_before(&mut self, slot: u32) -> Option<(u32, Dto)> {
        let oldest = self.oldest.slot()?;
        let number = self.slots.position(slot)?.number;
        if !precedes(self.slots.position(oldest)?.number, number) {
            return None;
        }
        self.complete(oldest).map(|dto| (oldest, dto))
    }

    /// Returns whether the last request is unsignalled, so that no completion will show its
    /// success.
    pub(crate) fn has_open_end(&self) -> bool {
        let newest = self.number_of(self.newest);
        newest.is_some_and(|newest| precedes(self.last_signalled, newest))
    }

    /// Returns whether no request was posted since the last call.
    pub(crate) fn is_idle_since_last_call(&mut self) -> bool {
        core::mem::replace(&mut self.seen_number, self.next_number) == self.next_number
    }

    /// Frees the slot of the newest request of the open end, which no completion will retire.
    /// Returns its slot and the request; `None` if the end is not open. A registration keeps its
    /// slot, because the driver may access the region: the device reports it as flushed, or the
    /// queue pair is destroyed (hfi1 carries a registration out when it is posted).
    pub(crate) fn give_up_end(&mut self) -> Option<(u32, Dto)> {
        let newest = self.newest.slot().filter(|_| self.has_open_end())?;
        if self.slots.get(newest)?.operation.is_local() {
            return None;
        }
        self.complete(newest).map(|dto| (newest, dto))
    }

    /// Frees the slot of a completed request. Returns the request; `None` if no request is in
    /// flight in the slot.
    pub(crate) fn complete(&mut self, slot: u32) -> Option<Dto> {
        self.leave(slot).complete(slot)
    }

    /// Takes a request out of the order, if one is in flight in the slot. Returns the slots, of
    /// which the caller frees this one.
    #[inline(always)]
    pub(crate) fn leave(&mut self, slot: u32) -> &mut DtoSlots<S> {
        // Most often the order is empty.
        if self.has_unsignalled() {
            self.remove(slot);
        }
        if self.markers != 0 {
            self.uncount_marker(slot);
        }
        &mut self.slots
    }

    fn uncount_marker(&mut self, slot: u32) {
        let dto = self.slots.get(slot);
        if dto.is_some_and(|dto| dto.flags.has(CompletionFlags::MARKER)) {
            self.markers = self.markers.wrapping_sub(1);
        }
    }

    /// Returns the number of the request in flight in a slot of the list.
    fn number_of(&self, slot: Neighbour) -> Option<u32> {
        self.slots
            .position(slot.slot()?)
            .map(|position| position.number)
    }

    /// Appends a request, whose position names its predecessor, to the list of unsignalled ones.
    fn append(&mut self, slot: u32) {
        let added = Neighbour::new(Some(slot));
        self.set_next(self.newest, added);
        self.newest = added;
    }

    /// Removes a request from the list of unsignalled ones, if it is in there.
    fn remove(&mut self, slot: u32) {
        let Some(position) = self.slots.position(slot) else {
            return;
        };
        if position.previous == Neighbour::NONE && self.oldest != Neighbour::new(Some(slot)) {
            return;
        }
        self.set_next(position.previous, position.next);
        self.set_previous(position.next, position.previous);
    }

    /// Sets the successor of a request in the list, or the first one.
    fn set_next(&mut self, of: Neighbour, next: Neighbour) {
        match of.slot().and_then(|slot| self.slots.position_mut(slot)) {
            Some(position) => position.next = next,
            None => self.oldest = next,
        }
    }

    /// Sets the predecessor of a request in the list, or the last one.
    fn set_previous(&mut self, of: Neighbour, previous: Neighbour) {
        match of.slot().and_then(|slot| self.slots.position_mut(slot)) {
            Some(position) => position.previous = previous,
            None => self.newest = previous,
        }
    }
}
