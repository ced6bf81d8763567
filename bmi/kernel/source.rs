// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Events of a device. An upcall takes each one, lets the engine process it, and wakes the threads
//! for which there are results then. Upcalls of several devices wait for the lock of the instance.

use crate::{
    engine::MAX_RAILS,
    home::Adapter,
    instance::Shared, //
};
use kdat::{
    Evd,
    Event,
    Ia,
    Psp,
    Streams, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};

/// Length of the event queue at first.
const EVENTS: u32 = 1024;

/// Length of the queue of events that call the work item. There is one at a time.
const CALLS: u32 = 2;

/// Length of the queue for asynchronous errors.
const ASYNC_EVENTS: u32 = 16;

/// Source of events. The drop closes the adapter of the device.
pub(crate) struct Source {
    device: u8,
    evd: Evd,
    ia: Ia,
}

impl Source {
    fn open(device: u8, name: &str) -> Result<(Self, Adapter)> {
        let name = CString::try_from_fmt(fmt!("{name}"))?;
        let ia = Ia::open(&name, ASYNC_EVENTS)?;
        let streams = Streams::DTO | Streams::CONNECTION | Streams::CR | Streams::RMR_BIND;
        let (pz, evd) = (ia.create_pz()?, ia.create_evd(streams, EVENTS)?);
        let adapter = Adapter::new(pz, (evd.clone(), EVENTS), ia.limits()?);
        Ok((Self { device, evd, ia }, adapter))
    }

    /// Opens the adapters with these names, which have commas between them.
    ///
    /// # Errors
    ///
    /// EINVAL for too many.
    pub(crate) fn open_all(names: &CStr) -> Result<(KVec<Self>, KVec<Adapter>)> {
        let names = names.to_str().map_err(|_| EINVAL)?;
        if names.split(',').count() > MAX_RAILS {
            return Err(EINVAL);
        }
        let (mut sources, mut adapters) = (KVec::new(), KVec::new());
        for (device, name) in (0_u8..).zip(names.split(',')) {
            let (source, adapter) = Self::open(device, name)?;
            sources.push(source, GFP_KERNEL)?;
            adapters.push(adapter, GFP_KERNEL)?;
        }
        Ok((sources, adapters))
    }

    /// Creates the queue of events that call a work item of the instance.
    pub(crate) fn create_calls(&self) -> kdat::Result<Evd> {
        self.ia.create_evd(Streams::SOFTWARE, CALLS)
    }

    /// Lets upcalls process the events from now on.
    pub(crate) fn start(&self, shared: &Arc<Shared>) -> kdat::Result {
        let (device, handler) = (self.device, shared.clone());
        self.evd
            .set_handler(move |event| handler.handle(device, event))?;
        let watcher = shared.clone();
        self.ia.async_evd().set_handler(move |event: Event| {
            if event.is_catastrophic() {
                watcher.with(|inner| inner.state.lose_device(device));
            }
        })
    }

    /// Listens at a port.
    pub(crate) fn listen(&self, port: u64) -> kdat::Result<Psp> {
        self.ia.listen(port, &self.evd)
    }
}
