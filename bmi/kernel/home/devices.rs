// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Devices of an instance, by their numbers.

use super::{
    messages::Messages,
    receives::Receives, //
};
use crate::{
    engine::longer_queue,
    memory::Zones,
    options::Options, //
};
use kdat::{
    Access,
    Evd,
    Limits,
    Pz, //
};
use kernel::prelude::*;

/// Objects of one device that its connections share.
pub(crate) struct Adapter {
    pub(crate) pz: Pz,
    /// All events: completions, connections, requests of peers.
    pub(crate) evd: Evd,
    /// Length of its queue. Completions beyond it wait in the device's queue.
    events: u32,
    pub(crate) limits: Limits,
    pub(super) is_iwarp: bool,
}

impl Adapter {
    pub(crate) fn new(pz: Pz, (evd, events): (Evd, u32), limits: Limits) -> Self {
        // Over iWARP memory cannot be registered with remote privileges.
        let is_iwarp = pz.share(8, Access::Write).is_err();
        Self {
            pz,
            evd,
            events,
            limits,
            is_iwarp,
        }
    }

    /// Lengthens the event queue if it is too short for so many Endpoints.
    pub(super) fn make_room_for_events(&mut self, eps: usize) -> kdat::Result {
        if let Some(events) = longer_queue(self.events, eps) {
            self.evd.resize(events)?;
            self.events = events;
        }
        Ok(())
    }

    /// Returns the segments of RDMA writes and of RDMA reads.
    pub(super) fn rdma_segments(&self) -> (u32, u32) {
        let clamped = |limit: u32| limit.clamp(1, kdat::MAX_SEGMENTS as u32);
        let writes = clamped(self.limits.write_segments);
        (writes, clamped(self.limits.read_segments))
    }
}

/// A device: its adapter, and the buffers of the connections over it.
pub(crate) struct Device {
    pub(super) adapter: Adapter,
    pub(super) receives: Receives,
    pub(super) messages: Messages,
    /// The device was removed.
    is_lost: bool,
}

impl Device {
    fn new(adapter: Adapter, options: &Options) -> Self {
        Self {
            receives: Receives::new(&adapter, options),
            messages: Messages::new(options),
            is_lost: false,
            adapter,
        }
    }

    /// Returns whether the device was removed. The events of its connections come before the one
    /// that says so, thus this asks by a call that needs the device.
    fn is_gone(&self) -> bool {
        let needs_device = || self.adapter.pz.buffer(1);
        self.is_lost || needs_device().is_err_and(|error| error.is_of_device())
    }
}

/// The devices.
pub(crate) struct Devices {
    first: Device,
    others: KVec<Device>,
}

impl Devices {
    /// Makes the devices of some adapters, at least one.
    pub(super) fn new(adapters: KVec<Adapter>, options: &Options) -> Result<Self> {
        let mut others = KVec::with_capacity(adapters.len(), GFP_KERNEL)?;
        let mut devices = adapters
            .into_iter()
            .map(|adapter| Device::new(adapter, options));
        let first = devices.next().ok_or(EINVAL)?;
        for device in devices {
            others.push(device, GFP_KERNEL)?;
        }
        Ok(Self { first, others })
    }

    /// Returns a device: the first one for a number that no device has.
    pub(super) fn get(&self, device: u8) -> &Device {
        let other = usize::from(device).checked_sub(1);
        other
            .and_then(|other| self.others.get(other))
            .unwrap_or(&self.first)
    }

    /// As [`Self::get`].
    pub(super) fn get_mut(&mut self, device: u8) -> &mut Device {
        let other = usize::from(device).checked_sub(1);
        other
            .and_then(|other| self.others.get_mut(other))
            .unwrap_or(&mut self.first)
    }

    pub(super) fn adapter(&self, device: u8) -> &Adapter {
        &self.get(device).adapter
    }

    /// Returns a device with its number, to register memory on.
    pub(super) fn on(&self, device: u8) -> (u8, &Pz) {
        (device, &self.adapter(device).pz)
    }

    /// Returns the number of devices.
    pub(crate) fn count(&self) -> u8 {
        (self.others.len() + 1) as u8
    }

    /// Returns the numbers of the devices that were not removed.
    pub(super) fn living(&self) -> impl Iterator<Item = u8> + '_ {
        (0..self.count()).filter(|device| !self.get(*device).is_lost)
    }

    /// Returns whether all devices were removed.
    pub(super) fn are_lost(&self) -> bool {
        self.living().next().is_none()
    }

    /// Returns whether a device was removed.
    pub(super) fn is_gone(&self, device: u8) -> bool {
        self.get(device).is_gone()
    }

    /// Notes that a device was removed.
    pub(super) fn lose(&mut self, device: u8) {
        self.get_mut(device).is_lost = true;
    }

    /// Returns whether a connection may be over iWARP.
    pub(crate) fn use_iwarp(&self) -> bool {
        (0..self.count()).any(|device| self.adapter(device).is_iwarp)
    }

    /// Returns the Protection Zones of the devices that were not removed.
    pub(crate) fn zones(&self) -> Zones {
        let mut zones = Zones::default();
        for device in self.living() {
            if let Some(zone) = zones.get_mut(usize::from(device)) {
                *zone = Some(self.adapter(device).pz.clone());
            }
        }
        zones
    }
}
