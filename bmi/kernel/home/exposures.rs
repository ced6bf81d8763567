// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Access of peers to the memory of operations, by Remote Memory Regions (RMRs).
//!
//! A peer can access memory from the bind of an RMR to its unbind. Both are requests on the
//! Endpoint of a rail (`binds.rs`). When the rail has ended, freeing the RMR has the effect of an
//! unbind.

use super::{
    binds::Step,
    memory::Parts,
    KernelHome,
    Report, //
};
use crate::{
    engine::{
        Descriptor,
        Error,
        OpId,
        RailId,
        Rails,
        Rdma,
        Wanted, //
    },
    storage::extend, //
};
use kdat::{
    Access,
    Pz,
    Remote,
    Rmr, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// RMRs that are kept for later operations.
const KEPT: usize = 64;

/// Exposed memory of an operation.
struct Exposure {
    rail: RailId,
    wanted: Wanted,
    /// RMRs, with the memory as the peer has to name it, in the order of the memory.
    bound: KVec<(Rmr, Remote)>,
    /// Binds or unbinds that have not completed.
    outstanding: usize,
    /// Reason why a bind or an unbind has failed first.
    failed: Option<Error>,
    /// A bind was too long for the device.
    too_long: bool,
    ending: bool,
}

/// Exposed memory of all operations.
pub(super) struct Exposures {
    /// By the indices of the operations' keys.
    of_ops: KVVec<Option<Exposure>>,
    /// RMRs that are not bound.
    free: KVec<Rmr>,
}

impl Exposures {
    pub(super) fn new() -> Self {
        Self {
            of_ops: KVVec::new(),
            free: KVec::new(),
        }
    }

    pub(super) fn make_room(&mut self, ops: usize) -> Result<(), AllocError> {
        extend(&mut self.of_ops, ops, || None)
    }

    fn of(&mut self, op: OpId) -> Option<&mut Exposure> {
        self.of_ops.get_mut(op.0.index() as usize)?.as_mut()
    }

    fn take(&mut self, op: OpId) -> Option<Exposure> {
        self.of_ops.get_mut(op.0.index() as usize)?.take()
    }

    fn put(&mut self, op: OpId, exposure: Exposure) {
        if let Some(place) = self.of_ops.get_mut(op.0.index() as usize) {
            *place = Some(exposure);
        }
    }

    /// Returns the RMRs of an operation's memory.
    pub(super) fn segments(&self, op: OpId) -> &[(Rmr, Remote)] {
        let exposure = self.of_ops.get(op.0.index() as usize);
        exposure
            .and_then(Option::as_ref)
            .map_or(&[], |exposure| &exposure.bound)
    }

    /// Returns the descriptors of an operation's memory, for a message of `length` bytes.
    pub(super) fn descriptors(
        &self,
        op: OpId,
        length: u64,
    ) -> impl Iterator<Item = Descriptor> + '_ {
        let mut left = length;
        self.segments(op).iter().map(move |(_, remote)| {
            let length = u64::from(remote.length).min(left);
            left -= length;
            Descriptor {
                address: remote.address,
                length: length as u32,
                context: remote.context,
                rails: Rails::ALL,
            }
        })
    }

    /// Returns an RMR that is not bound.
    pub(super) fn take_rmr(&mut self, pz: &Pz) -> kdat::Result<Rmr> {
        self.free.pop().map_or_else(|| pz.create_rmr(), Ok)
    }

    /// Returns a bound RMR of an operation.
    pub(super) fn rmr_mut(&mut self, op: OpId, index: usize) -> Option<&mut Rmr> {
        self.of(op)?.bound.get_mut(index).map(|(rmr, _)| rmr)
    }

    /// Records a bind that was posted. The drop of an RMR that finds no room ends its bind.
    pub(super) fn bound(&mut self, op: OpId, rmr: Rmr, remote: Remote) -> kdat::Result {
        if let Some(exposure) = self.of(op) {
            exposure.bound.push((rmr, remote), GFP_KERNEL)?;
        }
        Ok(())
    }
}

