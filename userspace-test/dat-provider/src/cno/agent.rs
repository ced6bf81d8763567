// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! OS wait proxy agents: functions of the program that are called for each EVD that triggers a CNO.
//!
//! A CNO has a thread only if the program supplies an agent. The thread sleeps in `poll` on two
//! eventfds: one that each trigger signals, and one that ends the thread. It ends when the CNO is
//! freed or the adapter is closed.

use crate::abi::{DAT_AGENT_FUNC, DAT_EVD_HANDLE, DAT_OS_WAIT_PROXY_AGENT};
use crate::foreign;
use crate::ia::Ia;
use crate::ret::{Result, Ret};
use libkdapl::{Subtype, Type};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::AsFd;
use std::ptr;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Function of the program, with its argument.
#[derive(Clone, Copy)]
pub struct Proxy {
    /// Address passed to the function.
    instance: usize,
    function: DAT_AGENT_FUNC,
}

impl Proxy {
    /// Returns `None` if the program supplied no function.
    pub fn new(agent: DAT_OS_WAIT_PROXY_AGENT) -> Option<Self> {
        let function = agent.proxy_agent_func;
        function.map(|_| Self { instance: agent.instance_data as usize, function })
    }

    pub fn as_dat(&self) -> DAT_OS_WAIT_PROXY_AGENT {
        DAT_OS_WAIT_PROXY_AGENT {
            instance_data: self.instance as *mut _,
            proxy_agent_func: self.function,
        }
    }

    fn call(&self, evd: DAT_EVD_HANDLE) {
        foreign::call_agent(&self.as_dat(), evd);
    }
}

/// Thread that calls a proxy agent.
pub struct Agent {
    proxy: Proxy,
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    pub fn start(ia: &Arc<Ia>, cno: &libkdapl::Cno, proxy: Proxy) -> Result<Self> {
        let memory = |_| Ret::new(Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY);
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let stop = Arc::new(EventFd::from_flags(flags).map_err(memory)?);
        let triggers = EventFd::from_flags(flags).map_err(memory)?;
        cno.modify_agent(Some(triggers.as_fd()))?;
        let watched = Watched { ia: Arc::downgrade(ia), cno: cno.clone(), triggers, proxy };
        let ends = stop.clone();
        let thread = thread::Builder::new()
            .name("kdapl-agent".into())
            .spawn(move || watched.run(&ends))
            .map_err(|_| Ret::new(Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY))?;
        Ok(Self { proxy, stop, thread: Some(thread) })
    }

    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Cannot fail: the counter is written only once.
        let _ = self.stop.write(1);
        let thread = self.thread.take();
        // The function itself may free the CNO or close the adapter. A thread cannot join itself.
        let other = thread.filter(|thread| thread.thread().id() != thread::current().id());
        if let Some(thread) = other {
            let _ = thread.join();
        }
    }
}

/// State of the thread.
struct Watched {
    ia: Weak<Ia>,
    cno: libkdapl::Cno,
    triggers: EventFd,
    proxy: Proxy,
}

impl Watched {
    fn run(&self, stop: &EventFd) {
        while self.sleep(stop) {
            // Call the function once for each trigger. Polling the CNO more often would report an
            // EVD again whose events the program has not taken yet.
            for _ in 0..self.triggers.read().unwrap_or(0) {
                let Ok(evd) = self.cno.wait(Some(Duration::ZERO)) else {
                    // A thread that waits on the CNO took the trigger.
                    break;
                };
                let Some(ia) = self.ia.upgrade() else { return };
                let handle = evd.map_or(ptr::null_mut(), |evd| ia.handle_of(evd));
                // Hold no reference during the call: the program may free the CNO or close the
                // adapter.
                drop(ia);
                self.proxy.call(handle);
            }
        }
    }

    /// Sleeps until the CNO is triggered. Returns false once the thread is to end.
    fn sleep(&self, stop: &EventFd) -> bool {
        let mut files = [
            PollFd::new(self.triggers.as_fd(), PollFlags::POLLIN),
            PollFd::new(stop.as_fd(), PollFlags::POLLIN),
        ];
        // After a signal no trigger is found, and the thread sleeps again.
        let _ = poll(&mut files, PollTimeout::NONE);
        files[1].revents().is_none_or(|seen| seen.is_empty())
    }
}
