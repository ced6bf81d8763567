// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Consumer Notification Objects (CNOs).

use super::{
    deadline,
    wait_failure,
    zero,
    AfterCopy,
    CallResult,
    FOR_AGENT, //
};
use crate::{
    chardev::client::Client,
    dat::{
        cno::{
            Agent,
            Cno, //
        },
        prelude::*, //
    },
    sys::{
        eventfd::EventFd,
        record_file::PendingFile, //
    },
};
use kdapl_bindings as uapi;

pub(super) fn find(client: &Client, handle: u64) -> DatResult<Arc<Cno>> {
    client.get(handle)
}

/// Returns the agent for an eventfd; `None` for -1.
///
/// # Errors
///
/// INVALID_PARAMETER (agent) if `fd` is no eventfd.
fn agent(fd: i32) -> DatResult<Option<Agent>> {
    match fd {
        -1 => Ok(None),
        fd => EventFd::get(fd)
            .map(|eventfd| Some(Agent::EventFd(eventfd)))
            .map_err(|_| DatError::Invalid(Arg::Agent)),
    }
}

pub(super) fn create(client: &Client, message: &mut uapi::kdapl_cno) -> CallResult {
    zero(message.pad)?;
    let ia = client.ia()?;
    message.handle = ia.create_cno(agent(message.agent_fd)?)?;
    Ok(())
}

pub(super) fn free(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(client.ia()?.free::<Cno>(message.handle)?)
}

pub(super) fn modify_agent(client: &Client, message: &mut uapi::kdapl_cno) -> CallResult {
    zero(message.pad)?;
    let cno = find(client, message.handle)?;
    cno.modify_agent(agent(message.agent_fd)?);
    Ok(())
}

pub(super) fn query(client: &Client, message: &mut uapi::kdapl_cno_query) -> CallResult {
    zero(message.pad)?;
    let cno = find(client, message.handle)?;
    let param = cno.query();
    message.has_agent = param.has_agent.into();
    message.evds = param.evds;
    message.triggered = param.triggered;
    Ok(())
}

pub(super) fn wait(client: &Client, message: &mut uapi::kdapl_cno_wait) -> CallResult {
    let deadline = deadline(&message.hdr, message.timeout_ns);
    message.evd = 0;
    if message.hdr.flags & FOR_AGENT != 0 {
        zero(message.timeout_ns)?;
        message.evd = find(client, message.handle)?.take_for_agent()?;
    } else {
        let triggered = find(client, message.handle)?.wait(deadline);
        message.evd = triggered
            .map_err(|error| wait_failure(error.into(), &message.hdr, message.timeout_ns))?;
    }
    Ok(())
}

pub(super) fn trigger(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    let cno = find(client, message.handle)?;
    cno.trigger_by_consumer();
    Ok(())
}

pub(super) fn fd(client: &Client, message: &mut uapi::kdapl_cno_fd) -> CallResult<PendingFile> {
    zero(message.pad)?;
    message.fd = -1;
    let opening = Cno::open_file(find(client, message.handle)?)?;
    message.fd = opening.number() as i32;
    Ok(opening)
}

impl AfterCopy for PendingFile {
    /// Installs the file. Its number has reached the process.
    fn copied(self) {
        self.install();
    }
}
