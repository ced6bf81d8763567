// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of the module, which is registered on several devices.

use crate::engine::MAX_RAILS;
use kdat::{
    Access,
    Pz,
    Shared, //
};

/// Protection Zones by the numbers of the devices; `None` for one that was removed.
pub(crate) type Zones = [Option<Pz>; MAX_RAILS];

/// Registered memory. Clones are the same memory.
#[derive(Clone)]
pub(crate) struct Memory {
    /// One of the registrations, for copies.
    bytes: Shared,
    /// Registrations by the numbers of the devices.
    of_devices: [Option<Shared>; MAX_RAILS],
}

impl Memory {
    /// Allocates memory that is registered on one device.
    pub(crate) fn new((device, pz): (u8, &Pz), size: usize) -> kdat::Result<Self> {
        let bytes = pz.share(size, Access::Bind)?;
        let of_devices = core::array::from_fn(|number| {
            let is_there = number == usize::from(device);
            is_there.then(|| bytes.clone())
        });
        Ok(Self { bytes, of_devices })
    }

    /// Allocates memory that is registered on each device, as far as possible.
    ///
    /// # Errors
    ///
    /// That of the last device, if it is registered on none.
    pub(crate) fn on_all(zones: &Zones, size: usize) -> kdat::Result<Self> {
        let mut made = Err(kdat::Error::from(kernel::alloc::AllocError));
        for (device, pz) in (0_u8..).zip(zones) {
            let Some(pz) = pz else { continue };
            match &mut made {
                // Operations with it try again.
                Ok(memory) => {
                    let _: kdat::Result = Self::register(memory, (device, pz));
                }
                Err(_) => made = Self::new((device, pz), size),
            }
        }
        made
    }

    /// Registers the memory on a device, unless it is registered there.
    pub(crate) fn register(&mut self, (device, pz): (u8, &Pz)) -> kdat::Result {
        if let Some(place) = self.of_devices.get_mut(usize::from(device)) {
            if place.is_none() {
                *place = Some(pz.share_again(&self.bytes, Access::Bind)?);
            }
        }
        Ok(())
    }

    /// Returns the registration on a device.
    pub(crate) fn on(&self, device: u8) -> Option<&Shared> {
        self.of_devices.get(usize::from(device))?.as_ref()
    }

    /// Returns the number of bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.size()
    }

    /// Returns the address of the first byte.
    pub(crate) fn start(&self) -> usize {
        self.bytes.remote().address as usize
    }

    /// Copies bytes out of the memory.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) -> kdat::Result {
        self.bytes.read(offset, bytes)
    }

    /// Copies bytes into the memory.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> kdat::Result {
        self.bytes.write(offset, bytes)
    }
}
