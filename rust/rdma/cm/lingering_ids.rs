// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Lingering IDs: their destruction is deferred.
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
    rbtree::{
        self,
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
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

type EntryNode = RBTreeNode<u64, Entry>;
type AccountNode = RBTreeNode<UserId, Account>;

/// Lingering IDs of a user on a device, by the order in which they were added. Each ID has a node
/// of its own, so no memory is allocated or freed with the lock held, which a worker of `rdma_cm`
/// takes, too.
struct Account {
    /// Number of connects and accepts without an outcome.
    calls: usize,
    entries: RBTree<u64, Entry>,
    len: usize,
    next: u64,
}

impl Account {
    fn new() -> Self {
        Self {
            calls: 0,
            entries: RBTree::new(),
            len: 0,
            next: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.calls == 0 && self.len == 0
    }

    /// Removes the first entry that `selects`.
    fn remove_first(&mut self, selects: impl Fn(&Entry) -> bool) -> Option<EntryNode> {
        let mut entries = self.entries.iter();
        let (&number, _) = entries.find(|(_, entry)| selects(entry))?;
        self.len = self.len.saturating_sub(1);
        self.entries.remove_node(&number)
    }

    /// Adds an entry. If there are too many, it removes the oldest one and returns it.
    ///
    /// Entries with a pending call are not removed, because destroying them would wait. The number
    /// of pending calls is limited to [`MAX_PER_USER`] as well, so another entry can be found.
    fn keep(&mut self, node: RBTreeNodeReservation<u64, Entry>, entry: Entry) -> Option<EntryNode> {
        self.entries.insert(node.into_node(self.next, entry));
        self.next = self.next.wrapping_add(1);
        self.len = self.len.saturating_add(1);
        if self.len <= MAX_PER_USER {
            return None;
        }
        self.remove_first(|entry| entry.time_left().is_some())
    }
}

/// Accounts by user. Only users with IDs or calls on the device have an account.
type Accounts = RBTree<UserId, Account>;

/// Removes an account if it is empty. The caller drops it without the lock.
fn close_if_empty(accounts: &mut Accounts, user: UserId) -> Option<AccountNode> {
    let is_empty = accounts.get(&user).is_some_and(Account::is_empty);
    is_empty.then(|| accounts.remove_node(&user)).flatten()
}

/// Permit for one call without an outcome, until the drop.
pub(super) struct CallPermit {
    lingering: Arc<LingeringIds>,
    user: UserId,
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let mut guard = self.lingering.accounts.lock();
        let Some(accounts) = (*guard).as_mut() else {
            return;
        };
        if let Some(account) = accounts.get_mut(&self.user) {
            account.calls = account.calls.saturating_sub(1);
        }
        let closed = close_if_empty(accounts, self.user);
        drop(guard);
        drop(closed);
    }
}

/// The IDs of a device that linger.
#[pin_data]
pub(in crate::rdma) struct LingeringIds {
    /// `None` once the device is being removed. The lock is not held while an ID is destroyed,
    /// because that waits for handlers.
    #[pin]
    accounts: Mutex<Option<Accounts>>,
    #[pin]
    answered: Work<LingeringIds, ANSWERED>,
    #[pin]
    expired: DelayedWork<LingeringIds, EXPIRED>,
}

impl LingeringIds {
    /// Creates an empty list.
    pub(in crate::rdma) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                accounts <- new_mutex!(Some(RBTree::new()), "LingeringIds::accounts"),
                answered <- new_work!("LingeringIds::answered"),
                expired <- new_delayed_work!("LingeringIds::expired"),
            }),
            GFP_KERNEL,
        )
    }

    /// Calls `work` with the account of a user, which is created if it does not exist, and with
    /// the lock held.
    ///
    /// # Errors
    ///
    /// `ENODEV` while the device is being removed, `ENOMEM`.
    fn with_account<T>(&self, user: UserId, work: impl FnOnce(&mut Account) -> T) -> Result<T> {
        if let Some(account) = (*self.accounts.lock())
            .as_mut()
            .ok_or(ENODEV)?
            .get_mut(&user)
        {
            return Ok(work(account));
        }
        // Another thread may create the account meanwhile. The guard is dropped before the node.
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let mut guard = self.accounts.lock();
        let accounts = (*guard).as_mut().ok_or(ENODEV)?;
        Ok(work(match accounts.entry(user) {
            rbtree::Entry::Occupied(account) => account.into_mut(),
            rbtree::Entry::Vacant(vacant) => vacant.insert(Account::new(), node),
        }))
    }

    /// Reserves one call without an outcome for a user. This also limits the number of IDs that
    /// cannot be removed from the list because the driver still waits for the peer.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if the user has too many, `ENODEV` while the device is being removed, `ENOMEM`.
    pub(super) fn permit_call(self: &Arc<Self>, user: UserId) -> Result<CallPermit> {
        self.with_account(user, |account| {
            if account.calls >= MAX_PER_USER {
                return Err(EAGAIN);
            }
            account.calls = account.calls.saturating_add(1);
            Ok(())
        })??;
        Ok(CallPermit {
            lingering: self.clone(),
            user,
        })
    }

    /// Destroys an ID, at once or after the peer has answered. Its handler gets no more events.
    ///
    /// Context: process; sleeps. Must not be called in a handler of the ID.
    pub(super) fn destroy_or_defer(id: Owned) {
        if !id.context.is_unanswered() {
            return;
        }
        let context = id.context.clone();
        let this = context.lingering();
        // Dropping the previous handler may wait for a running one.
        drop(id.hand_over(this.clone()));
        this.keep(id);
        // The answer may have come before the ID was in the list.
        if !context.is_unanswered() {
            this.check_now();
        }
    }

    /// Adds an ID to the list. Destroys the oldest one if the user has too many, or the new one if
    /// it cannot be added.
    fn keep(self: &Arc<Self>, id: Owned) {
        let user = id.context.user();
        let since = Instant::now();
        let entry = Entry { id, since };
        let Ok(node) = RBTreeNodeReservation::new(GFP_KERNEL) else {
            return;
        };
        let oldest = self.with_account(user, |account| {
            let oldest = account.keep(node, entry);
            // Queue the work with the lock held: `close` removes the accounts before it cancels the
            // work, so no work is queued afterwards.
            self.check_after(ANSWER_TIMEOUT_MS);
            oldest
        });
        drop(oldest);
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
    fn destroy_done(&self) {
        let mut turn = None;
        while let Some(done) = self.take_done(&mut turn) {
            drop(done);
        }
    }

    /// Removes and returns the next entry that is done, beginning with the user after `turn`, and
    /// sets `turn` to its user. Users take turns, so one that frees many Endpoints does not delay
    /// the others.
    fn take_done(&self, turn: &mut Option<UserId>) -> Option<EntryNode> {
        let mut guard = self.accounts.lock();
        let accounts = (*guard).as_mut()?;
        let is_after = |user: &UserId| turn.is_none_or(|turn| *user > turn);
        let has_done = |account: &Account| account.entries.values().any(Entry::is_done);
        let mut later = accounts.iter().filter(|(user, _)| is_after(user));
        let found = later.find(|(_, account)| has_done(account));
        let found = found.or_else(|| accounts.iter().find(|(_, account)| has_done(account)));
        let user = *found?.0;
        *turn = Some(user);
        let done = accounts.get_mut(&user)?.remove_first(Entry::is_done);
        let closed = close_if_empty(accounts, user);
        drop(guard);
        drop(closed);
        done
    }

    /// Schedules a check for the time at which the first entry expires.
    fn schedule_check(self: &Arc<Self>) {
        let guard = self.accounts.lock();
        let accounts = (*guard).iter().flat_map(RBTree::values);
        let oldest =
            accounts.filter_map(|account| account.entries.values().find_map(Entry::time_left));
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

impl Handler for LingeringIds {
    fn event(self: Arc<Self>, id: &IdRef<'_>, event: Event<'_>) {
        // The owner dropped the ID before the peer had confirmed. The caller asks the peer once
        // more to disconnect. The peer will answer that.
        if matches!(event, Event::Established(..)) && !id.is_iwarp() {
            return;
        }
        // A handler must not destroy its own ID, so a work item does. Over iWARP the destruction
        // also informs the peer.
        id.context().end();
        self.check_now();
    }
}

impl_has_work! {
    impl HasWork<Self, { ANSWERED }> for LingeringIds { self.answered }
}

impl WorkItem<ANSWERED> for LingeringIds {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.destroy_done();
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { EXPIRED }> for LingeringIds { self.expired }
}

impl WorkItem<EXPIRED> for LingeringIds {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.destroy_done();
        this.schedule_check();
    }
}
