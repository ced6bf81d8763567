// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Accounts of users: the resources that each user holds over all its open files, and their limits.
//!
//! A process is accounted to its real user. In a user namespace that an ordinary user created, it
//! is accounted to the creator. An account exists while its user holds any resource. There is one
//! more account for each device of which the user holds resources. The limit of a device's share
//! applies to that account. The limits are module parameters, and a change applies from the next
//! call on. A process with `CAP_SYS_RESOURCE` is accounted but not limited, as with the kernel's
//! own resource limits.

use crate::model::allowance::{
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

mod charged_array;
mod identity;
mod limits;
#[cfg(CONFIG_KUNIT = "y")]
mod tests;

pub(crate) use self::{
    charged_array::ChargedArray,
    identity::UserId,
    limits::most, //
};

use self::{
    identity::Namespace,
    limits::{
        device_share,
        limit,
        port_share, //
    },
};

/// User of an account, and the device by `ib_core`'s index; `None` for all that the user holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    user: u64,
    device: Option<u32>,
}

/// Accounts by user and device.
type Accounts = RBTree<Key, Arc<Account>>;

global_lock! {
    // SAFETY: `Registration::new` initialises it before the first use.
    unsafe(uninit) static ACCOUNTS: Mutex<Option<Accounts>> = None;
}

/// Owner of the table of accounts. The module creates it once at load, before any user of the
/// table.
pub(crate) struct Registration(());

impl Registration {
    /// Creates the table.
    pub(crate) fn new() -> Self {
        // SAFETY: It is called once, before any use of the table.
        unsafe { ACCOUNTS.init() };
        Self(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // The table is empty by now. Statics are not dropped, so its memory is freed here.
        let accounts = ACCOUNTS.lock().take();
        drop(accounts);
    }
}

/// Account of a user.
struct Account {
    key: Key,
    /// Keeps the number of the namespace from being reused.
    _namespace: Namespace,
    ledger: Ledger,
    /// Number of [`User`]s that refer to the account.
    users: Atomic<u32>,
}

/// A counted reference to the account of a user. The account is removed with the last reference.
pub(crate) struct User {
    account: Arc<Account>,
    is_limited: bool,
}

impl User {
    /// Returns the user of the calling process. Context: process; sleeps.
    pub(crate) fn current() -> Result<Self> {
        Self::current_of(None)
    }

    /// Returns the account of this user, which is the calling process's, for one device. The device
    /// keeps its number as long as any resource is held.
    ///
    /// Context: process; sleeps.
    pub(crate) fn on(&self, device: u32) -> Result<Self> {
        let device = Some(device);
        let Key { user, .. } = self.account.key;
        match Self::find(Key { user, device }) {
            Some(account) => Ok(Self {
                account,
                is_limited: self.is_limited,
            }),
            None => Self::current_of(device),
        }
    }

    fn current_of(device: Option<u32>) -> Result<Self> {
        let (user, namespace) = UserId::current_in();
        let key = Key {
            user: user.to_raw(),
            device,
        };
        let account = match Self::find(key) {
            Some(account) => account,
            None => Self::open(key, namespace)?,
        };
        // SAFETY: The helper only reads the calling process.
        let is_limited = !unsafe { bindings::kdapl_helper_is_unlimited() };
        Ok(Self {
            account,
            is_limited,
        })
    }

    /// Returns the identifier of the user.
    pub(crate) fn id(&self) -> UserId {
        UserId::from_raw(self.account.key.user)
    }

    /// Returns an account, if it exists, and counts one more reference.
    fn find(key: Key) -> Option<Arc<Account>> {
        let accounts = ACCOUNTS.lock();
        let account = (*accounts).as_ref()?.get(&key)?;
        account.users.fetch_add(1, Relaxed);
        Some(account.clone())
    }

