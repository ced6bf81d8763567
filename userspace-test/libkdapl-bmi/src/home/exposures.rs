// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Access of peers to the memory of operations, by Remote Memory Regions (RMRs).
//!
//! A peer can access memory from the bind of an RMR to its unbind. Both are requests on the
//! Endpoint of a rail. When the rail has ended, freeing the RMR has the effect of an unbind.

use super::{DatHome, Report, Request};
use crate::bmi::engine::{Error, OpId, RailId, Rdma};
use crate::memory::Part;
use libkdapl::{CompletionFlags, Ep, Privileges, Rmr, RmrBinding, Segment, Type};
use std::collections::HashMap;

/// Parts of a send's memory up to which the receiver is asked to read them. Of more, the sender
/// writes them: it needs no bind for that.
const READ: usize = 4;

/// Bytes that the first bind tries. The limit of the device is found by halving it.
const FIRST_LIMIT: usize = 32 << 20;

/// Exposed memory of an operation.
struct Exposure {
    rail: RailId,
    /// RMRs, with their segments at the peer.
    bound: Vec<(Rmr, Segment)>,
    /// Binds or unbinds that are outstanding.
    outstanding: usize,
    /// A bind has failed.
    failed: bool,
    ending: bool,
}

/// Exposed memory of all operations.
pub(super) struct Exposures {
    of_ops: HashMap<OpId, Exposure>,
    /// RMRs that are not bound.
    free: Vec<Rmr>,
    /// Bytes that one RMR can have on this device.
    limit: usize,
}

impl Default for Exposures {
    fn default() -> Self {
        Self { of_ops: HashMap::new(), free: Vec::new(), limit: FIRST_LIMIT }
    }
}

impl Exposures {
    /// Returns the segments of an operation's memory for its peer.
    pub(super) fn segments(&self, op: OpId) -> Vec<Segment> {
        let exposure = self.of_ops.get(&op);
        exposure.map_or(Vec::new(), |e| e.bound.iter().map(|(_, segment)| *segment).collect())
    }
}

impl DatHome {
    /// Starts to expose the memory of an operation.
    pub(super) fn begin_expose(&mut self, op: OpId, rail: RailId, rdma: Rdma, most: u16) {
        let exposure =
            Exposure { rail, bound: Vec::new(), outstanding: 0, failed: false, ending: false };
        self.exposures.of_ops.insert(op, exposure);
        if self.bind_all(op, rail, rdma, most).is_none() {
            if let Some(exposure) = self.exposures.of_ops.get_mut(&op) {
                exposure.failed = true;
            }
        }
        self.review(op);
    }

    /// Posts the binds of an operation's memory. Returns `None` if that is impossible, or not worth
    /// the time.
    fn bind_all(&mut self, op: OpId, rail: RailId, rdma: Rdma, most: u16) -> Option<()> {
        let ep = self.ep(rail)?;
        self.prepare(op).ok()?;
        let parts = self.held.get_mut(&op)?.for_rdma().0;
        let most = match rdma {
            Rdma::Read => READ.min(most.into()),
            Rdma::Write => most.into(),
        };
        let privileges = match rdma {
            Rdma::Read => Privileges::REMOTE_READ,
            Rdma::Write => Privileges::REMOTE_WRITE,
        };
        let mut count = 0;
        for part in &parts {
            let mut from = 0;
            while from < part.length() {
                count += 1;
                if count > most {
                    return None;
                }
                from += self.bind(op, &ep, part, from, privileges)?;
            }
        }
        Some(())
    }

    /// Binds an RMR to the bytes of a part from `from` on. Returns how many it has.
    fn bind(
        &mut self,
        op: OpId,
        ep: &Ep,
        part: &Part,
        from: usize,
        privileges: Privileges,
    ) -> Option<usize> {
        let rmr = match self.exposures.free.pop() {
            Some(rmr) => rmr,
            None => self.adapter.ia.create_rmr(&self.adapter.pz).ok()?,
        };
        let number = self.requests.insert(Request::Bind(op));
        let bound = self.post_bind(&rmr, ep, (part, from), privileges, number as u64);
        let Some((segment, length)) = bound else {
            self.requests.remove(number);
            self.exposures.free.push(rmr);
            return None;
        };
        let exposure = self.exposures.of_ops.get_mut(&op)?;
        exposure.bound.push((rmr, segment));
        exposure.outstanding += 1;
        Some(length)
    }

    fn post_bind(
        &mut self,
        rmr: &Rmr,
        ep: &Ep,
        (part, from): (&Part, usize),
        privileges: Privileges,
        cookie: u64,
    ) -> Option<(Segment, usize)> {
        loop {
            let length = (part.length() - from).min(self.exposures.limit);
            let segment = part.segment(from, length)?;
            let binding = RmrBinding { lmr: part.lmr()?, segment, privileges };
            match rmr.bind(ep, &binding, cookie, CompletionFlags::default()) {
                Ok(segment) => return Some((segment, length)),
                Err(e) if e.kind() == Some(Type::LENGTH_ERROR) && length > 1 => {
                    self.exposures.limit = length.next_power_of_two() / 2;
                }
                Err(_) => return None,
            }
        }
    }

    /// Starts to withdraw the memory of an operation.
    pub(super) fn begin_withdraw(&mut self, op: OpId) {
        let Some(exposure) = self.exposures.of_ops.get_mut(&op) else {
            return self.reports.push_back(Report::Withdrawn(op));
        };
        exposure.ending = true;
        let (rail, bound) = (exposure.rail, exposure.bound.clone());
        if let Some(ep) = self.ep(rail) {
            for (rmr, _) in &bound {
                self.post_unbind(op, &ep, rmr);
            }
        }
        self.review(op);
    }

    fn post_unbind(&mut self, op: OpId, ep: &Ep, rmr: &Rmr) {
        let number = self.requests.insert(Request::Bind(op));
        match rmr.unbind(ep, number as u64, CompletionFlags::default()) {
            Ok(()) => {
                if let Some(exposure) = self.exposures.of_ops.get_mut(&op) {
                    exposure.outstanding += 1;
                }
            }
            Err(_) => {
                self.requests.remove(number);
                if let Some(exposure) = self.exposures.of_ops.get_mut(&op) {
                    exposure.failed = true;
                }
            }
        }
    }

    /// Processes the completion of a bind or of an unbind.
    pub(crate) fn bind_completed(&mut self, op: OpId, success: bool) {
        if let Some(exposure) = self.exposures.of_ops.get_mut(&op) {
            exposure.outstanding = exposure.outstanding.saturating_sub(1);
            exposure.failed |= !success;
        }
        self.review(op);
    }

    /// Reports the exposure or the withdrawal of an operation's memory when it is complete.
    fn review(&mut self, op: OpId) {
        let Some(exposure) = self.exposures.of_ops.get(&op).filter(|e| e.outstanding == 0) else {
            return;
        };
        let (ending, failed) = (exposure.ending, exposure.failed);
        let gone = self.connections.ep(exposure.rail).is_none();
        let count = exposure.bound.len() as u16;
        if !ending && !failed {
            return self.reports.push_back(Report::Exposed(op, Ok(count)));
        }
        // Dropping an RMR frees it, which ends the access.
        let bound = self.exposures.of_ops.remove(&op).map_or(Vec::new(), |e| e.bound);
        if ending && !failed && !gone {
            self.exposures.free.extend(bound.into_iter().map(|(rmr, _)| rmr));
        }
        self.reports.push_back(match ending {
            true => Report::Withdrawn(op),
            false => Report::Exposed(op, Err(Error::NoMemory)),
        });
    }
}
