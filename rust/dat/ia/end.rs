// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What becomes of an adapter's objects when it closes, or when its device goes.

use super::Ia;
use crate::{
    dat::{
        cno::Cno,
        cr::Cr,
        csp::Csp,
        ep::{
            self,
            Ep, //
        },
        evd::Evd,
        lmr::Lmr,
        objects::{
            Objects,
            Until, //
        },
        psp::Psp,
        pz::Pz,
        rsp::Rsp,
        service::Face, //
    },
    model::{
        code::DatResult,
        event::{
            Event,
            Fault, //
        },
    },
    rdma::device::Watcher,
};
use kernel::sync::Arc;

/// Ends all waits: a consumer in the kernel may be in one from an upcall, for whose return the end of its
/// EVD waits.
fn end_waits(objects: &Objects, until: Until) -> DatResult {
    objects.walk::<Cno>(until, |_, cno| cno.shutdown())?;
    objects.walk::<Evd>(until, |_, evd| evd.close())
}

/// Takes every object down, users before what they use.
///
/// # Errors
///
/// INTERRUPTED_CALL; some are left then, and it is to be called again.
pub(super) fn take_down(objects: &Objects, until: Until) -> DatResult {
    objects.close();
    end_waits(objects, until)?;
    objects.take_all::<Psp>(until, |psp| psp.point().shutdown())?;
    objects.take_all::<Rsp>(until, |rsp| rsp.point().shutdown())?;
    objects.take_all::<Csp>(until, |csp| csp.point().shutdown())?;
    objects.take_all::<Cr>(until, |cr| cr.shutdown())?;
    objects.take_all::<Ep>(until, |ep| Ep::shutdown(&ep))?;
    objects.take_all::<Lmr>(until, |lmr| lmr.shutdown())?;
    objects.take_all::<Evd>(until, |evd| evd.shutdown())?;
    objects.take_all::<Cno>(until, |cno| cno.shutdown())?;
    objects.take_all::<Pz>(until, |pz| pz.release_device())
}

impl Watcher for Ia {
    /// The device goes: the consumer is told, its objects become empty shells.
    fn removed(self: Arc<Self>) {
        self.objects.close();
        let link = self.device.lock().take();
        self.each::<Psp>(|psp| psp.point().shutdown());
        self.each::<Rsp>(|rsp| rsp.point().shutdown());
        self.each::<Csp>(|csp| csp.point().shutdown());
        self.each::<Cr>(|cr| cr.turn_away());
        self.each::<Ep>(Ep::device_leaves);
        // All at once: what one does not complete is not to be waited for again and again.
        ep::flush(|| {
            let mut left = 0_u32;
            self.each::<Ep>(|ep| left = left.saturating_add(ep.unflushed()));
            left
        });
        self.each::<Ep>(Ep::device_removed);
        self.each::<Lmr>(|lmr| lmr.shutdown());
        self.each::<Evd>(|evd| evd.device_removed());
        self.each::<Pz>(|pz| pz.release_device());
        self.report(&Event::Async {
            fault: Fault::IaCatastrophic,
            object: self.handle(),
            reason: 0,
        });
        drop(link);
    }
}
