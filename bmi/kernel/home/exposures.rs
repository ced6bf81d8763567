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
        Place,
        RailId,
        Rails,
        Rdma,
        Wanted,
        MAX_RAILS, //
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

/// RMRs of a device that are kept for later operations.
const KEPT: usize = 64;

/// Exposed memory of an operation on a device.
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
    /// By the indices of the operations' keys, a place for each device.
    of_ops: KVVec<Option<Exposure>>,
    devices: usize,
    /// RMRs of each device that are not bound.
    free: [KVec<Rmr>; MAX_RAILS],
}

impl Exposures {
    pub(super) fn new(devices: u8) -> Self {
        Self {
            of_ops: KVVec::new(),
            devices: devices.into(),
            free: core::array::from_fn(|_| KVec::new()),
        }
    }

    pub(super) fn make_room(&mut self, ops: usize) -> Result<(), AllocError> {
        extend(&mut self.of_ops, ops.saturating_mul(self.devices), || None)
    }

    fn index(&self, place: Place) -> usize {
        place.op.0.index() as usize * self.devices + usize::from(place.device)
    }

    fn get(&self, place: Place) -> Option<&Exposure> {
        self.of_ops.get(self.index(place))?.as_ref()
    }

    fn of(&mut self, place: Place) -> Option<&mut Exposure> {
        let index = self.index(place);
        self.of_ops.get_mut(index)?.as_mut()
    }

    fn take(&mut self, place: Place) -> Option<Exposure> {
        let index = self.index(place);
        self.of_ops.get_mut(index)?.take()
    }

    fn put(&mut self, place: Place, exposure: Exposure) {
        let index = self.index(place);
        if let Some(slot) = self.of_ops.get_mut(index) {
            *slot = Some(exposure);
        }
    }

    /// Returns the RMRs of an operation's memory.
    pub(super) fn segments(&self, place: Place) -> &[(Rmr, Remote)] {
        self.get(place).map_or(&[], |exposure| &exposure.bound)
    }

    /// Returns whether another device exposes memory of the operation.
    pub(super) fn others(&self, place: Place) -> bool {
        let devices = (0_u8..).take(self.devices);
        let mut others = devices.filter(|device| *device != place.device);
        others.any(|device| self.get(Place { device, ..place }).is_some())
    }

    /// Returns the descriptors of an operation's memory for some rails, for a message of `length`
    /// bytes.
    pub(super) fn descriptors(
        &self,
        place: Place,
        rails: Rails,
        length: u64,
    ) -> impl Iterator<Item = Descriptor> + '_ {
        let mut left = length;
        self.segments(place).iter().map(move |(_, remote)| {
            let length = u64::from(remote.length).min(left);
            left -= length;
            Descriptor {
                address: remote.address,
                length: length as u32,
                context: remote.context,
                rails,
            }
        })
    }

    /// Returns an RMR of a device that is not bound.
    pub(super) fn take_rmr(&mut self, device: u8, pz: &Pz) -> kdat::Result<Rmr> {
        let free = self.free.get_mut(usize::from(device));
        let free = free.and_then(|free| free.pop());
        free.map_or_else(|| pz.create_rmr(), Ok)
    }

    /// Keeps an RMR of a device that is not bound, or frees it.
    fn give_back(&mut self, device: u8, mut rmr: Rmr) {
        rmr.forget_memory();
        let free = self.free.get_mut(usize::from(device));
        if let Some(free) = free.filter(|free| free.len() < KEPT) {
            let _ = free.push(rmr, GFP_KERNEL);
        }
    }

    /// Returns a bound RMR of an operation.
    pub(super) fn rmr_mut(&mut self, place: Place, index: usize) -> Option<&mut Rmr> {
        self.of(place)?.bound.get_mut(index).map(|(rmr, _)| rmr)
    }

    /// Records a bind that was posted. The drop of an RMR that finds no room ends its bind.
    pub(super) fn bound(&mut self, place: Place, rmr: Rmr, remote: Remote) -> kdat::Result {
        if let Some(exposure) = self.of(place) {
            exposure.bound.push((rmr, remote), GFP_KERNEL)?;
        }
        Ok(())
    }
}

