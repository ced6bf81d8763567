// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Consumer Notification Objects (CNOs): wait for events of several Event Dispatchers (EVDs).

use crate::error::Result;
use crate::file::CnoFile;
use crate::object::{Handle, Object};
use crate::raw::{self, call, Device};
use crate::sys::*;
use crate::time::{Monotonic, Until};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Result of [`Cno::query`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnoQuery {
    /// The CNO has an eventfd, which each trigger signals.
    pub has_agent: bool,
    /// Number of EVDs that trigger the CNO.
    pub evds: u32,
    /// Number of EVDs that have triggered and that no wait has returned yet.
    pub triggered: u32,
}

/// A notification object. Any number of threads may wait on it; a trigger wakes one of them.
#[derive(Clone, Debug)]
pub struct Cno(Arc<Object>);

/// Returns the number that a message carries for an agent.
fn fd_of(agent: Option<BorrowedFd<'_>>) -> i32 {
    agent.map_or(-1, |fd| fd.as_raw_fd())
}

impl Cno {
    pub(crate) fn create(device: &Arc<Device>, agent: Option<BorrowedFd<'_>>) -> Result<Self> {
        let mut message = kdapl_cno { agent_fd: fd_of(agent), ..Default::default() };
        raw::call(device, call::CNO_CREATE, &mut message)?;
        Ok(Self(Arc::new(Object::new(device, message.handle, call::CNO_FREE))))
    }

    /// Returns the open file of the CNO.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.0.device
    }

    /// Returns the kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.handle
    }

    /// Sleeps until an EVD triggers the CNO or `timeout` expires (`None`: no limit). Returns the
    /// EVD's handle, or `None` for a [`trigger`](Self::trigger).
    ///
    /// EVDs are returned in the order in which they triggered. An EVD that has been returned is
    /// returned again if the next wait finds events in it, so that the caller need not empty it.
    ///
    /// # Errors
    /// `QUEUE_EMPTY` if the time-out expires (see [`Error::is_empty`](crate::Error::is_empty));
    /// `INTERRUPTED_CALL` after a signal that called a handler; `ABORT` if the IA closes or the
    /// last EVD is detached. None of them loses a trigger.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<Handle>> {
        self.take(Until::after(timeout))
    }

    /// Like [`wait`](Self::wait), but until a point in time.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub fn wait_until(&self, time: Monotonic) -> Result<Option<Handle>> {
        self.take(Until::at(time))
    }

    fn take(&self, until: Until) -> Result<Option<Handle>> {
        let until = until.restartable();
        let mut message = kdapl_cno_wait {
            hdr: until.hdr(),
            handle: self.handle().0,
            timeout_ns: until.timeout_ns,
            ..Default::default()
        };
        self.0.device.bursts.note_take();
        raw::call(&self.0.device, call::CNO_WAIT, &mut message)?;
        Ok((message.evd != 0).then_some(Handle(message.evd)))
    }

    /// Takes a trigger that the agent's eventfd has reported, without sleeping. Returns the EVD's
    /// handle, or `None` for a [`trigger`](Self::trigger). Waits get the same triggers,
    /// independently of the agent.
    ///
    /// # Errors
    /// `QUEUE_EMPTY` if the agent has taken all triggers since it was set; `ABORT` if the IA
    /// closes. `EINVAL` from a module that does not know this call (see
    /// [`Error::errno`](crate::Error::errno)).
    pub fn take_for_agent(&self) -> Result<Option<Handle>> {
        self.take(Until::NOW_FOR_AGENT)
    }

    /// Triggers the CNO without an EVD. Wakes one waiter; without a waiter, the next wait returns
    /// at once.
    ///
    /// # Errors
    /// `INVALID_HANDLE` after the CNO was freed.
    pub fn trigger(&self) -> Result<()> {
        let mut message = kdapl_handle { handle: self.handle().0, ..Default::default() };
        raw::call(&self.0.device, call::CNO_TRIGGER, &mut message)
    }

    /// Replaces the eventfd that each trigger signals; `None` removes it. Signals the new eventfd
    /// at once if the CNO is triggered already.
    ///
    /// A program that only polls the eventfd must take events from an EVD until it is empty.
    /// [`take_for_agent`](Self::take_for_agent) returns the EVDs that have triggered.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` (argument 2) if the file is no eventfd.
    pub fn modify_agent(&self, agent: Option<BorrowedFd<'_>>) -> Result<()> {
        let mut message =
            kdapl_cno { handle: self.handle().0, agent_fd: fd_of(agent), ..Default::default() };
        raw::call(&self.0.device, call::CNO_MODIFY_AGENT, &mut message)
    }

    /// Opens a file from which triggers are read, for `poll`, `epoll` and async runtimes
    /// ([`Triggers`](crate::Triggers)).
    ///
    /// # Errors
    /// `INSUFFICIENT_RESOURCES` if the process has too many open files.
    pub fn file(&self) -> Result<CnoFile> {
        CnoFile::open(self)
    }

    /// Returns the state of the CNO.
    ///
    /// # Errors
    /// `INVALID_HANDLE` after the CNO was freed.
    pub fn query(&self) -> Result<CnoQuery> {
        let mut message = kdapl_cno_query { handle: self.handle().0, ..Default::default() };
        raw::call(&self.0.device, call::CNO_QUERY, &mut message)?;
        Ok(CnoQuery {
            has_agent: message.has_agent != 0,
            evds: message.evds,
            triggered: message.triggered,
        })
    }

    /// Frees the CNO.
    ///
    /// # Errors
    /// `INVALID_STATE/CNO_IN_USE` while EVDs trigger it or threads wait on it.
    pub fn free(&self) -> Result<()> {
        self.0.free()
    }
}
