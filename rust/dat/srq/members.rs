// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Table of the queue pairs (QP) of a Shared Receive Queue (SRQ).
//!
//! Entries of destroyed QPs are in a tree of their own, so that a new QP looks at these only. A
//! walk over all entries releases the lock in between.

use super::PoolUse;
use crate::{
    dat::prelude::*,
    model::{
        cq_room::Mark,
        handle::Handle, //
    },
    rdma::wc::QpId, //
};
use kernel::rbtree::{
    RBTree,
    RBTreeNode, //
};

/// Number of entries that are visited in one critical section.
pub(super) const VISITS: usize = 64;

/// Entry of a QP.
pub(super) struct Member {
    pub(super) ep: Handle,
    /// Life of the Endpoint (the number of its resets) that the QP belongs to.
    pub(super) life: u32,
    /// Number of the QP, which no other has.
    pub(super) serial: u64,
    /// The QP fills no receive with a lower number.
    pub(super) newest: u64,
    /// The QP is destroyed. The mark follows its completions.
    pub(super) gone: Option<Mark>,
    /// Keeps the room for the completions.
    pub(super) pool: Arc<PoolUse>,
}

/// An entry that was removed. Its drop takes a mutex.
pub(super) type Removed = RBTreeNode<QpId, Member>;

/// Entries of QPs. No identity has two.
pub(super) struct Members {
    /// Entries without a mark.
    live: RBTree<QpId, Member>,
    /// Entries with a mark.
    gone: RBTree<QpId, Member>,
}

/// Cursor of a walk over all entries.
#[derive(Clone, Copy)]
pub(super) enum Cursor {
    /// Continue at the first live QP with this identity or a higher one.
    Live(QpId),
    /// Continue at the first destroyed QP with this identity or a higher one. Destroyed QPs are
    /// visited last.
    Gone(QpId),
}

impl Cursor {
    /// Returns the cursor before all entries.
    pub(super) const fn first() -> Self {
        Self::Live(QpId::from_raw(0))
    }
}

impl Members {
    /// Creates an empty table.
    pub(super) fn new() -> Self {
        Self {
            live: RBTree::new(),
            gone: RBTree::new(),
        }
    }

    /// Adds the entry of a new QP. Returns an entry that it replaces.
    pub(super) fn insert(&mut self, member: Removed) -> Option<Removed> {
        self.live.insert(member)
    }

    /// Returns the entry of a QP that is not known to be destroyed.
    pub(super) fn get_live(&self, qp: QpId) -> Option<&Member> {
        self.live.get(&qp)
    }

    /// Returns the entry of a QP.
    pub(super) fn get(&self, qp: QpId) -> Option<&Member> {
        self.live.get(&qp).or_else(|| self.gone.get(&qp))
    }

    /// Returns the entry of a QP.
    pub(super) fn get_mut(&mut self, qp: QpId) -> Option<&mut Member> {
        match self.live.get_mut(&qp) {
            Some(member) => Some(member),
            None => self.gone.get_mut(&qp),
        }
    }

    /// Sets the mark of a destroyed QP, unless another one has got its entry. Returns an entry that
    /// is not needed.
    pub(super) fn mark_gone(&mut self, qp: QpId, serial: u64, mark: Mark) -> Option<Removed> {
        let member = self.get_mut(qp)?;
        if member.serial != serial {
            return None;
        }
        member.gone = Some(mark);
        let node = self.live.remove_node(&qp)?;
        self.gone.insert(node)
    }

    /// Removes an entry, unless another QP has got it.
    pub(super) fn remove(&mut self, qp: QpId, serial: u64) -> Option<Removed> {
        if self.get(qp)?.serial != serial {
            return None;
        }
        let live = self.live.remove_node(&qp);
        live.or_else(|| self.gone.remove_node(&qp))
    }

    /// Returns the entry of the first destroyed QP with this identity or a later one.
    pub(super) fn next_gone(&self, from: QpId) -> Option<(QpId, &Member)> {
        let cursor = self.gone.cursor_lower_bound(&from)?;
        let id = *cursor.current().0;
        self.gone.get(&id).map(|member| (id, member))
    }

    /// Visits [`VISITS`] entries from a cursor on, at most. Returns the cursor to continue from;
    /// `None` at the end.
    ///
    /// An entry that exists during the whole walk is visited, even if it gets its mark meanwhile.
    pub(super) fn visit(&mut self, cursor: Cursor, visit: impl FnMut(&Member)) -> Option<Cursor> {
        match cursor {
            Cursor::Live(from) => {
                let next = visit_some(&mut self.live, from, visit);
                Some(next.map_or(Cursor::Gone(QpId::from_raw(0)), Cursor::Live))
            }
            Cursor::Gone(from) => visit_some(&mut self.gone, from, visit).map(Cursor::Gone),
        }
    }
}

fn visit_some(
    entries: &mut RBTree<QpId, Member>,
    from: QpId,
    mut visit: impl FnMut(&Member),
) -> Option<QpId> {
    let mut cursor = entries.cursor_lower_bound_mut(&from)?;
    for _ in 0..VISITS {
        visit(cursor.current().1);
        cursor = cursor.move_next()?;
    }
    Some(*cursor.current().0)
}
