// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! IDs whose destruction is deferred.
//!
//! An ID outlives its owner in two cases: until the peer has answered a disconnect and, over iWARP,
//! until the outcome of a connect or an accept is known, because `rdma_destroy_id` would wait for
//! that.
//!
//! `ib_cm` repeats a disconnect request until the peer answers, but stops once the ID is destroyed.
//! A process that frees an Endpoint, or is killed, does not wait for the answer. If the only
//! message were lost, a peer that sends nothing itself would never learn that the connection has
//! ended.

use super::{
    borrowed::IdRef,
    id::Owned,
    Event,
    Handler, //
};
use crate::sys::{
    kvvec,
    user::UserId,
    workqueue::{
        cancel_delayed,
        cancel_delayed_sync,
        queue, //
    },
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

/// Time for a peer to answer, in milliseconds. `ib_cm` repeats its request every four seconds.
const ANSWER_TIMEOUT_MS: u32 = 30_000;

/// Largest number, per user and device, of IDs in the list, and of calls without an outcome.
const MAX_PER_USER: usize = 1_024;

/// The work item that runs after an answer of a peer.
const ANSWERED: u64 = 0;

/// The work item that runs when a peer's time has expired.
const EXPIRED: u64 = 1;

/// An ID, and the time at which it was added.
struct Entry {
    id: Owned,
    since: Instant<Monotonic>,
}

impl Entry {
    /// Returns how many milliseconds the peer has left. `None` if the outcome of a call is not
    /// known: the driver then sets the limit. Destroying such an ID would wait for the driver, in a
    /// worker that other IDs need.
    fn time_left(&self) -> Option<u32> {
        if self.id.context.call().is_pending() {
            return None;
        }
        let passed = u32::try_from(self.since.elapsed().as_millis()).unwrap_or(u32::MAX);
        Some(ANSWER_TIMEOUT_MS.saturating_sub(passed))
    }

    fn is_done(&self) -> bool {
        !self.id.context.is_unanswered() || self.time_left() == Some(0)
    }
}

/// State of a user on a device.
struct UserEntries {
    user: UserId,
    /// Number of connects and accepts without an outcome.
    claims: usize,
    /// Oldest first.
    entries: KVVec<Entry>,
}

impl UserEntries {
    fn is_empty(&self) -> bool {
        self.claims == 0 && self.entries.is_empty()
    }

    /// Adds an entry. If there are too many, it removes the oldest one and returns it.
    ///
    /// Entries with a pending call are not removed, because destroying them would wait. The number
    /// of pending calls is limited to [`MAX_PER_USER`] as well, so another entry can be found.
    fn keep(&mut self, entry: Entry) -> Option<Entry> {
        if let Err(full) = self.entries.push_within_capacity(entry) {
            return Some(full.0);
        }
        if self.entries.len() <= MAX_PER_USER {
            return None;
        }
        let goes = |entry: &Entry| entry.time_left().is_some();
        let oldest = self.entries.iter().position(goes)?;
        self.entries.remove(oldest).ok()
    }

    fn take_done(&mut self) -> Option<Entry> {
        let position = self.entries.iter().position(Entry::is_done)?;
        self.entries.remove(position).ok()
    }
}

/// Returns the account of a user, and creates it if necessary. Only users with IDs or calls on the
/// device have an account.
fn account(accounts: &mut KVVec<UserEntries>, user: UserId) -> Result<&mut UserEntries> {
    let place = match accounts.iter().position(|account| account.user == user) {
        Some(place) => place,
        None => {
            let account = UserEntries {
                user,
                claims: 0,
                entries: KVVec::new(),
            };
            kvvec::push(accounts, account, GFP_KERNEL)?;
            accounts.len().saturating_sub(1)
        }
    };
    accounts.get_mut(place).ok_or(ENOMEM)
}

/// Removes an account if it is empty. Returns whether it did.
fn close_if_empty(accounts: &mut KVVec<UserEntries>, place: usize) -> bool {
    let is_empty = accounts.get(place).is_some_and(UserEntries::is_empty);
    is_empty && accounts.remove(place).is_ok()
}

/// Right to one call without an outcome. It ends with the drop.
pub(super) struct Claim {
    lingering: Arc<DeferredDestroy>,
    user: UserId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut guard = self.lingering.accounts.lock();
        let Some(accounts) = (*guard).as_mut() else {
            return;
        };
        let place = accounts
            .iter()
            .position(|account| account.user == self.user);
        if let Some(account) = place.and_then(|place| accounts.get_mut(place)) {
            account.claims = account.claims.saturating_sub(1);
        }
        if let Some(place) = place {
            close_if_empty(accounts, place);
        }
    }
}

/// The IDs of a device whose destruction is deferred.
#[pin_data]
pub(in crate::rdma) struct DeferredDestroy {
    /// Accounts by user. `None` once the device is being removed. The lock is not held while an ID
    /// is destroyed, because that waits for handlers.
    #[pin]
    accounts: Mutex<Option<KVVec<UserEntries>>>,
    #[pin]
    answered: Work<DeferredDestroy, ANSWERED>,
    #[pin]
    expired: DelayedWork<DeferredDestroy, EXPIRED>,
}

