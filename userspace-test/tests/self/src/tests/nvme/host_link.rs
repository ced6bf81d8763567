// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Our host and a target on two devices, with a link between them.

use super::ends::PATIENT;
use super::io::{exchange, fio};
use super::load::undisturbed;
use crate::context::Context;
use crate::nvme::{Controller, Pair, PortSettings, Target};
use crate::nvme_link::{Link, FROM_HOST, TARGET};
use crate::tests::tests;
use anyhow::{Context as _, Result};

tests! { #![Nvme]
    two_devices, 300, "Our host moves blocks of all sizes over a link between two devices";
    lost_packets, 600, "fio verifies blocks of our host over a link that loses one packet of a hundred";
    one_device_returns, 600, "The device of our host or of the target alone goes and comes back under load, which causes no error";
}

/// Calls a test with a target of each kind at the other end of a link.
fn each(context: &Context, test: impl Fn(&Controller, &Target, &Link) -> Result<()>) -> Result<()> {
    for &pair in Pair::of_our_host() {
        // The modules are there, or the test is skipped.
        drop(Target::of(context, pair, PortSettings::default())?);
        let link = Link::new()?;
        let settings = PortSettings { address: Some(TARGET), ..Default::default() };
        let target = Target::of(context, pair, settings)?;
        let controller = target.connect(&format!("{FROM_HOST}{PATIENT}"))?;
        test(&controller, &target, &link).with_context(|| format!("with {pair:?}"))?;
        drop((controller, target, link));
    }
    Ok(())
}

fn two_devices(context: &Context) -> Result<()> {
    each(context, |controller, target, _| {
        exchange(context, &controller.disk(context)?, &target.disk()?)
    })
}

fn lost_packets(context: &Context) -> Result<()> {
    each(context, |controller, _, link| {
        let path = controller.disk_path(context.patience())?;
        link.spoil("loss 1%")?;
        let size = format!("--size={}k", context.count(4 << 10));
        let verified = fio(&path, &[&size, "--bs=16k", "--iodepth=8"]);
        link.spoil("")?;
        verified
    })
}

fn one_device_returns(context: &Context) -> Result<()> {
    each(context, |controller, target, link| {
        let disk = controller.disk(context)?;
        undisturbed(context, &disk, &target.disk()?, |load| {
            for device in ["kdapl_h", "kdapl_t", "kdapl_h"] {
                link.replace(device)?;
                if device == "kdapl_t" {
                    // The stock target does not listen on a device that returns.
                    target.stop_listening();
                    target.listen()?;
                }
                controller.wait_for("live", 12 * context.patience())?;
                load.progress(context)?;
            }
            Ok(())
        })
    })
}
