// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Consumer Notification Objects: one place to wait for events of many EVDs.

use crate::error::Result;
use crate::object::{Handle, Object};
use crate::raw::{self, call, Device};
use crate::sys::*;
use crate::time::{Monotonic, Until};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// What [`Cno::query`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnoQuery {
    /// There is an eventfd that is signalled with each trigger.
    pub has_agent: bool,
    /// EVDs that trigger it.
    pub evds: u32,
    /// EVDs that have triggered it and were not handed out yet.
    pub triggered: u32,
}

/// A notification object. Many threads may wait on it; a trigger wakes one of them.
#[derive(Clone, Debug)]
pub struct Cno(Arc<Object>);

/// As a message names it.
fn fd_of(agent: Option<BorrowedFd<'_>>) -> i32 {
    agent.map_or(-1, |fd| fd.as_raw_fd())
}

impl Cno {
    pub(crate) fn create(device: &Arc<Device>, agent: Option<BorrowedFd<'_>>) -> Result<Self> {
        let mut message = kdapl_cno { agent_fd: fd_of(agent), ..Default::default() };
        raw::call(device, call::CNO_CREATE, &mut message)?;
        Ok(Self(Arc::new(Object::new(device, message.handle, call::CNO_FREE))))
    }

    /// The kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.handle
    }

    /// Sleeps until an EVD has triggered, and says which; or until `timeout` is over (`None`: for
    /// ever).
    ///
    /// EVDs come in the order in which they triggered. One that was handed out comes again if the
    /// next wait finds events in it, so it need not be emptied. `None` is somebody's
    /// [`trigger`](Self::trigger).
    ///
    /// # Errors
    /// `QUEUE_EMPTY` when the time is up ([`Error::is_empty`](crate::Error::is_empty) asks for it);
    /// `INTERRUPTED_CALL` if a signal arrived; `ABORT` if the IA closes or the last EVD leaves. No
    /// trigger is lost by any of them.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<Handle>> {
        self.wait_for(Until::after(timeout))
    }

    /// As [`wait`](Self::wait), but until a time.
    ///
    /// # Errors
    /// As there.
    pub fn wait_until(&self, time: Monotonic) -> Result<Option<Handle>> {
        self.wait_for(Until::at(time))
    }

    fn wait_for(&self, until: Until) -> Result<Option<Handle>> {
        let mut message = kdapl_cno_wait {
            hdr: until.hdr(),
            handle: self.handle().0,
            timeout_ns: until.timeout_ns,
            ..Default::default()
        };
        raw::call(&self.0.device, call::CNO_WAIT, &mut message)?;
        Ok((message.evd != 0).then_some(Handle(message.evd)))
    }

    /// Wakes one waiter, now or when there is one, for no EVD.
    ///
    /// # Errors
    /// `INVALID_HANDLE` once freed.
    pub fn trigger(&self) -> Result<()> {
        let mut message = kdapl_handle { handle: self.handle().0, ..Default::default() };
        raw::call(&self.0.device, call::CNO_TRIGGER, &mut message)
    }

    /// Another eventfd to signal with each trigger, or none. It is signalled at once if something
    /// has triggered already.
    ///
    /// Who only polls the eventfd takes events from an EVD until it is empty.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` (argument 2) for a file that is no eventfd.
    pub fn modify_agent(&self, agent: Option<BorrowedFd<'_>>) -> Result<()> {
        let mut message =
            kdapl_cno { handle: self.handle().0, agent_fd: fd_of(agent), ..Default::default() };
        raw::call(&self.0.device, call::CNO_MODIFY_AGENT, &mut message)
    }

    /// A file that `poll` and its kin find readable as long as [`wait`](Self::wait) would return at
    /// once, and hung up once the object is freed or the IA closed. Nothing is read from it.
    ///
    /// # Errors
    /// `INSUFFICIENT_RESOURCES` if the process may open no more files.
    pub fn file(&self) -> Result<OwnedFd> {
        raw::cno_file(&self.0.device, self.handle().0)
    }

    /// Its agent, and its EVDs.
    ///
    /// # Errors
    /// `INVALID_HANDLE` once freed.
    pub fn query(&self) -> Result<CnoQuery> {
        let mut message = kdapl_cno_query { handle: self.handle().0, ..Default::default() };
        raw::call(&self.0.device, call::CNO_QUERY, &mut message)?;
        Ok(CnoQuery {
            has_agent: message.has_agent != 0,
            evds: message.evds,
            triggered: message.triggered,
        })
    }

    /// Frees it now.
    ///
    /// # Errors
    /// `INVALID_STATE/CNO_IN_USE` while EVDs trigger it or somebody waits.
    pub fn free(&self) -> Result<()> {
        self.0.free()
    }
}
