// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Users, what each of them holds over all its open files, and the limits of that.
//!
//! A process counts as its real user; in a user namespace that an ordinary user made, as the user
//! who made it. There is an account for each user that holds anything, and one more for each device
//! that it holds some of: the share of a device is compared with what the user has of that device. The
//! limits are the module's parameters, and apply from the next call on. A process with
//! `CAP_SYS_RESOURCE` is counted and not limited, as with the kernel's own resource limits.

use crate::model::allowance::{
    share_of,
    Item,
    Ledger,
    ITEMS, //
};
use kdapl_bindings as bindings;
use kernel::{
    fmt,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        global_lock,
        Arc, //
    },
};

/// Whose account it is, and of which device, by `ib_core`'s index; of none for all that the user has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    user: u64,
    device: Option<u32>,
}

/// The accounts.
type Accounts = RBTree<Key, Arc<Account>>;

global_lock! {
    // SAFETY: `Registration::new` initialises it before the first use.
    unsafe(uninit) static ACCOUNTS: Mutex<Option<Accounts>> = None;
}

/// The owner of the table of accounts: made once at load, before anything that uses it.
pub(crate) struct Registration(());

impl Registration {
    /// Makes the table.
    pub(crate) fn new() -> Self {
        // SAFETY: Called once, before anything that uses the table.
        unsafe { ACCOUNTS.init() };
        Self(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // It is empty now, but statics are not dropped.
        let accounts = ACCOUNTS.lock().take();
        drop(accounts);
    }
}

/// A reference to a user namespace, or to none.
///
/// # Invariants
///
/// The pointer is null, or valid, and one reference to it is ours.
struct Namespace(*mut bindings::user_namespace);

// SAFETY: References to a user namespace may be dropped from any thread.
unsafe impl Send for Namespace {}
// SAFETY: As above; nothing can be done with a reference.
unsafe impl Sync for Namespace {}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: By the invariant there is a reference to give back.
            unsafe { bindings::kdapl_helper_put_user_ns(self.0) };
        }
    }
}

/// Tells users apart: whoever has the same account is the same user.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserId(u64);

impl UserId {
    /// Returns that of the calling process. Context: process.
    pub(crate) fn current() -> Self {
        Self::current_in().0
    }

    /// As above, with the user namespace that the number belongs to.
    fn current_in() -> (Self, Namespace) {
        let mut namespace = core::ptr::null_mut();
        // SAFETY: The pointer is ours.
        let user = unsafe { bindings::kdapl_helper_current_user(&raw mut namespace) };
        // INVARIANT: The helper returned a referenced namespace, or null.
        (Self(user), Namespace(namespace))
    }
}

/// The account of a user.
struct Account {
    key: Key,
    /// Keeps the number of the namespace from becoming another's.
    _namespace: Namespace,
    ledger: Ledger,
    /// How many [`User`]s there are.
    users: Atomic<u32>,
}

/// A reference to the account of a user, which stays as long as there is one.
pub(crate) struct User {
    account: Arc<Account>,
    is_limited: bool,
}

impl User {
    /// The user of the calling process. Context: process; sleeps.
    pub(crate) fn current() -> Result<Self> {
        Self::current_of(None)
    }

    /// The user of the calling process, with what it has of one device. The number is the device's as
    /// long as anything is held.
    ///
    /// Context: process; sleeps.
    pub(crate) fn current_on(device: u32) -> Result<Self> {
        Self::current_of(Some(device))
    }

    fn current_of(device: Option<u32>) -> Result<Self> {
        let (UserId(user), namespace) = UserId::current_in();
        let key = Key { user, device };
        let account = match Self::find(key) {
            Some(account) => account,
            None => Self::open(key, namespace)?,
        };
        // SAFETY: Looks at the calling process only.
        let is_limited = !unsafe { bindings::kdapl_helper_is_unlimited() };
        Ok(Self {
            account,
            is_limited,
        })
    }

    /// Returns which user it is.
    pub(crate) fn id(&self) -> UserId {
        UserId(self.account.key.user)
    }

    /// The account of a user, with one more reference.
    fn find(key: Key) -> Option<Arc<Account>> {
        let accounts = ACCOUNTS.lock();
        let account = (*accounts).as_ref()?.get(&key)?;
        account.users.fetch_add(1, Relaxed);
        Some(account.clone())
    }

    /// Makes an account, unless somebody else was quicker.
    fn open(key: Key, namespace: Namespace) -> Result<Arc<Account>> {
        let account = Account {
            key,
            _namespace: namespace,
            ledger: Ledger::new(),
            users: Atomic::new(1),
        };
        // Allocated before the lock is taken: for memory a process may have to wait for long.
        let account = Arc::new(account, GFP_KERNEL_ACCOUNT)?;
        let node = RBTreeNode::new(key, account.clone(), GFP_KERNEL_ACCOUNT)?;
        let mut guard = ACCOUNTS.lock();
        let accounts = (*guard).get_or_insert_with(RBTree::new);
        if let Some(other) = accounts.get(&key) {
            other.users.fetch_add(1, Relaxed);
            let other = other.clone();
            // Freed after the lock is released, with its node.
            drop(guard);
            drop(node);
            return Ok(other);
        }
        accounts.insert(node);
        Ok(account)
    }

