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
        evd::{
            no_room,
            CqShare,
            Evd, //
        },
        prelude::*, //
    },
    rdma::{
        cq::Notify,
        device::Device, //
    },
    sys::memcg::Payer,
};

/// Room in one completion queue.
struct Pool {
    share: Arc<CqShare>,
    notify: Notify,
    /// Further entries of the same queue, taken when the SRQ was lengthened.
    more: KVVec<CqShare>,
    entries: u32,
    users: u32,
}

/// Pools of an SRQ.
pub(super) struct Pools(KVVec<Pool>);

impl Pools {
    /// Creates an empty list.
    pub(super) fn new() -> Self {
        Self(KVVec::new())
    }

    /// Lengthens all pools.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (EVD) if a completion queue has too little room. Some pools may be
    /// longer then than necessary.
    pub(super) fn grow(&mut self, entries: u32) -> DatResult {
        for pool in self.0.iter_mut() {
            let missing = entries.saturating_sub(pool.entries);
            if missing == 0 {
                continue;
            }
            pool.more.reserve(1, GFP_KERNEL_ACCOUNT)?;
            let more = pool.share.another(missing).ok_or(no_room())?;
            pool.more
                .push_within_capacity(more)
                .map_err(|_| DatError::internal())?;
            pool.entries = entries;
        }
        Ok(())
    }

    /// Returns the EVDs of the pools.
    pub(super) fn evds(&self) -> DatResult<KVVec<Arc<Evd>>> {
        let mut evds = KVVec::with_capacity(self.0.len(), GFP_KERNEL_ACCOUNT)?;
        for pool in &self.0 {
            let evd = pool.share.evd();
            if evds.iter().any(|known| Arc::ptr_eq(known, &evd)) {
                continue;
            }
            evds.push_within_capacity(evd)
                .map_err(|_| DatError::internal())?;
        }
        Ok(evds)
    }
}

/// Use of a pool, until the drop. The queue pairs of the user are destroyed by then, and their
/// completions taken.
pub(in crate::dat) struct PoolUse {
    srq: Arc<Srq>,
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
        let unused = {
            let mut pools = self.srq.pools.lock();
            let place = pools
                .0
                .iter()
                .position(|pool| Arc::ptr_eq(&pool.share, &self.share));
            place.and_then(|place| {
                let pool = pools.0.get_mut(place)?;
                pool.users = pool.users.saturating_sub(1);
                if pool.users != 0 {
                    return None;
                }
                pools.0.remove(place).ok()
            })
        };
        if let Some(pool) = unused {
            pool.end(Payer::Other(self.srq.ia.mem_cgroup()));
        }
    }
}

impl Pool {
    /// Returns the room. Completions that are still queued keep theirs until they are drained.
    ///
    /// Context: process; sleeps.
    fn end(self, payer: Payer<'_>) {
        if self.share.stays() {
            self.more.iter().for_each(CqShare::stay);
        }
        if !self.share.is_drained(payer) {
            let shares = Iterator::chain(self.more.iter(), [&*self.share]);
            shares.for_each(|share| share.give_up(u32::MAX));
        }
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
        device: &Arc<Device>,
        notify: Notify,
    ) -> DatResult<PoolUse> {
        let mut pools = self.pools.lock();
        let known = pools
            .0
            .iter_mut()
            .find(|pool| pool.notify == notify && pool.share.is_of(evd));
        if let Some(pool) = known {
            pool.users = pool.users.saturating_add(1);
            return Ok(PoolUse {
                srq: self.clone(),
                share: pool.share.clone(),
            });
        }
        let entries = self.inner.lock().receives.capacity();
        pools.0.reserve(1, GFP_KERNEL_ACCOUNT)?;
        let share = Arc::new(evd.share(device, entries, notify)?, GFP_KERNEL_ACCOUNT)?;
        let pool = Pool {
            share: share.clone(),
            notify,
            more: KVVec::new(),
            entries,
            users: 1,
        };
        pools
            .0
            .push_within_capacity(pool)
            .map_err(|_| DatError::internal())?;
        Ok(PoolUse {
            srq: self.clone(),
            share,
        })
    }
}