impl KernelHome {
    /// Starts to expose the memory of an operation.
    pub(super) fn begin_expose(&mut self, place: Place, rail: RailId, wanted: Wanted) {
        let binds = self.binds_for(place, wanted);
        let exposure = Exposure {
            rail,
            wanted,
            bound: KVec::new(),
            outstanding: binds.as_ref().map_or(0, |binds| binds.len()),
            failed: binds.is_none().then(|| wanted.refusal(self.binds.longest)),
            too_long: false,
            ending: false,
        };
        self.exposures.put(place, exposure);
        for bind in binds.into_iter().flatten() {
            self.queue_bind(rail, place, bind);
        }
        self.review(place);
    }

    /// Returns the binds of an operation's memory. Returns `None` if that is impossible, or not
    /// worth the time.
    fn binds_for(&mut self, place: Place, wanted: Wanted) -> Option<KVec<Step>> {
        let length = wanted.length as usize;
        let parts = self.for_exposure(place, length)?;
        let binds = divide(&parts, wanted, self.binds.longest);
        if binds.is_some() || wanted.rdma == Rdma::Read {
            return binds;
        }
        // Contiguous memory takes fewer binds.
        let whole = self.for_exposure_in_one(place, length)?;
        divide(&whole, wanted, self.binds.longest)
    }

    /// Starts to withdraw the memory of an operation.
    pub(super) fn begin_withdraw(&mut self, place: Place) {
        let Some(exposure) = self.exposures.of(place) else {
            return self.report(Report::Withdrawn(place));
        };
        exposure.ending = true;
        let (rail, count) = (exposure.rail, exposure.bound.len());
        if self.connections.ep(rail).is_some() {
            exposure.outstanding += count;
            for index in 0..count {
                self.queue_bind(rail, place, Step::Unbind(index));
            }
        }
        self.review(place);
    }

    /// Records that a bind of an operation was too long for the device.
    pub(super) fn too_long(&mut self, place: Place) {
        if let Some(exposure) = self.exposures.of(place) {
            exposure.too_long = true;
        }
    }

    /// Processes the end of a bind or of an unbind.
    pub(super) fn step_ended(&mut self, place: Place, result: Result<(), Error>) {
        if let Some(exposure) = self.exposures.of(place) {
            exposure.outstanding = exposure.outstanding.saturating_sub(1);
            exposure.failed = exposure.failed.or(result.err());
        }
        self.review(place);
    }

    /// Reports the exposure or the withdrawal of an operation's memory when it is complete.
    fn review(&mut self, place: Place) {
        let Some(exposure) = self.exposures.of(place).filter(|e| e.outstanding == 0) else {
            return;
        };
        let (ending, failed, rail) = (exposure.ending, exposure.failed, exposure.rail);
        let (wanted, count) = (exposure.wanted, exposure.bound.len() as u16);
        if exposure.too_long && !ending {
            // Shorter binds now. Dropping the RMRs frees them.
            self.exposures.take(place);
            return self.begin_expose(place, rail, wanted);
        }
        if !ending && failed.is_none() {
            return self.report(Report::Exposed(place, Ok(count)));
        }
        // Dropping an RMR frees it, which ends the access.
        let ended = self.exposures.take(place);
        if ending && failed.is_none() && self.connections.ep(rail).is_some() {
            for (rmr, _) in ended.into_iter().flat_map(|exposure| exposure.bound) {
                self.exposures.give_back(place.device, rmr);
            }
        }
        self.report(match ending {
            true => Report::Withdrawn(place),
            false => Report::Exposed(place, Err(failed.unwrap_or(Error::NoMemory))),
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
