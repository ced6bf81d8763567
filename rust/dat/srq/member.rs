// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints of a Shared Receive Queue (SRQ), by the identities of their queue pairs (QP).
//!
//! The identity of a destroyed QP may soon be that of another one, while completions of the old one
//! are still queued. Such a completion must not be taken for one of the new Endpoint. So the entry
//! of a destroyed QP stays until the completions that were queued at that time are drained. A new
//! QP with the same identity replaces the entry only then. Otherwise the new QP is refused: the
//! consumer has to take some events first.

use super::{
    members::{
        Cursor,
        Member,
        Removed,
        VISITS, //
    },
    Inner,
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
const MAX_GONE: usize = 256;

/// A receive that has completed, and the Endpoint that has taken it.
pub(in crate::dat) struct TakenReceive {
    pub(in crate::dat) dto: Dto,
    pub(in crate::dat) ep: Handle,
    pub(in crate::dat) life: u32,
    /// The receive counts as held: see [`Srq::complete`].
    pub(in crate::dat) is_counted: bool,
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
    /// consumer does not take; (memory) without memory; (device) after the SRQ was released.
    pub(in crate::dat) fn enter(&self, qp: QpId) -> DatResult {
        let srq = self.pool.srq();
        srq.retire(qp);
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
        let outcome = srq.inner.lock().insert_member(node);
        outcome.map(drop).map_err(|_| DatError::device())
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
        if srq.loses_receives {
            srq.may_have_lost();
        }
    }
}

impl Inner {
    /// Adds the entry of a QP. Returns an entry that it replaces.
    ///
    /// # Errors
    ///
    /// Returns the entry if the SRQ was released. It would keep the SRQ, and with that the device,
    /// for as long as a full EVD has no room for the QP's completions.
    fn insert_member(&mut self, member: Removed) -> Result<Option<Removed>, Removed> {
        if self.queue.is_none() {
            return Err(member);
        }
        Ok(self.members.insert(member))
    }
}

impl Srq {
    /// Takes a completion: frees the slot of the receive. Returns the receive and its Endpoint;
    /// `None` if the slot has none or the QP is not known.
    pub(in crate::dat) fn complete(&self, slot: u32, qp: QpId) -> Option<TakenReceive> {
        let mut inner = self.inner.lock();
        let (dto, number) = inner.receives.complete(slot)?;
        let member = inner.members.get_mut(qp)?;
        member.newest = number;
        let taken = TakenReceive {
            dto,
            ep: member.ep,
            life: member.life,
            is_counted: inner.holders != 0,
        };
        if taken.is_counted {
            // Its Endpoint may hold it back. Nothing is posted in its place meanwhile.
            inner.receives.hold();
        }
        Some(taken)
    }

    /// Returns the Endpoint of a QP, and the life in which it has the QP.
    pub(in crate::dat) fn member_of(&self, qp: QpId) -> Option<(Handle, u32)> {
        let inner = self.inner.lock();
        inner.members.get(qp).map(|member| (member.ep, member.life))
    }

    /// Returns the handles of all Endpoints with a QP.
    ///
    /// Context: process; sleeps.
    pub(super) fn member_handles(&self) -> DatResult<RBTree<u64, ()>> {
        let mut handles = RBTree::new();
        let mut some = KVec::with_capacity(VISITS, GFP_KERNEL_ACCOUNT)?;
        let mut next = Some(Cursor::first());
        while let Some(cursor @ Cursor::Live(_)) = next {
            next = self.inner.lock().members.visit(cursor, |member| {
                // Never fails: a visit has at most `VISITS` entries.
                let _ = some.push_within_capacity(member.ep.into_raw());
            });
            for handle in some.drain_all() {
                handles.try_create_and_insert(handle, (), GFP_KERNEL_ACCOUNT)?;
            }
        }
        Ok(handles)
    }

    fn mark_gone(&self, qp: QpId, serial: u64, mark: Mark) {
        let unneeded = self.inner.lock().members.mark_gone(qp, serial, mark);
        drop(unneeded);
    }

    /// Removes an entry, unless another QP has got it.
    fn remove_member(&self, qp: QpId, serial: u64) {
        let removed = self.inner.lock().members.remove(qp, serial);
        drop(removed);
    }

    /// Marks the entry of a destroyed QP that had the identity of the new one, if it has not left
    /// yet.
    ///
    /// Context: process; sleeps.
    fn retire(&self, new: QpId) {
        let old = {
            let inner = self.inner.lock();
            let member = inner.members.get_live(new);
            member.map(|member| (member.serial, member.pool.clone()))
        };
        if let Some((serial, pool)) = old {
            self.mark_gone(new, serial, pool.share().mark());
        }
    }

    /// Removes the entries of destroyed QPs whose completions were taken.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (EVD) if an entry with this identity, or too many others, are left.
    fn remove_gone(&self, qp: QpId) -> DatResult {
        let mut left = 0_usize;
        let mut from = QpId::from_raw(0);
        while let Some(gone) = self.next_gone(from) {
            if gone.pool.share().has_passed(gone.mark) {
                self.remove_member(gone.id, gone.serial);
            } else {
                left = left.saturating_add(1);
                if gone.id == qp || left > MAX_GONE {
                    return Err(no_room());
                }
            }
            from = gone.id.next();
        }
        Ok(())
    }

    /// Returns the next entry of a destroyed QP.
    fn next_gone(&self, from: QpId) -> Option<Gone> {
        let inner = self.inner.lock();
        let (id, member) = inner.members.next_gone(from)?;
        Some(Gone {
            id,
            serial: member.serial,
            mark: member.gone?,
            pool: member.pool.clone(),
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
