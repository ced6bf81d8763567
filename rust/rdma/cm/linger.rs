// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ids that outlive their owners, until the peer has answered a disconnect.
//!
//! `ib_cm` asks the peer again and again until it answers, but no more once the id is destroyed; and who
//! frees an Endpoint, or is killed, does not wait. If the one message that was sent gets lost, a peer
//! that sends nothing itself would never hear that the connection is over.

use super::{
    borrowed::IdRef,
    id::Owned,
    Event,
    Handler, //
};
use crate::sys::workqueue::{
    cancel_delayed_sync,
    queue, //
};
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_mutex, new_work,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    },
    workqueue::{
        DelayedWork,
        Work,
        WorkItem, //
    },
};

/// Milliseconds that a peer has for its answer: `ib_cm` asks every four seconds.
const PATIENCE_MS: u32 = 30_000;

/// How many ids of a device linger at most. Beyond that the oldest goes.
const MOST: usize = 1_024;

/// The work item that runs when a peer has answered.
const ANSWERED: u64 = 0;

/// The work item that runs when a peer has had its time.
const EXPIRED: u64 = 1;

/// An id, and since when it lingers.
struct Entry {
    id: Owned,
    since: Instant<Monotonic>,
}

impl Entry {
    /// Milliseconds that the peer still has.
    fn time_left(&self) -> u32 {
        let passed = u32::try_from(self.since.elapsed().as_millis()).unwrap_or(u32::MAX);
        PATIENCE_MS.saturating_sub(passed)
    }

    fn is_done(&self) -> bool {
        self.id.context.is_over() || self.time_left() == 0
    }
}

/// The ids of a device that linger.
#[pin_data]
pub(in crate::rdma) struct Lingering {
    /// Oldest first; `None` once the device goes. Not held when an id is destroyed.
    #[pin]
    entries: Mutex<Option<KVVec<Entry>>>,
    #[pin]
    answered: Work<Lingering, ANSWERED>,
    #[pin]
    expired: DelayedWork<Lingering, EXPIRED>,
}

impl Lingering {
    /// None yet.
    pub(in crate::rdma) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                entries <- new_mutex!(Some(KVVec::new()), "Lingering::entries"),
                answered <- new_work!("Lingering::answered"),
                expired <- new_delayed_work!("Lingering::expired"),
            }),
            GFP_KERNEL,
        )
    }

    /// Destroys an id, at once or when its peer has answered. Nobody hears of its events any more.
    ///
    /// Context: process; sleeps. Never in a handler of the id.
    pub(super) fn take_over(this: &Arc<Self>, id: Owned) {
        if !id.context.is_unanswered() {
            return;
        }
        // What that drops may wait for a handler.
        drop(id.hand_over(this.clone()));
        let context = id.context.clone();
        drop(this.keep(id));
        // The answer may have come before the id had its place.
        if context.is_over() {
            this.look_now();
        }
    }

    /// Returns an id that has to be destroyed instead: the one that lingers longest if there are too many.
    fn keep(self: &Arc<Self>, id: Owned) -> Option<Owned> {
        let mut guard = self.entries.lock();
        let Some(entries) = (*guard).as_mut() else {
            return Some(id);
        };
        if entries.reserve(1, GFP_KERNEL).is_err() {
            return Some(id);
        }
        let since = Instant::now();
        let entry = Entry { id, since };
        if let Err(full) = entries.push_within_capacity(entry) {
            return Some(full.0.id);
        }
        let oldest = if entries.len() > MOST {
            entries.remove(0).ok()
        } else {
            None
        };
        self.look_later(entries);
        oldest.map(|entry| entry.id)
    }

    /// Once the oldest has had its time. With the list at hand: nothing is queued any more once that is
    /// closed.
    fn look_later(self: &Arc<Self>, entries: &[Entry]) {
        if let Some(oldest) = entries.first() {
            let delay = msecs_to_jiffies(oldest.time_left()).saturating_add(1);
            let _ = queue().enqueue_delayed::<_, EXPIRED>(self.clone(), delay);
        }
    }

    fn look_now(self: &Arc<Self>) {
        let _ = queue().enqueue::<_, ANSWERED>(self.clone());
    }

    /// Destroys those whose peers have answered, or had their time.
    fn look(self: &Arc<Self>) {
        while let Some(done) = self.take_done() {
            drop(done);
        }
    }

    fn take_done(&self) -> Option<Entry> {
        let mut guard = self.entries.lock();
        let entries = (*guard).as_mut()?;
        let position = entries.iter().position(Entry::is_done)?;
        entries.remove(position).ok()
    }

    /// The device goes: destroys them all, and those that come from now on at once.
    ///
    /// Context: process; sleeps.
    pub(in crate::rdma) fn close(this: &Arc<Self>) {
        let entries = this.entries.lock().take();
        drop(entries);
        cancel_delayed_sync::<_, EXPIRED>(this);
    }
}

impl Handler for Lingering {
    fn event(self: Arc<Self>, id: &IdRef<'_>, event: Event<'_>) {
        if matches!(event, Event::Established(_)) {
            // It was left before the peer had confirmed: only now can the peer be asked.
            id.disconnect();
        } else {
            // A handler must not destroy its own id.
            self.look_now();
        }
    }
}

impl_has_work! {
    impl HasWork<Self, { ANSWERED }> for Lingering { self.answered }
}

impl WorkItem<ANSWERED> for Lingering {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.look();
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { EXPIRED }> for Lingering { self.expired }
}

impl WorkItem<EXPIRED> for Lingering {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.look();
        let guard = this.entries.lock();
        if let Some(entries) = (*guard).as_ref() {
            this.look_later(entries);
        }
    }
}