impl KernelHome {
    /// Starts to expose the memory of an operation.
    pub(super) fn begin_expose(&mut self, op: OpId, rail: RailId, wanted: Wanted) {
        let binds = self.binds_for(op, wanted);
        let exposure = Exposure {
            rail,
            wanted,
            bound: KVec::new(),
            outstanding: binds.as_ref().map_or(0, |binds| binds.len()),
            failed: binds.is_none().then(|| wanted.refusal(self.binds.longest)),
            too_long: false,
            ending: false,
        };
        self.exposures.put(op, exposure);
        for bind in binds.into_iter().flatten() {
            self.queue_bind(rail, op, bind);
        }
        self.review(op);
    }

    /// Returns the binds of an operation's memory. Returns `None` if that is impossible, or not
    /// worth the time.
    fn binds_for(&mut self, op: OpId, wanted: Wanted) -> Option<KVec<Step>> {
        let length = wanted.length as usize;
        let parts = self.for_exposure(op, length)?;
        let binds = divide(&parts, wanted, self.binds.longest);
        if binds.is_some() || wanted.rdma == Rdma::Read {
            return binds;
        }
        // Contiguous memory takes fewer binds.
        let whole = self.for_exposure_in_one(op, length)?;
        divide(&whole, wanted, self.binds.longest)
    }

    /// Starts to withdraw the memory of an operation.
    pub(super) fn begin_withdraw(&mut self, op: OpId) {
        let Some(exposure) = self.exposures.of(op) else {
            return self.report(Report::Withdrawn(op));
        };
        exposure.ending = true;
        let (rail, count) = (exposure.rail, exposure.bound.len());
        if self.connections.ep(rail).is_some() {
            exposure.outstanding += count;
            for index in 0..count {
                self.queue_bind(rail, op, Step::Unbind(index));
            }
        }
        self.review(op);
    }

    /// Records that a bind of an operation was too long for the device.
    pub(super) fn too_long(&mut self, op: OpId) {
        if let Some(exposure) = self.exposures.of(op) {
            exposure.too_long = true;
        }
    }

    /// Processes the end of a bind or of an unbind.
    pub(super) fn step_ended(&mut self, op: OpId, result: Result<(), Error>) {
        if let Some(exposure) = self.exposures.of(op) {
            exposure.outstanding = exposure.outstanding.saturating_sub(1);
            exposure.failed = exposure.failed.or(result.err());
        }
        self.review(op);
    }

    /// Reports the exposure or the withdrawal of an operation's memory when it is complete.
    fn review(&mut self, op: OpId) {
        let Some(exposure) = self.exposures.of(op).filter(|e| e.outstanding == 0) else {
            return;
        };
        let (ending, failed, rail) = (exposure.ending, exposure.failed, exposure.rail);
        let (wanted, count) = (exposure.wanted, exposure.bound.len() as u16);
        if exposure.too_long && !ending {
            // Shorter binds now. Dropping the RMRs frees them.
            self.exposures.take(op);
            return self.begin_expose(op, rail, wanted);
        }
        if !ending && failed.is_none() {
            return self.report(Report::Exposed(op, Ok(count)));
        }
        // Dropping an RMR frees it, which ends the access.
        let ended = self.exposures.take(op);
        if ending && failed.is_none() && self.connections.ep(rail).is_some() {
            for (mut rmr, _) in ended.into_iter().flat_map(|exposure| exposure.bound) {
                rmr.forget_memory();
                if self.exposures.free.len() < KEPT {
                    let _ = self.exposures.free.push(rmr, GFP_KERNEL);
                }
            }
        }
        self.report(match ending {
            true => Report::Withdrawn(op),
            false => Report::Exposed(op, Err(failed.unwrap_or(Error::NoMemory))),
        });
    }
}

/// Returns the binds of a message's memory, of at most `longest` bytes each. Returns `None` if they
/// are more than allowed.
fn divide(parts: &Parts, wanted: Wanted, longest: usize) -> Option<KVec<Step>> {
    let access = match wanted.rdma {
        Rdma::Read => Access::Read,
        Rdma::Write => Access::Write,
    };
    let lengths = parts.iter().map(|(_, _, length)| *length);
    let mut binds = KVec::new();
    for range in wanted.divide(lengths, longest) {
        if binds.len() == wanted.most_binds() {
            return None;
        }
        let (memory, start, _) = parts.get(range.fragment)?;
        let bind = Step::Bind {
            memory: memory.clone(),
            offset: start + range.offset,
            length: range.length,
            access,
        };
        binds.push(bind, GFP_KERNEL).ok()?;
    }
    Some(binds)
}