impl DeferredDestroy {
    /// Creates an empty list.
    pub(in crate::rdma) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                accounts <- new_mutex!(Some(KVVec::new()), "DeferredDestroy::accounts"),
                answered <- new_work!("DeferredDestroy::answered"),
                expired <- new_delayed_work!("DeferredDestroy::expired"),
            }),
            GFP_KERNEL,
        )
    }

    /// Reserves one call without an outcome for a user. This also limits the number of IDs that
    /// cannot be removed from the list because the driver still waits for the peer.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if the user has too many, `ENODEV` while the device is being removed, `ENOMEM`.
    pub(super) fn claim(self: &Arc<Self>, user: UserId) -> Result<Claim> {
        let mut guard = self.accounts.lock();
        let account = account((*guard).as_mut().ok_or(ENODEV)?, user)?;
        if account.claims >= MAX_PER_USER {
            return Err(EAGAIN);
        }
        account.claims = account.claims.saturating_add(1);
        Ok(Claim {
            lingering: self.clone(),
            user,
        })
    }

    /// Destroys an ID, at once or after the peer has answered. Its handler gets no more events.
    ///
    /// Context: process; sleeps. Must not be called in a handler of the ID.
    pub(super) fn take_over(id: Owned) {
        if !id.context.is_unanswered() {
            return;
        }
        let context = id.context.clone();
        let this = context.lingering();
        // Dropping the previous handler may wait for a running one.
        drop(id.hand_over(this.clone()));
        drop(this.keep(id));
        // The answer may have come before the ID was in the list.
        if !context.is_unanswered() {
            this.check_now();
        }
    }

    /// Adds an ID to the list. Returns an entry that must be destroyed now: the oldest one if the
    /// user has too many, or the new one if it cannot be added.
    fn keep(self: &Arc<Self>, id: Owned) -> Option<Entry> {
        let user = id.context.user();
        let since = Instant::now();
        let entry = Entry { id, since };
        let mut guard = self.accounts.lock();
        let Some(accounts) = (*guard).as_mut() else {
            return Some(entry);
        };
        let Ok(account) = account(accounts, user) else {
            return Some(entry);
        };
        if kvvec::reserve(&mut account.entries, 1, GFP_KERNEL).is_err() {
            return Some(entry);
        }
        let oldest = account.keep(entry);
        // Queue the work with the lock held: `close` removes the accounts before it cancels the
        // work, so no work is queued afterwards.
        self.check_after(ANSWER_TIMEOUT_MS);
        oldest
    }

    /// Schedules a check after `milliseconds`, unless one is scheduled already.
    fn check_after(self: &Arc<Self>, milliseconds: u32) {
        let delay = msecs_to_jiffies(milliseconds).saturating_add(1);
        let _ = queue().enqueue_delayed::<_, EXPIRED>(self.clone(), delay);
    }

    /// Schedules a check now.
    fn check_now(self: &Arc<Self>) {
        let _ = queue().enqueue::<_, ANSWERED>(self.clone());
    }

    /// Destroys the IDs whose peers have answered or whose time has expired.
    fn look(&self) {
        let mut place = 0;
        while let Some(done) = self.take_done(&mut place) {
            drop(done);
        }
    }

    /// Removes and returns the next entry that is done, starting from the account at `place`. Users
    /// take turns, so one that frees many Endpoints does not delay the others.
    fn take_done(&self, place: &mut usize) -> Option<Entry> {
        let mut guard = self.accounts.lock();
        let accounts = (*guard).as_mut()?;
        for _ in 0..accounts.len() {
            if *place >= accounts.len() {
                *place = 0;
            }
            let done = accounts.get_mut(*place)?.take_done();
            if done.is_none() && close_if_empty(accounts, *place) {
                continue;
            }
            *place = place.saturating_add(1);
            if done.is_some() {
                return done;
            }
        }
        None
    }

    /// Schedules a check for the time at which the first entry expires.
    fn schedule_check(self: &Arc<Self>) {
        let guard = self.accounts.lock();
        let accounts = (*guard).iter().flatten();
        let oldest =
            accounts.filter_map(|account| account.entries.iter().find_map(Entry::time_left));
        if let Some(milliseconds) = oldest.min() {
            // An entry that was added during this check has scheduled one for its own, later time.
            cancel_delayed::<_, EXPIRED>(self);
            self.check_after(milliseconds);
        }
    }

    /// Destroys all IDs in the list. From now on, IDs are destroyed at once. Called when the device
    /// is removed.
    ///
    /// Context: process; sleeps.
    pub(in crate::rdma) fn close(self: &Arc<Self>) {
        let accounts = self.accounts.lock().take();
        drop(accounts);
        cancel_delayed_sync::<_, EXPIRED>(self);
    }
}

impl Handler for DeferredDestroy {
    fn event(self: Arc<Self>, id: &IdRef<'_>, event: Event<'_>) {
        if matches!(event, Event::Established(..)) && !id.is_iwarp() {
            // The owner dropped the ID before the peer had confirmed. The peer can be asked to
            // disconnect only now.
            id.disconnect();
        } else {
            // A handler must not destroy its own ID, so a work item does. Over iWARP the
            // destruction also informs the peer.
            id.context().end();
            self.check_now();
        }
    }
}

impl_has_work! {
    impl HasWork<Self, { ANSWERED }> for DeferredDestroy { self.answered }
}

impl WorkItem<ANSWERED> for DeferredDestroy {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.look();
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { EXPIRED }> for DeferredDestroy { self.expired }
}

impl WorkItem<EXPIRED> for DeferredDestroy {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.look();
        this.schedule_check();
    }
}
