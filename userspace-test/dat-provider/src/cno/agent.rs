// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! OS wait proxy agents: functions of the program that are called for each EVD that triggers its CNO.
//!
//! Only a program that asks for one has a thread here. It sleeps in `poll`, on an eventfd that each
//! trigger signals and on one that ends it, and is gone when the CNO is freed or the adapter closed.

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

/// A function of the program, and what it wants to be called with.
#[derive(Clone, Copy)]
pub struct Proxy {
    /// An address, to us.
    instance: usize,
    function: DAT_AGENT_FUNC,
}

impl Proxy {
    /// None if there is no function.
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

/// The thread that calls it.
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
        // It cannot be full: it is written once.
        let _ = self.stop.write(1);
        let thread = self.thread.take();
        // A program may free the object, or close the adapter, from the function itself.
        let other = thread.filter(|thread| thread.thread().id() != thread::current().id());
        if let Some(thread) = other {
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Watched {
    ia: Weak<Ia>,
    cno: libkdapl::Cno,
    triggers: EventFd,
    proxy: Proxy,
}

impl Watched {
    fn run(&self, stop: &EventFd) {
        while self.sleep(stop) {
            // One call for each trigger. More would come of looking again, while the program has not
            // come to take the events of an EVD that it was told of.
            for _ in 0..self.triggers.read().unwrap_or(0) {
                let Ok(evd) = self.cno.wait(Some(Duration::ZERO)) else {
                    // Another thread, that waits on the object, was first.
                    break;
                };
                let Some(ia) = self.ia.upgrade() else { return };
                let handle = evd.map_or(ptr::null_mut(), |evd| ia.handle_of(evd));
                // Nothing is held while the program runs: it may close all of it.
                drop(ia);
                self.proxy.call(handle);
            }
        }
    }

    /// Until the CNO has triggered; no more once it has no agent.
    fn sleep(&self, stop: &EventFd) -> bool {
        let mut files = [
            PollFd::new(self.triggers.as_fd(), PollFlags::POLLIN),
            PollFd::new(stop.as_fd(), PollFlags::POLLIN),
        ];
        // A signal is as good as nothing: no trigger is found, and it sleeps again.
        let _ = poll(&mut files, PollTimeout::NONE);
        files[1].revents().is_none_or(|seen| seen.is_empty())
    }
}
