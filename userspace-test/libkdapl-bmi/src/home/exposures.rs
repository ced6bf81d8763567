// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Access of peers to the memory of operations, by Remote Memory Regions (RMRs).
//!
//! A peer can access memory from the bind of an RMR to its unbind. Both are requests on the
//! Endpoint of a rail (`binds.rs`). When the rail has ended, freeing the RMR has the effect of an
//! unbind.

use super::binds::{Bind, Step};
use super::{DatHome, Parts, Report};
use crate::bmi::engine::{Error, Place, RailId, Rdma, Wanted, MAX_RAILS};
use crate::memory::Part;
use libkdapl::{Privileges, Rmr, Segment};
use rustc_hash::FxHashMap;

/// Exposed memory of an operation.
struct Exposure {
    rail: RailId,
    wanted: Wanted,
    /// RMRs, with their segments at the peer, in the order of the memory.
    bound: Vec<(Rmr, Segment)>,
    /// Binds or unbinds that have not completed.
    outstanding: usize,
    /// Reason why a bind or an unbind has failed first.
    failed: Option<Error>,
    /// A bind was too long for the device.
    too_long: bool,
    ending: bool,
}

/// Exposed memory of all operations.
#[derive(Default)]
pub(super) struct Exposures {
    of_ops: FxHashMap<Place, Exposure>,
    /// RMRs of each device that are not bound.
    free: [Vec<Rmr>; MAX_RAILS],
}

impl Exposures {
    /// Returns the segments of an operation's memory for its peer.
    pub(super) fn segments(&self, place: Place) -> Vec<Segment> {
        let exposure = self.of_ops.get(&place);
        exposure.map_or(Vec::new(), |e| e.bound.iter().map(|(_, segment)| *segment).collect())
    }

    /// Returns whether another device exposes memory of the operation.
    pub(super) fn others(&self, place: Place) -> bool {
        let others = (0..MAX_RAILS as u8).filter(|device| *device != place.device);
        let mut others = others.map(|device| Place { device, ..place });
        others.any(|other| self.of_ops.contains_key(&other))
    }
}

impl DatHome {
    /// Starts to expose the memory of an operation.
    pub(super) fn begin_expose(&mut self, place: Place, rail: RailId, wanted: Wanted) {
        let binds = self.binds_for(place, wanted);
        let exposure = Exposure {
            rail,
            wanted,
            bound: Vec::new(),
            outstanding: binds.as_ref().map_or(0, Vec::len),
            failed: binds.is_none().then(|| wanted.refusal(self.binds.longest)),
            too_long: false,
            ending: false,
        };
        self.exposures.of_ops.insert(place, exposure);
        for bind in binds.into_iter().flatten() {
            self.queue_bind(rail, place, Step::Bind(bind));
        }
        self.review(place);
    }

    /// Returns the binds of an operation's memory. Returns `None` if that is impossible, or not
    /// worth the time.
    fn binds_for(&mut self, place: Place, wanted: Wanted) -> Option<Vec<Bind>> {
        let length = wanted.length as usize;
        let parts = self.for_exposure(place, length)?;
        let binds = divide(place.device, &parts, wanted, self.binds.longest);
        if binds.is_some() || wanted.rdma == Rdma::Read {
            return binds;
        }
        // Contiguous memory takes fewer binds.
        let whole = self.for_exposure_in_one(place, length)?;
        divide(place.device, &whole, wanted, self.binds.longest)
    }

    /// Returns an RMR of a device that is not bound.
    pub(super) fn take_rmr(&mut self, device: u8) -> libkdapl::Result<Rmr> {
        let adapter = self.devices.adapter(device);
        match self.exposures.free[usize::from(device)].pop() {
            Some(rmr) => Ok(rmr),
            None => adapter.ia.create_rmr(&adapter.pz),
        }
    }

    /// Records a bind that was posted.
    pub(super) fn bound(&mut self, place: Place, rmr: Rmr, segment: Segment) {
        if let Some(exposure) = self.exposures.of_ops.get_mut(&place) {
            exposure.bound.push((rmr, segment));
        }
    }

    /// Starts to withdraw the memory of an operation.
    pub(super) fn begin_withdraw(&mut self, place: Place) {
        let Some(exposure) = self.exposures.of_ops.get_mut(&place) else {
            return self.reports.push_back(Report::Withdrawn(place));
        };
        exposure.ending = true;
        let (rail, bound) = (exposure.rail, exposure.bound.clone());
        if self.connections.ep(rail).is_some() {
            exposure.outstanding += bound.len();
            for (rmr, _) in bound {
                self.queue_bind(rail, place, Step::Unbind(rmr));
            }
        }
        self.review(place);
    }

    /// Records that a bind of an operation was too long for the device.
    pub(super) fn too_long(&mut self, place: Place) {
        if let Some(exposure) = self.exposures.of_ops.get_mut(&place) {
            exposure.too_long = true;
        }
    }

    /// Processes the end of a bind or of an unbind.
    pub(super) fn step_ended(&mut self, place: Place, result: Result<(), Error>) {
        if let Some(exposure) = self.exposures.of_ops.get_mut(&place) {
            exposure.outstanding = exposure.outstanding.saturating_sub(1);
            exposure.failed = exposure.failed.or(result.err());
        }
        self.review(place);
    }

    /// Reports the exposure or the withdrawal of an operation's memory when it is complete.
    fn review(&mut self, place: Place) {
        let Some(exposure) = self.exposures.of_ops.get(&place).filter(|e| e.outstanding == 0)
        else {
            return;
        };
        let (ending, failed) = (exposure.ending, exposure.failed);
        if exposure.too_long && !ending {
            // Shorter binds now. Dropping the RMRs frees them.
            let (rail, wanted) = (exposure.rail, exposure.wanted);
            self.exposures.of_ops.remove(&place);
            return self.begin_expose(place, rail, wanted);
        }
        let gone = self.connections.ep(exposure.rail).is_none();
        let count = exposure.bound.len() as u16;
        if !ending && failed.is_none() {
            return self.reports.push_back(Report::Exposed(place, Ok(count)));
        }
        // Dropping an RMR frees it, which ends the access.
        let bound = self.exposures.of_ops.remove(&place).map_or(Vec::new(), |e| e.bound);
        if ending && failed.is_none() && !gone {
            let free = &mut self.exposures.free[usize::from(place.device)];
            free.extend(bound.into_iter().map(|(rmr, _)| rmr));
        }
        self.reports.push_back(match ending {
            true => Report::Withdrawn(place),
            false => Report::Exposed(place, Err(failed.unwrap_or(Error::NoMemory))),
        });
    }
}

/// Returns the binds of a message's memory on a device, of at most `longest` bytes each. Returns
/// `None` if they are more than allowed.
fn divide(device: u8, parts: &Parts, wanted: Wanted, longest: usize) -> Option<Vec<Bind>> {
    let privileges = match wanted.rdma {
        Rdma::Read => Privileges::REMOTE_READ,
        Rdma::Write => Privileges::REMOTE_WRITE,
    };
    let mut binds = Vec::new();
    for range in wanted.divide(parts.0.iter().map(Part::length), longest) {
        if binds.len() == wanted.most_binds() {
            return None;
        }
        let part = &parts.0[range.fragment];
        let segment = part.segment(device, range.offset, range.length)?;
        binds.push(Bind { lmr: part.lmr(device)?.clone(), segment, privileges });
    }
    Some(binds)
}
