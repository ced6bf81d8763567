// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ends an adapter's objects when it is closed, or when its device is removed.

use super::{
    ep,
    Ep,
    Ia,
    Until, //
};
use crate::{
    dat::{
        passive::{
            Point,
            ServicePoint, //
        },
        prelude::*, //
    },
    model::event::{
        AsyncEvent,
        Event, //
    },
    rdma::device::Watcher,
    sys::memcg::Payer, //
};

impl Ia {
    /// Closes all tables. No object can be added afterwards.
    fn close_tables(&self) {
        self.psps.close();
        self.rsps.close();
        self.csps.close();
        self.crs().close();
        self.eps().close();
        self.rmrs.close();
        self.srqs().close();
        self.lmrs.close();
        self.evds().close();
        self.cnos.close();
        self.pzs.close();
    }

    /// Ends all waits. A kernel consumer may wait in an upcall, and the end of an EVD waits for the
    /// return of its upcalls.
    ///
    /// # Errors
    ///
    /// INTERRUPTED_CALL if waits are left.
    fn end_waits(&self, until: Until) -> DatResult {
        self.cnos.walk(until, |_, cno| cno.close())?;
        self.evds().walk(until, |_, evd| evd.close())
    }

    /// Shuts down all objects, users before the objects that they use.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INTERRUPTED_CALL if objects are left. The caller has to call it again.
    pub(super) fn shut_down(&self, until: Until) -> DatResult {
        self.close_tables();
        self.end_waits(until)?;
        self.stop_listening(until)?;
        self.psps.shutdown(until)?;
        self.rsps.shutdown(until)?;
        self.csps.shutdown(until)?;
        self.crs().shutdown(until)?;
        self.passive.ep_context.await_acknowledgements();
        self.eps().walk(until, |_, ep| ep.stop())?;
        self.flush_freed_endpoints();
        self.eps().shutdown(until)?;
        self.rmrs.shutdown(until)?;
        self.srqs().shutdown(until)?;
        self.lmrs.shutdown(until)?;
        self.evds().shutdown(until)?;
        self.passive.ep_context.sink.release_device();
        self.cnos.shutdown(until)?;
        self.pzs.shutdown(until)
    }

    /// Carries out all but the last step of the end of each listener, so that all service points
    /// share the wait of a step.
    ///
    /// # Errors
    ///
    /// INTERRUPTED_CALL if the caller was killed.
    fn stop_listening(&self, until: Until) -> DatResult {
        for step in [Point::hide, Point::await_searches] {
            self.psps.walk(until, |_, psp| step(psp.point()))?;
            self.rsps.walk(until, |_, rsp| step(rsp.point()))?;
            self.csps.walk(until, |_, csp| step(csp.point()))?;
        }
        Ok(())
    }

    /// Takes the completions of all Endpoints, which are freed: see [`Ia::flush_endpoints`].
    fn flush_freed_endpoints(&self) {
        ep::flush_freed(|| {
            let mut left = 0_u32;
            self.eps()
                .for_each(|ep| left = left.saturating_add(ep.drain_unfinished()));
            left
        });
    }

    /// Waits for the queue pairs of all Endpoints to flush. It waits for all of them together, so
    /// that the time-outs of several that do not complete do not add up.
    fn flush_endpoints(&self) {
        let payer = Payer::Other(self.base.mem_cgroup());
        ep::flush_live(|| {
            let mut left = 0_u32;
            self.eps()
                .for_each(|ep| left = left.saturating_add(ep.unflushed(payer)));
            left
        });
    }
}

impl Watcher for Ia {
    /// Handles the removal of the device: releases all resources of the device, and reports an
    /// event to the consumer. The objects stay until the consumer frees them.
    fn removed(self: Arc<Self>) {
        self.close_tables();
        let link = self.base.unlink();
        // Never fails: no kill ends this walk.
        let _ = self.stop_listening(Until::Done);
        self.psps.shutdown_in_place();
        self.rsps.shutdown_in_place();
        self.csps.shutdown_in_place();
        self.crs().for_each(|cr| cr.reject_unanswered());
        self.eps().for_each(Ep::break_for_removal);
        self.flush_endpoints();
        self.eps().for_each(Ep::release_device);
        self.eps().await_frees();
        self.rmrs.for_each(|rmr| rmr.release());
        self.srqs().for_each(|srq| srq.release());
        self.lmrs.for_each(|lmr| lmr.release());
        self.evds().for_each(|evd| evd.device_removed());
        self.passive.ep_context.sink.release_device();
        self.pzs.for_each(|pz| pz.release_device());
        self.passive
            .ep_context
            .async_evd
            .report_removal(&Event::Async {
                cause: AsyncEvent::IaCatastrophic,
                object: self.handle(),
                reason: 0,
            });
        drop(link);
    }
}
