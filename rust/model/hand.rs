// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The event that a consumer takes along while it drains.
//!
//! Who finds the ring empty and drains would push the oldest event into it only to pop it at once. So it
//! holds out a hand. What is put there was the oldest event of the EVD: the ring had none at that moment,
//! and the consumer's lock is held, so that nobody else takes any. What is pushed later comes later.
//!
//! An Endpoint's events keep their order: each of them is pushed, or put into the hand, under the Endpoint's lock.
//! If one was pushed before, ESTABLISHED above all, then the ring is not empty, and this one goes behind it.

use super::{
    event::{
        Event,
        Record, //
    },
    ring::Ring, //
};

/// Where a consumer gets an event.
pub(crate) trait Sink {
    /// Puts an event there that came to the EVD with this handle. With locks: it must neither sleep nor take any.
    fn put(&mut self, evd: u64, event: &Event);

    /// Puts one there that lay in a ring. As [`Sink::put`].
    fn put_record(&mut self, record: &Record);
}

impl Sink for Record {
    fn put(&mut self, evd: u64, event: &Event) {
        *self = event.encode(evd);
    }

    fn put_record(&mut self, record: &Record) {
        *self = *record;
    }
}

/// How far a drain goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To the end of the completion queues, or as far as the ring has room.
    All,
    /// Until there is an event.
    One,
}

/// Where a drain puts the oldest event.
pub(crate) struct Hand<'a> {
    /// The place for it; `None` in a hand that is closed.
    sink: Option<&'a mut dyn Sink>,
    full: bool,
    /// An event was kept out by an older one in the ring.
    refused: bool,
    reach: Reach,
}

impl<'a> Hand<'a> {
    /// Takes nothing: all events go into the ring.
    pub(crate) fn closed() -> Self {
        Self {
            sink: None,
            full: false,
            refused: false,
            reach: Reach::All,
        }
    }

    /// Takes one event, if there is any. The ring is empty.
    pub(crate) fn open(sink: &'a mut dyn Sink, reach: Reach) -> Self {
        Self {
            sink: Some(sink),
            full: false,
            refused: false,
            reach,
        }
    }

    /// Whether it has an event.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Whether the drain may go on.
    pub(crate) fn goes_on(&self) -> bool {
        self.reach == Reach::All || !self.full
    }

    /// Whether it is the next event that goes here, and no other is wanted: none was kept out by one in the
    /// ring, which was empty when the hand was opened.
    pub(crate) fn wants_next(&self) -> bool {
        self.reach == Reach::One && !self.full && !self.refused
    }

    /// How many completions to look at at once, of at most so many.
    pub(crate) fn at_once(&self, most: usize) -> usize {
        match self.reach {
            Reach::All => most,
            Reach::One => most.min(1),
        }
    }

    /// Takes an event of the EVD with this handle, unless it has one, or the ring has, which is older. With the
    /// locks under which the ring is popped, and under which the events of this one's Endpoint are pushed.
    #[inline]
    pub(crate) fn takes(&mut self, ring: &Ring, evd: u64, event: &Event) -> bool {
        let Some(sink) = &mut self.sink else {
            return false;
        };
        if self.full {
            return false;
        }
        if !ring.has_none() {
            self.refused = true;
            return false;
        }
        sink.put(evd, event);
        self.full = true;
        true
    }
}
