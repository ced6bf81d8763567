// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Devices of an instance, by their numbers.

use super::messages::Messages;
use super::receives::Receives;
use super::{Adapter, ASYNC_EVENTS, SEGMENTS};
use crate::bmi::engine::longer_queue;
use crate::options::Options;
use libkdapl::{EvdFlags, Ia, Subtype, Transport, Type};

impl Adapter {
    fn open(name: &str, events: u32) -> libkdapl::Result<Self> {
        let ia = Ia::open(name, ASYNC_EVENTS)?;
        let streams = EvdFlags::DTO
            | EvdFlags::CONNECTION
            | EvdFlags::CR
            | EvdFlags::RMR_BIND
            | EvdFlags::SOFTWARE;
        let evd = ia.create_evd(streams, i32::try_from(events).unwrap_or(i32::MAX))?;
        // So that a test that finds nothing is no system call. Without it, each is one.
        evd.map_events();
        Ok(Self { pz: ia.create_pz()?, evd, events, limits: ia.query()?, ia })
    }

    /// Lengthens the event queue if it is too short for so many Endpoints.
    pub(super) fn make_room_for_events(&mut self, eps: usize) -> libkdapl::Result<()> {
        if let Some(events) = longer_queue(self.events, eps) {
            self.evd.resize(i32::try_from(events).unwrap_or(i32::MAX))?;
            self.events = events;
        }
        Ok(())
    }

    fn is_iwarp(&self) -> bool {
        self.limits.transport == Transport::IWarp
    }

    /// Returns the segments of RDMA writes and of RDMA reads.
    pub(super) fn rdma_segments(&self) -> (u32, u32) {
        let limits = &self.limits.raw;
        let clamped = |limit: u32| limit.clamp(1, SEGMENTS);
        let writes = clamped(limits.max_iov_segments_per_rdma_write);
        (writes, clamped(limits.max_iov_segments_per_rdma_read))
    }

    /// Returns whether a message without a receive ends its connection, instead of waiting.
    pub(super) fn needs_own_receives(&self) -> bool {
        self.is_iwarp() || self.limits.raw.max_srqs == 0
    }
}

/// A device: its adapter, and the buffers of the connections over it.
pub(crate) struct Device {
    pub(crate) adapter: Adapter,
    pub(crate) receives: Receives,
    pub(super) messages: Messages,
    /// The device was removed.
    is_lost: bool,
}

impl Device {
    /// Returns whether the device was removed. The events of its connections come before the one
    /// that says so, thus this asks by a call that needs the device.
    fn is_gone(&self) -> bool {
        let needs_device = || self.adapter.ia.create_pz();
        self.is_lost || needs_device().is_err_and(|error| is_of_device(&error))
    }
}

/// The devices.
pub(crate) struct Devices(Vec<Device>);

impl Devices {
    /// Opens the adapters with these names.
    pub(super) fn open(names: &[String], options: &Options) -> libkdapl::Result<Self> {
        let open = |number, name: &String| {
            let adapter = Adapter::open(name, options.events.into())?;
            Ok(Device {
                receives: Receives::new(&adapter, options)?,
                messages: Messages::new(number, options),
                is_lost: false,
                adapter,
            })
        };
        let devices = (0_u8..).zip(names).map(|(number, name)| open(number, name));
        Ok(Self(devices.collect::<libkdapl::Result<_>>()?))
    }

    fn get(&self, device: u8) -> &Device {
        &self.0[usize::from(device)]
    }

    pub(crate) fn get_mut(&mut self, device: u8) -> &mut Device {
        &mut self.0[usize::from(device)]
    }

    pub(crate) fn adapter(&self, device: u8) -> &Adapter {
        &self.get(device).adapter
    }

    /// Returns a device with its number.
    pub(super) fn on(&self, device: u8) -> (u8, &Adapter) {
        (device, self.adapter(device))
    }

    /// Returns the number of devices.
    pub(crate) fn count(&self) -> u8 {
        self.0.len() as u8
    }

    /// Returns all devices, with their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u8, &Device)> {
        (0_u8..).zip(&self.0)
    }

    /// Returns the numbers of the devices that were not removed.
    pub(crate) fn living(&self) -> impl Iterator<Item = u8> + '_ {
        self.all().filter(|(_, device)| !device.is_lost).map(|(number, _)| number)
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
        self.0.iter().any(|device| device.adapter.is_iwarp())
    }

    /// Returns the bytes that are registered for messages, in both directions.
    pub(super) fn registered(&self) -> usize {
        self.0.iter().map(|device| device.messages.bytes() + device.receives.bytes()).sum()
    }
}

/// Returns whether a call has failed because the device was removed, or lacks a resource.
pub(super) fn is_of_device(error: &libkdapl::Error) -> bool {
    error.kind() == Some(Type::INSUFFICIENT_RESOURCES)
        && error.subtype() == Some(Subtype::RESOURCE_DEVICE)
}