    /// Takes some of an item.
    ///
    /// # Errors
    ///
    /// `EAGAIN` above the user's limit.
    pub(crate) fn take(&self, item: Item, amount: u32) -> Result {
        self.take_within(item, amount, limit(item))
    }

    fn take_within(&self, item: Item, amount: u32, limit: u32) -> Result {
        let limit = if self.is_limited { limit } else { u32::MAX };
        if self.account.ledger.take(item, amount, limit) {
            Ok(())
        } else {
            Err(EAGAIN)
        }
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(&self, item: Item, amount: u32) {
        self.account.ledger.give_back(item, amount);
    }

    /// Takes some of an item until the drop of what this returns.
    ///
    /// # Errors
    ///
    /// As for [`User::take`].
    pub(crate) fn hold(&self, item: Item, amount: u32) -> Result<Hold> {
        self.take(item, amount)?;
        Ok(Hold {
            user: self.clone(),
            item,
            amount,
        })
    }

    /// Takes one of an item of which the [device](User::current_on) has `available`, until the drop of
    /// what this returns: one user may hold a part of that only.
    ///
    /// # Errors
    ///
    /// As for [`User::take`].
    pub(crate) fn hold_share(&self, item: Item, available: u32) -> Result<Hold> {
        let share = share_of(
            available,
            parameter(bindings::kdapl_limit_KDAPL_LIMIT_DEVICE_SHARE),
        );
        self.take_within(item, 1, share)?;
        Ok(Hold {
            user: self.clone(),
            item,
            amount: 1,
        })
    }
}

impl Clone for User {
    fn clone(&self) -> Self {
        self.account.users.fetch_add(1, Relaxed);
        Self {
            account: self.account.clone(),
            is_limited: self.is_limited,
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if self.account.users.fetch_sub(1, Full) != 1 {
            return;
        }
        let key = self.account.key;
        let unused = {
            let mut guard = ACCOUNTS.lock();
            let Some(accounts) = (*guard).as_mut() else {
                return;
            };
            // Somebody may have found it meanwhile, or have removed it and made another one.
            let is_unused = accounts.get(&key).is_some_and(|found| {
                Arc::ptr_eq(found, &self.account) && found.users.load(Acquire) == 0
            });
            is_unused.then(|| accounts.remove_node(&key)).flatten()
        };
        // Freed after the lock is released.
        drop(unused);
    }
}

/// Some of an item, until the drop.
pub(crate) struct Hold {
    user: User,
    item: Item,
    amount: u32,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.user.give_back(self.item, self.amount);
    }
}

/// A changing amount of an item, the rest of which is given back by the drop.
pub(crate) struct Tally {
    user: User,
    item: Item,
    amount: u32,
}

impl Tally {
    /// Nothing yet.
    pub(crate) fn new(user: User, item: Item) -> Self {
        Self {
            user,
            item,
            amount: 0,
        }
    }

    /// One more.
    ///
    /// # Errors
    ///
    /// As for [`User::take`].
    pub(crate) fn take(&mut self) -> Result {
        self.user.take(self.item, 1)?;
        self.amount = self.amount.saturating_add(1);
        Ok(())
    }

    /// One less.
    pub(crate) fn give_back(&mut self) {
        self.amount = self.amount.saturating_sub(1);
        self.user.give_back(self.item, 1);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.user.give_back(self.item, self.amount);
    }
}

/// A parameter of the module.
fn parameter(which: bindings::kdapl_limit) -> u32 {
    // SAFETY: Reads a number.
    unsafe { bindings::kdapl_helper_user_limit(which) }
}

/// How much of an item one user may hold.
fn limit(item: Item) -> u32 {
    parameter(match item {
        Item::Adapter => bindings::kdapl_limit_KDAPL_LIMIT_ADAPTERS,
        Item::Object => bindings::kdapl_limit_KDAPL_LIMIT_OBJECTS,
        Item::ServicePoint => bindings::kdapl_limit_KDAPL_LIMIT_SERVICE_POINTS,
        Item::QueuePair => bindings::kdapl_limit_KDAPL_LIMIT_QUEUE_PAIRS,
        Item::DriverMemory => bindings::kdapl_limit_KDAPL_LIMIT_DRIVER_MEMORY_KB,
        // Limited by the device's share, and as objects.
        Item::CompletionQueue | Item::Domain | Item::Region => return u32::MAX,
    })
}

/// Writes what each user holds, in all and of each device, and how often it was refused more.
pub(crate) fn write(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let accounts = ACCOUNTS.lock();
    for account in (*accounts).iter().flat_map(RBTree::values) {
        let Key { user, device } = account.key;
        match u32::try_from(user) {
            Ok(user) => write!(f, "user={user}")?,
            Err(_) => write!(f, "user_namespace={}", user as u32)?,
        }
        if let Some(device) = device {
            write!(f, " device={device}")?;
        }
        for item in ITEMS {
            write!(f, " {}={}", item.name(), account.ledger.held(item))?;
        }
        writeln!(f, " refused={}", account.ledger.refused())?;
    }
    Ok(())
}
