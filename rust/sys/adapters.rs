// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! List of the open Interface Adapters, of all processes and kernel modules.
//!
//! An adapter has a serial number, which no later one gets. A reader passes the number of the last
//! adapter that it has seen, and gets the next one. So it sees each adapter once that exists from
//! the first call to the last.

use crate::model::stat::Stat;
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        global_lock,
        Arc, //
    },
};

/// An adapter in the list.
pub(crate) trait Listed: Send + Sync {
    /// Returns the statistics, or `None` if the caller may not see this adapter.
    ///
    /// Context: process; sleeps.
    fn stat(&self) -> Option<Stat>;
}

type AdapterTree = RBTree<u64, Arc<dyn Listed>>;

/// The adapters, and the last serial number.
struct List {
    adapters: Option<AdapterTree>,
    last: u64,
}

global_lock! {
    // SAFETY: `AdapterList::new` initialises it before the first use.
    unsafe(uninit) static LIST: Mutex<List> = List { adapters: None, last: 0 };
}

/// Owner of the list. The module creates it once at load, before any adapter is opened.
pub(crate) struct AdapterList(());

impl AdapterList {
    /// Creates the list.
    pub(crate) fn new() -> Self {
        // SAFETY: It is called once, before any use of the list.
        unsafe { LIST.init() };
        Self(())
    }
}

/// Serial number of an adapter; 0 while it is not in the list. A field of the adapter.
pub(crate) struct Listing(Atomic<u64>);

impl Listing {
    /// Returns the state of an adapter that is not in the list.
    pub(crate) const fn none() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds the adapter that has this field. The list keeps a reference until [`Listing::end`].
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn begin(&self, adapter: Arc<dyn Listed>) -> Result {
        let reservation = kernel::rbtree::RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut list = LIST.lock();
        list.last = list.last.wrapping_add(1);
        let serial = list.last;
        let node: RBTreeNode<u64, Arc<dyn Listed>> = reservation.into_node(serial, adapter);
        list.adapters.get_or_insert_with(RBTree::new).insert(node);
        self.0.store(serial, Relaxed);
        Ok(())
    }

    /// Removes the adapter, if it is in the list.
    ///
    /// Context: process; sleeps.
    pub(crate) fn end(&self) {
        let serial = self.0.xchg(0, Relaxed);
        // Dropped after the lock.
        let _removed = LIST
            .lock()
            .adapters
            .as_mut()
            .and_then(|adapters| adapters.remove_node(&serial));
    }
}

/// Returns the first adapter after the one with the serial number `after`, with its own.
fn next(after: u64) -> Option<(u64, Arc<dyn Listed>)> {
    let list = LIST.lock();
    let cursor = list
        .adapters
        .as_ref()?
        .cursor_lower_bound(&after.checked_add(1)?)?;
    let (serial, adapter) = cursor.current();
    Some((*serial, adapter.clone()))
}

/// Returns the statistics of the first adapter after the one with the serial number `after` that
/// the caller may see, with its serial number.
///
/// Context: process; sleeps.
pub(crate) fn next_visible(mut after: u64) -> Option<(u64, Stat)> {
    loop {
        let (serial, adapter) = next(after)?;
        if let Some(stat) = adapter.stat() {
            return Some((serial, stat));
        }
        if super::task::is_killed() {
            return None;
        }
        super::task::cond_resched();
        after = serial;
    }
}
