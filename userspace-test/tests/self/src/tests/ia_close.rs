// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Closes of an adapter: by a process that is killed, and by another user.

use super::handoff::as_user;
use super::tests;
use crate::context::Context;
use crate::machine::{count_of, no_objects_left};
use crate::trace::Recording;
use anyhow::{bail, ensure, Result};
use libkdapl::{Close, EvdFlags, Ia};

tests! {
    killed_during_close, 240,
        "A process killed while closing an adapter ends at once; the file's release does the rest";
    by_another_user, 30,
        "An adapter whose last descriptor another user closes is destroyed by a work item";
}

/// A forked process that shares the open files.
struct Child(libc::pid_t);

impl Child {
    /// Forks a child that closes the adapter.
    fn closes(ia: &Ia) -> Result<Self> {
        // SAFETY: the child only makes system calls and leaves by `_exit`.
        match unsafe { libc::fork() } {
            -1 => bail!("fork: {}", std::io::Error::last_os_error()),
            0 => {
                let failed = ia.close(Close::Abrupt).is_err();
                // SAFETY: never returns.
                unsafe { libc::_exit(i32::from(failed)) }
            }
            pid => Ok(Self(pid)),
        }
    }

    /// Kills the child. Returns whether it had ended before.
    fn kill(self) -> Result<bool> {
        let mut status = 0;
        // SAFETY: it is a child of this process, and `status` is valid.
        let reaped = unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, &mut status, 0)
        };
        ensure!(reaped == self.0, "waitpid: {}", std::io::Error::last_os_error());
        Ok(libc::WIFEXITED(status))
    }
}

/// Kills a child during its close. The parent keeps the file open, so the child's end does not wait
/// for the release of the file.
fn killed_during_close(context: &Context) -> Result<()> {
    /// Attempts. Other work may delay the kill until the child has finished.
    const ROUNDS: u32 = 5;
    let count = context.count(30_000).max(1_000);
    for round in 0..ROUNDS {
        let ia = context.open()?;
        let before = count_of("evd")?;
        let evds = (0..count).map(|_| ia.create_evd(EvdFlags::SOFTWARE, 1));
        let evds = evds.collect::<Result<Vec<_>, _>>()?;
        let child = Child::closes(&ia)?;
        while count_of("evd")? >= before + count {
            std::hint::spin_loop();
        }
        let was_through = child.kill()?;
        let left = count_of("evd")?.saturating_sub(before);
        println!(
            "round {round}: {left} of {count} are left, the child had finished: {was_through}"
        );
        ia.close(Close::Abrupt)?;
        drop(evds);
        no_objects_left(context.settings.scale)?;
        if left > 0 {
            return Ok(());
        }
    }
    bail!("the child finished its close in each round")
}

/// Opens an adapter as a user.
fn opened_by(context: &Context, user: u32) -> Result<Ia> {
    as_user(context, user, |context| Ok(Ia::open(&context.server.device, 8)?))
}

/// Closes the last descriptor of an adapter as a user. Returns whether a work item has destroyed
/// the adapter.
fn closed_in_work_item(context: &Context, ia: Ia, user: u32) -> Result<bool> {
    let recording = Recording::of_work()?;
    as_user(context, user, |_| {
        drop(ia);
        Ok(())
    })?;
    no_objects_left(context.settings.scale)?;
    Ok(recording.work_of("kdapl")?.iter().any(|name| name.contains("Client")))
}

fn by_another_user(context: &Context) -> Result<()> {
    const USER: u32 = 1234;
    const OTHER: u32 = 4321;
    no_objects_left(context.settings.scale)?;
    let ia = opened_by(context, USER)?;
    ensure!(!closed_in_work_item(context, ia, USER)?, "a work item has closed the user's adapter");
    let ia = opened_by(context, USER)?;
    ensure!(
        closed_in_work_item(context, ia, OTHER)?,
        "another user's thread has closed the adapter"
    );
    Ok(())
}