    /// Creates an account, unless another thread has created it meanwhile.
    fn open(key: Key, namespace: Namespace) -> Result<Arc<Account>> {
        let account = Account {
            key,
            _namespace: namespace,
            ledger: Ledger::new(),
            users: Atomic::new(1),
        };
        // Allocate before taking the lock: an allocation may wait for long.
        let account = Arc::new(account, GFP_KERNEL_ACCOUNT)?;
        let node = RBTreeNode::new(key, account.clone(), GFP_KERNEL_ACCOUNT)?;
        let mut guard = ACCOUNTS.lock();
        let accounts = (*guard).get_or_insert_with(RBTree::new);
        if let Some(other) = accounts.get(&key) {
            other.users.fetch_add(1, Relaxed);
            let other = other.clone();
            // The unused account and its node are freed after the lock is released.
            drop(guard);
            drop(node);
            return Ok(other);
        }
        accounts.insert(node);
        Ok(account)
    }

    /// Charges `amount` of an item to the user.
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

    /// Uncharges `amount` of an item.
    pub(crate) fn give_back(&self, item: Item, amount: u32) {
        self.account.ledger.give_back(item, amount);
    }

    /// Charges `amount` of an item until the returned value is dropped.
    ///
    /// # Errors
    ///
    /// As for [`User::take`].
    pub(crate) fn hold(&self, item: Item, amount: u32) -> Result<FixedCharge> {
        self.clone().into_hold(item, amount)
    }

    /// As [`User::hold`], with this reference.
    pub(crate) fn into_hold(self, item: Item, amount: u32) -> Result<FixedCharge> {
        self.into_hold_within(item, amount, limit(item))
    }

    fn into_hold_within(self, item: Item, amount: u32, limit: u32) -> Result<FixedCharge> {
        self.take_within(item, amount, limit)?;
        Ok(FixedCharge {
            user: self,
            item,
            amount,
        })
    }

    /// Charges one of an item of which the [device](User::on) has `available`, until the
    /// returned value is dropped. One user may hold only a share of these.
    ///
    /// # Errors
    ///
    /// As for [`User::take`].
    pub(crate) fn into_share(self, item: Item, available: u32) -> Result<FixedCharge> {
        self.into_hold_within(item, 1, device_share(available))
    }

    /// Charges one local port until the returned value is dropped. One user may hold only a share
    /// of the `available` ports of a network namespace, counted over all namespaces and addresses.
    ///
    /// # Errors
    ///
    /// As for [`User::take`].
    pub(crate) fn hold_port(&self, available: u32) -> Result<FixedCharge> {
        self.clone()
            .into_hold_within(Item::LocalPort, 1, port_share(available))
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
            // Before the lock was taken, another thread may have found the account, or removed it
            // and created a new one.
            let is_unused = accounts.get(&key).is_some_and(|found| {
                Arc::ptr_eq(found, &self.account) && found.users.load(Acquire) == 0
            });
            is_unused.then(|| accounts.remove_node(&key)).flatten()
        };
        // Freed after the lock is released.
        drop(unused);
    }
}

/// A fixed charge. The drop uncharges it.
pub(crate) struct FixedCharge {
    user: User,
    item: Item,
    amount: u32,
}

impl Drop for FixedCharge {
    fn drop(&mut self) {
        self.user.give_back(self.item, self.amount);
    }
}

/// A charge whose amount varies in equal steps. The drop uncharges the remaining amount.
pub(crate) struct VariableCharge {
    user: User,
    item: Item,
    step: u32,
    amount: u32,
}

impl VariableCharge {
    /// Charges nothing yet, and later `step` of the item at a time.
    pub(crate) fn new(user: User, item: Item, step: u32) -> Self {
        Self {
            user,
            item,
            step,
            amount: 0,
        }
    }

    /// Charges one more step.
    ///
    /// # Errors
    ///
    /// As for [`User::take`].
    pub(crate) fn take(&mut self) -> Result {
        self.user.take(self.item, self.step)?;
        self.amount = self.amount.saturating_add(self.step);
        Ok(())
    }

    /// Uncharges one step.
    pub(crate) fn give_back(&mut self) {
        self.amount = self.amount.saturating_sub(self.step);
        self.user.give_back(self.item, self.step);
    }
}

impl Drop for VariableCharge {
    fn drop(&mut self) {
        self.user.give_back(self.item, self.amount);
    }
}

/// Writes the holdings of each user, in all and of each device, and how often a charge was refused.
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
