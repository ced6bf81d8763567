// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Statistics of an adapter, for `KDAPL_IA_STAT`.
//!
//! The numbers are read one after the other while the consumer goes on, so they are not of one
//! moment. Counts of what has happened never decrease.

use super::Ia;
use crate::{
    model::stat::{
        ObjectCounts,
        Stat, //
    },
    sys::{
        adapters::Listed,
        user::UserId, //
    },
};

impl Ia {
    fn object_counts(&self) -> ObjectCounts {
        ObjectCounts {
            pzs: self.pzs.len(),
            lmrs: self.lmrs.len(),
            rmrs: self.rmrs.len(),
            cnos: self.cnos.len(),
            evds: self.evds().len(),
            eps: self.eps().len(),
            srqs: self.srqs().len(),
            psps: self.psps.len(),
            rsps: self.rsps.len(),
            csps: self.csps.len(),
            crs: self.crs().len(),
        }
    }

    /// Returns whether the calling process may see the statistics: it is the user of the adapter's
    /// consumer, or administers the adapter's network namespace.
    fn is_visible(&self) -> bool {
        self.is_of_calling_user() || self.base.net().may_administer()
    }

    /// Returns whether the calling process is the user that has opened the IA.
    pub(crate) fn is_of_calling_user(&self) -> bool {
        self.base.user().id() == UserId::current() && !self.base.is_of_kernel
    }
}

impl Listed for Ia {
    fn stat(&self) -> Option<Stat> {
        if !self.is_visible() {
            return None;
        }
        let ep_context = &self.passive.ep_context;
        let mut stat = Stat {
            adapter_name: self.attr().adapter_name,
            owner: self.base.owner_for_reader(),
            age_ns: self.base.age_ns(),
            objects: self.object_counts(),
            connections: ep_context.connection_counts(),
            traffic: ep_context.past_traffic(),
            requests: 0,
            receives: 0,
            events: 0,
            waiters: 0,
            memory: 0,
        };
        self.eps().for_each(|ep| ep.add_to(&mut stat));
        stat.traffic = ep_context.report_traffic(&stat.traffic);
        self.evds().for_each(|evd| {
            stat.events = stat.events.wrapping_add(evd.queued().into());
            stat.waiters = stat.waiters.saturating_add(evd.has_waiter().into());
        });
        self.cnos
            .for_each(|cno| stat.waiters = stat.waiters.saturating_add(cno.waiters()));
        self.lmrs
            .for_each(|lmr| stat.memory = stat.memory.wrapping_add(lmr.length()));
        Some(stat)
    }
}
