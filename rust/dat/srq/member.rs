// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints of a Shared Receive Queue (SRQ), by the identities of their queue pairs (QP).
//!
//! The identity of a destroyed QP may soon be that of another one, while completions of the old one
//! are still queued. Such a completion must not be taken for one of the new Endpoint. So the entry
//! of a destroyed QP stays until the completions that were queued at that time are drained. A new
//! QP with the same identity replaces the entry only then. Otherwise the new QP is refused: the
//! consumer has to take some events first.

use super::{
    PoolUse,
    Srq, //
};
use crate::{
    dat::{
        evd::no_room,
        prelude::*, //
    },
    model::{
        atomic::AtomicU64,
        cq_room::Mark,
        dto::Dto,
        handle::Handle, //
    },
    rdma::wc::QpId, //
};
use kernel::rbtree::{
    RBTree,
    RBTreeNode, //
};

/// Largest number of entries of destroyed QPs.
const MAX_GONE: u32 = 256;

/// Entry of a QP.
pub(super) struct Member {
    ep: Handle,
    /// Life of the Endpoint (the number of its resets) that the QP belongs to.
    life: u32,
    /// Number of the QP, which no other has.
    serial: u64,
    /// No receive with a lower number is filled by the QP now.
    newest: u64,
    /// The QP is destroyed. The mark follows its completions.
    gone: Option<Mark>,
    /// Keeps the room for the completions.
    pool: Arc<PoolUse>,
}

/// A receive that has completed, and the Endpoint that has taken it.
pub(in crate::dat) struct Consumer {
    pub(in crate::dat) dto: Dto,
    pub(in crate::dat) ep: Handle,
    pub(in crate::dat) life: u32,
}

/// Membership of a QP, which it owns until it is destroyed.
pub(in crate::dat) struct Membership {
    pool: Arc<PoolUse>,
    ep: Handle,
    life: u32,
    /// Identity of the QP.
    qp: AtomicU64,
    /// 0 before the membership begins.
    serial: AtomicU64,
}

