// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Host and target on two devices, with a link between them.

use crate::context::Context;
use crate::nvme::{Controller, PortSettings, Target};
use crate::nvme_link::{Link, FROM_HOST, TARGET};
use crate::tests::nvme::ends::{unnoticed, PATIENT};
use crate::tests::nvme::io::{exchange, fio};
use crate::tests::tests;
use anyhow::Result;

tests! { #![Nvme]
    two_devices, 300, "Blocks of all sizes arrive over a link between two devices";
    lost_packets, 600, "fio verifies blocks over a link that loses one packet of a hundred";
    target_device_returns, 300, "A target's device that goes and comes back under writes causes no error";
}

/// Link with a target at its one end and a host at the other.
fn connected(context: &Context) -> Result<(Controller, Target, Link)> {
    // The modules are there, or the test is skipped.
    drop(Target::new(context)?);
    let link = Link::new()?;
    let settings = PortSettings { address: Some(TARGET), ..Default::default() };
    let target = Target::with(context, settings)?;
    let controller = target.connect(&format!("{FROM_HOST}{PATIENT}"))?;
    Ok((controller, target, link))
}

fn two_devices(context: &Context) -> Result<()> {
    let (controller, target, _link) = connected(context)?;
    exchange(context, &controller.disk(context)?, &target.disk()?)
}

fn lost_packets(context: &Context) -> Result<()> {
    let (controller, _target, link) = connected(context)?;
    let path = controller.disk_path(context.patience())?;
    link.spoil("loss 1%")?;
    let size = format!("--size={}k", context.count(8 << 10));
    let verified = fio(&path, &[&size, "--bs=16k", "--iodepth=8"]);
    link.spoil("")?;
    verified
}

fn target_device_returns(context: &Context) -> Result<()> {
    let (controller, target, link) = connected(context)?;
    let disk = controller.disk(context)?;
    unnoticed(context, &target, &disk, |writer| {
        for _ in 0..context.count(20) {
            link.replace("kdapl_t")?;
            controller.wait_for("live", 12 * context.patience())?;
            writer.progress(context)?;
        }
        Ok(())
    })
}
