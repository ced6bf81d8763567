// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ids that outlive their owners: until the peer has answered a disconnect, or, over iWARP, until the
//! outcome of a connect or an accept is known, for which `rdma_destroy_id` would wait.
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
use crate::sys::{
    user::UserId,
    workqueue::{
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

/// Milliseconds that a peer has for its answer: `ib_cm` asks every four seconds.
const PATIENCE_MS: u32 = 30_000;

/// How many ids of a user linger at most, and how many calls of one have no outcome at most, on each
/// device.
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
    /// Milliseconds that the peer still has; `None` if it may take as long as the driver lets it.
    /// Destroying such an id would wait for the driver, in a worker that others need.
    fn time_left(&self) -> Option<u32> {
        if self.id.context.call().is_pending() {
            return None;
        }
        let passed = u32::try_from(self.since.elapsed().as_millis()).unwrap_or(u32::MAX);
        Some(PATIENCE_MS.saturating_sub(passed))
    }

    fn is_done(&self) -> bool {
        !self.id.context.is_unanswered() || self.time_left() == Some(0)
    }
}

/// What a user has on a device.
struct Account {
    user: UserId,
    /// Connects and accepts without an outcome.
    claims: usize,
    /// Oldest first.
    entries: KVVec<Entry>,
}

impl Account {
    fn is_empty(&self) -> bool {
        self.claims == 0 && self.entries.is_empty()
    }

    /// Adds an id, and takes the one out that lingers longest if there are too many. What is still
    /// pending stays: the claims are limited, so something else is there to go.
    fn keep(&mut self, entry: Entry) -> Option<Entry> {
        if let Err(full) = self.entries.push_within_capacity(entry) {
            return Some(full.0);
        }
        if self.entries.len() <= MOST {
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

/// The account of a user. There are as many as there are users with something on the device.
fn account(accounts: &mut KVVec<Account>, user: UserId) -> Result<&mut Account> {
    let place = match accounts.iter().position(|account| account.user == user) {
        Some(place) => place,
        None => {
            let account = Account {
                user,
                claims: 0,
                entries: KVVec::new(),
            };
            accounts.push(account, GFP_KERNEL)?;
            accounts.len().saturating_sub(1)
        }
    };
    accounts.get_mut(place).ok_or(ENOMEM)
}

/// Removes an account, if nothing is left of it.
fn close_if_empty(accounts: &mut KVVec<Account>, place: usize) -> bool {
    let is_empty = accounts.get(place).is_some_and(Account::is_empty);
    is_empty && accounts.remove(place).is_ok()
}

/// One call without an outcome, until the drop.
pub(super) struct Claim {
    lingering: Arc<Lingering>,
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

/// The ids of a device that linger.
#[pin_data]
pub(in crate::rdma) struct Lingering {
    /// By user; `None` once the device goes. Not held when an id is destroyed.
    #[pin]
    accounts: Mutex<Option<KVVec<Account>>>,
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
                accounts <- new_mutex!(Some(KVVec::new()), "Lingering::accounts"),
                answered <- new_work!("Lingering::answered"),
                expired <- new_delayed_work!("Lingering::expired"),
            }),
            GFP_KERNEL,
        )
    }

    /// One more call of a user without an outcome. So the ids that linger for one are limited, too: none
    /// has to be destroyed while the driver still waits for the peer.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if the user has too many, `ENODEV` while the device goes, `ENOMEM`.
    pub(super) fn claim(self: &Arc<Self>, user: UserId) -> Result<Claim> {
        let mut guard = self.accounts.lock();
        let account = account((*guard).as_mut().ok_or(ENODEV)?, user)?;
        if account.claims >= MOST {
            return Err(EAGAIN);
        }
        account.claims = account.claims.saturating_add(1);
        Ok(Claim {
            lingering: self.clone(),
            user,
        })
    }

    /// Destroys an id, at once or when its peer has answered. Nobody hears of its events any more.
    ///
    /// Context: process; sleeps. Never in a handler of the id.
    pub(super) fn take_over(id: Owned) {
        if !id.context.is_unanswered() {
            return;
        }
        let context = id.context.clone();
        let this = context.lingering();
        // What that drops may wait for a handler.
        drop(id.hand_over(this.clone()));
        drop(this.keep(id));
        // The answer may have come before the id had its place.
        if !context.is_unanswered() {
            this.look_now();
        }
    }

    /// Returns what has to be destroyed instead: the id that lingers longest if its user has too many.
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
        if account.entries.reserve(1, GFP_KERNEL).is_err() {
            return Some(entry);
        }
        let oldest = account.keep(entry);
        // With the list at hand: nothing is queued any more once that is closed.
        self.look_in(PATIENCE_MS);
        oldest
    }

    /// Unless it is to look earlier.
    fn look_in(self: &Arc<Self>, milliseconds: u32) {
        let delay = msecs_to_jiffies(milliseconds).saturating_add(1);
        let _ = queue().enqueue_delayed::<_, EXPIRED>(self.clone(), delay);
    }

    fn look_now(self: &Arc<Self>) {
        let _ = queue().enqueue::<_, ANSWERED>(self.clone());
    }

    /// Destroys those whose peers have answered, or had their time.
    fn look(&self) {
        let mut place = 0;
        while let Some(done) = self.take_done(&mut place) {
            drop(done);
        }
    }

    /// The next one from this account on.
    fn take_done(&self, place: &mut usize) -> Option<Entry> {
        let mut guard = self.accounts.lock();
        let accounts = (*guard).as_mut()?;
        loop {
            if let Some(done) = accounts.get_mut(*place)?.take_done() {
                return Some(done);
            }
            if !close_if_empty(accounts, *place) {
                *place = place.saturating_add(1);
            }
        }
    }

    /// Once the first of them has had its time.
    fn look_later(self: &Arc<Self>) {
        let guard = self.accounts.lock();
        let accounts = (*guard).iter().flatten();
        let oldest =
            accounts.filter_map(|account| account.entries.iter().find_map(Entry::time_left));
        if let Some(milliseconds) = oldest.min() {
            self.look_in(milliseconds);
        }
    }

    /// The device goes: destroys them all, and those that come from now on at once.
    ///
    /// Context: process; sleeps.
    pub(in crate::rdma) fn close(self: &Arc<Self>) {
        let accounts = self.accounts.lock().take();
        drop(accounts);
        cancel_delayed_sync::<_, EXPIRED>(self);
    }
}

impl Handler for Lingering {
    fn event(self: Arc<Self>, id: &IdRef<'_>, event: Event<'_>) {
        if matches!(event, Event::Established(_)) && !id.is_iwarp() {
            // It was left before the peer had confirmed: only now can the peer be asked.
            id.disconnect();
        } else {
            // A handler must not destroy its own id. Over iWARP that tells the peer, too.
            id.context().end();
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
        this.look_later();
    }
}