impl Membership {
    /// Prepares a membership.
    pub(in crate::dat) fn new(pool: Arc<PoolUse>, ep: Handle, life: u32) -> DatResult<Arc<Self>> {
        Ok(Arc::new(
            Self {
                pool,
                ep,
                life,
                qp: AtomicU64::new(0),
                serial: AtomicU64::new(0),
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Begins the membership of a QP, which was just created and is not connected.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (EVD) while completions of destroyed QPs are left, which the
    /// consumer does not take; (memory) without memory.
    pub(in crate::dat) fn enter(&self, qp: QpId) -> DatResult {
        let srq = self.pool.srq();
        srq.remove_gone(qp)?;
        let (serial, newest) = {
            let mut inner = srq.inner.lock();
            inner.serial = inner.serial.wrapping_add(1);
            (inner.serial, inner.receives.newest())
        };
        let member = Member {
            ep: self.ep,
            life: self.life,
            serial,
            newest,
            gone: None,
            pool: self.pool.clone(),
        };
        let node = RBTreeNode::new(qp, member, GFP_KERNEL_ACCOUNT)?;
        self.qp.store(qp.into_raw());
        self.serial.store(serial);
        let old = srq.inner.lock().members.insert(node);
        drop(old);
        Ok(())
    }

    /// Ends the membership of the QP, which was destroyed. `has_taken_all` says that none of its
    /// completions is left.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn leave(&self, has_taken_all: bool) {
        let serial = self.serial.load();
        if serial == 0 {
            return;
        }
        let (srq, qp) = (self.pool.srq(), QpId::from_raw(self.qp.load()));
        if has_taken_all {
            srq.remove_member(qp, serial);
        } else {
            let mark = self.pool.share().mark();
            srq.mark_gone(qp, serial, mark);
            if self.pool.share().has_passed(mark) {
                srq.remove_member(qp, serial);
            }
        }
        srq.drop_lost();
    }
}

impl Srq {
    /// Takes a completion: frees the slot of the receive. Returns the receive and its Endpoint;
    /// `None` if the slot has none or the QP is not known.
    pub(in crate::dat) fn complete(&self, slot: u32, qp: QpId) -> Option<Consumer> {
        let mut inner = self.inner.lock();
        let (dto, number) = inner.receives.complete(slot)?;
        let member = inner.members.get_mut(&qp)?;
        member.newest = number;
        Some(Consumer {
            dto,
            ep: member.ep,
            life: member.life,
        })
    }

    /// Returns the Endpoint of a QP.
    pub(in crate::dat) fn member_of(&self, qp: QpId) -> Option<Handle> {
        self.inner.lock().members.get(&qp).map(|member| member.ep)
    }

    /// Returns the handles of all Endpoints with a QP.
    pub(super) fn member_handles(&self) -> DatResult<RBTree<u64, ()>> {
        let mut handles = KVVec::new();
        loop {
            let count = self.inner.lock().members.iter().count();
            handles.reserve(count, GFP_KERNEL_ACCOUNT)?;
            let inner = self.inner.lock();
            if inner.members.iter().count() > handles.capacity() {
                continue;
            }
            for member in inner
                .members
                .values()
                .filter(|member| member.gone.is_none())
            {
                handles
                    .push_within_capacity(member.ep.into_raw())
                    .map_err(|_| DatError::internal())?;
            }
            break;
        }
        let mut tree = RBTree::new();
        for handle in &handles {
            tree.try_create_and_insert(*handle, (), GFP_KERNEL_ACCOUNT)?;
        }
        Ok(tree)
    }

    /// Frees the receives that a driver has lost with the QPs that had taken them.
    ///
    /// Context: process.
    fn drop_lost(&self) {
        if !self.loses_receives {
            return;
        }
        let number = {
            let inner = self.inner.lock();
            let numbers = inner.members.values().map(|member| member.newest);
            numbers.min().unwrap_or(inner.receives.newest())
        };
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.inner.lock().receives.drop_lost(from, number);
        }
    }

    fn mark_gone(&self, qp: QpId, serial: u64, mark: Mark) {
        let mut inner = self.inner.lock();
        let member = inner.members.get_mut(&qp);
        if let Some(member) = member.filter(|member| member.serial == serial) {
            member.gone = Some(mark);
        }
    }

    /// Removes an entry, unless another QP has got it.
    fn remove_member(&self, qp: QpId, serial: u64) {
        let removed = {
            let mut inner = self.inner.lock();
            let is_same = inner.members.get(&qp).map(|member| member.serial) == Some(serial);
            is_same.then(|| inner.members.remove_node(&qp))
        };
        drop(removed);
    }

    /// Removes the entries of destroyed QPs whose completions were taken.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (EVD) if an entry with this identity, or too many others, are left.
    fn remove_gone(&self, qp: QpId) -> DatResult {
        let mut left = 0_u32;
        let mut from = QpId::from_raw(0);
        while let Some(Gone {
            id,
            serial,
            mark,
            pool,
        }) = self.next_gone(from, qp)
        {
            if pool.share().has_passed(mark) {
                self.remove_member(id, serial);
            } else if id == qp {
                return Err(no_room());
            } else {
                left = left.saturating_add(1);
            }
            from = id.next();
        }
        if left > MAX_GONE {
            return Err(no_room());
        }
        Ok(())
    }

    /// Returns the next entry of a destroyed QP. The QP of an entry with the identity of a `new` QP
    /// is destroyed, too, and gets its mark now if it has none.
    fn next_gone(&self, from: QpId, new: QpId) -> Option<Gone> {
        let (id, serial, mark, pool) = {
            let mut inner = self.inner.lock();
            let mut cursor = inner.members.cursor_lower_bound_mut(&from)?;
            loop {
                let (id, member) = cursor.current();
                if member.gone.is_some() || *id == new {
                    break (*id, member.serial, member.gone, member.pool.clone());
                }
                cursor = cursor.move_next()?;
            }
        };
        let mark = mark.unwrap_or_else(|| {
            let mark = pool.share().mark();
            self.mark_gone(id, serial, mark);
            mark
        });
        Some(Gone {
            id,
            serial,
            mark,
            pool,
        })
    }
}

/// Entry of a destroyed QP.
struct Gone {
    id: QpId,
    serial: u64,
    mark: Mark,
    pool: Arc<PoolUse>,
}
