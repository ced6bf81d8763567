// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Room for the completions of a Shared Receive Queue (SRQ) in completion queues.
//!
//! Any Endpoint may take all receives of the SRQ. But together they never take more than the SRQ
//! holds, and a receive keeps its slot until its completion is taken. So all Endpoints of an SRQ
//! that report to the same Event Dispatcher (EVD) share one *pool*: as many entries of one
//! completion queue as the SRQ has slots. A thousand Endpoints need no more room than one.

use super::Srq;
use crate::{
    dat::{
        base::IaBase,
        evd::{
            no_room,
            CqShare,
            Evd, //
        },
        prelude::*, //
    },
    rdma::cq::Notify,
    sys::{
        kvvec,
        memcg::Payer, //
    },
};
use kernel::rbtree::{
    RBTree,
    RBTreeNodeReservation, //
};

/// Room in one completion queue.
struct Pool {
    share: Arc<CqShare>,
    notify: Notify,
    uses: u32,
}

/// Pools of an SRQ, by their numbers.
pub(super) struct Pools {
    list: RBTree<u64, Pool>,
    /// Number of pools that ever existed.
    serial: u64,
}

impl Pools {
    /// Creates an empty list.
    pub(super) fn new() -> Self {
        Self {
            list: RBTree::new(),
            serial: 0,
        }
    }

    /// Adds a user to the pool in a completion queue of this EVD, if there is one.
    fn join(&mut self, evd: &Arc<Evd>, notify: Notify) -> Option<(u64, Arc<CqShare>)> {
        let is_fit = |pool: &Pool| pool.notify == notify && pool.share.is_of(evd);
        let (number, pool) = self.list.iter_mut().find(|(_, pool)| is_fit(pool))?;
        pool.uses = pool.uses.saturating_add(1);
        Some((*number, pool.share.clone()))
    }

    /// Adds a pool. Returns its number.
    fn add(&mut self, node: RBTreeNodeReservation<u64, Pool>, pool: Pool) -> u64 {
        self.serial = self.serial.wrapping_add(1);
        self.list.insert(node.into_node(self.serial, pool));
        self.serial
    }

    /// Ends a use. Returns the pool if that was the last one.
    fn leave(&mut self, number: u64) -> Option<Pool> {
        let pool = self.list.get_mut(&number)?;
        pool.uses = pool.uses.saturating_sub(1);
        if pool.uses != 0 {
            return None;
        }
        self.list.remove(&number)
    }
}

/// Use of a pool, until the drop. The queue pairs of the user are destroyed by then, and their
/// completions taken.
pub(in crate::dat) struct PoolUse {
    srq: Arc<Srq>,
    number: u64,
    share: Arc<CqShare>,
}

impl PoolUse {
    /// Returns the share of the completion queue.
    pub(in crate::dat) fn share(&self) -> &CqShare {
        &self.share
    }

    /// Returns the SRQ.
    pub(in crate::dat) fn srq(&self) -> &Arc<Srq> {
        &self.srq
    }
}

impl Drop for PoolUse {
    fn drop(&mut self) {
        let unused = self.srq.pools.lock().leave(self.number);
        if let Some(pool) = unused {
            end(&pool.share, Payer::Other(self.srq.ia.mem_cgroup()));
        }
    }
}

/// Releases the completion queue entries of a pool, except those of queued completions. These are
/// released when the completions are drained.
///
/// Context: process; sleeps.
fn end(share: &CqShare, payer: Payer<'_>) {
    if !share.is_drained(payer) {
        share.give_up(u32::MAX);
    }
}

impl Srq {
    /// Begins the use of the pool in a completion queue of this EVD.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`Evd::share`].
    pub(in crate::dat) fn use_pool(
        self: &Arc<Self>,
        evd: &Arc<Evd>,
        ia: &IaBase,
        notify: Notify,
    ) -> DatResult<PoolUse> {
        let slots = self.slots.lock();
        let known = self.pools.lock().join(evd, notify);
        let (number, share) = match known {
            Some(pool) => pool,
            None => self.make_pool(evd.share(&ia.device()?, *slots, notify)?, notify)?,
        };
        Ok(PoolUse {
            srq: self.clone(),
            number,
            share,
        })
    }

    /// Makes a pool of a share, with one user.
    fn make_pool(&self, share: CqShare, notify: Notify) -> DatResult<(u64, Arc<CqShare>)> {
        let share = Arc::new(share, GFP_KERNEL_ACCOUNT)?;
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let pool = Pool {
            share: share.clone(),
            notify,
            uses: 1,
        };
        Ok((self.pools.lock().add(node, pool), share))
    }

    /// Lengthens all pools to as many entries.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (EVD) if a completion queue has too little room. Some pools may be
    /// longer then than necessary.
    pub(super) fn lengthen_pools(&self, entries: u32) -> DatResult {
        let shares = self.shares()?;
        let fits = shares.iter().all(|share| share.lengthen(entries));
        fits.then_some(()).ok_or(no_room())
    }

    /// Returns the shares of the pools. Allocates without the lock: the removal of a device waits
    /// for the lock, and over iWARP so does a worker that serves all users.
    fn shares(&self) -> DatResult<KVVec<Arc<CqShare>>> {
        loop {
            let count = self.pools.lock().list.values().count();
            let mut shares = kvvec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;
            let pools = self.pools.lock();
            let mut list = pools.list.values();
            let fits = list.all(|pool| shares.push_within_capacity(pool.share.clone()).is_ok());
            if fits {
                return Ok(shares);
            }
        }
    }

    /// Returns the EVDs of the pools.
    pub(super) fn evds(&self) -> DatResult<KVVec<Arc<Evd>>> {
        let shares = self.shares()?;
        let mut evds = kvvec::with_capacity(shares.len(), GFP_KERNEL_ACCOUNT)?;
        for evd in shares.iter().map(|share| share.evd()) {
            if evds.iter().any(|known| Arc::ptr_eq(known, &evd)) {
                continue;
            }
            evds.push_within_capacity(evd)
                .map_err(|_| DatError::internal())?;
        }
        Ok(evds)
    }
}
