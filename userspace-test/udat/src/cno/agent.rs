// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! OS wait proxy agents: functions of the program that are called for each EVD that triggers a CNO.
//!
//! A CNO has a thread only if the program supplies an agent. The thread sleeps in `poll` on two
//! eventfds: one that each trigger signals, and one that ends the thread. It ends when the CNO is
//! freed or the adapter is closed. The kernel keeps the triggers for the thread apart from those
//! for `dat_cno_wait`.

use crate::abi::{DAT_AGENT_FUNC, DAT_EVD_HANDLE, DAT_OS_WAIT_PROXY_AGENT};
use crate::foreign;
use crate::ia::Ia;
use crate::ret::{Result, Ret};
use libkdapl::{Handle, Subtype, Type};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::AsFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Requests the end of a thread.
struct Stop {
    /// Signalled once.
    eventfd: EventFd,
    /// The thread checks this between two calls of the function.
    requested: AtomicBool,
}

impl Stop {
    fn request(&self) {
        self.requested.store(true, Ordering::Release);
        // Cannot fail: the counter is written only once.
        let _ = self.eventfd.write(1);
    }

    fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }
}

/// Thread that calls a proxy agent.
pub struct Agent {
    proxy: Proxy,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

fn new_eventfd() -> Result<EventFd> {
    EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
        .map_err(|_| Ret::new(Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY))
}

impl Agent {
    /// Starts the thread, and makes it the agent of the CNO in place of another one. After an error
    /// the CNO has the agent that it had before.
    pub fn start(ia: &Arc<Ia>, cno: &libkdapl::Cno, proxy: Proxy) -> Result<Self> {
        let stop = Arc::new(Stop { eventfd: new_eventfd()?, requested: false.into() });
        let (ia, cno, triggers) = (Arc::downgrade(ia), cno.clone(), new_eventfd()?);
        let watched = Arc::new(Watched { ia, cno, triggers, proxy });
        let (sleeper, ends) = (watched.clone(), stop.clone());
        let thread = thread::Builder::new()
            .name("kdapl-agent".into())
            .spawn(move || sleeper.run(&ends))
            .map_err(|_| Ret::new(Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY))?;
        // If the kernel refuses the eventfd, the drop ends the thread.
        let agent = Self { proxy, stop, thread: Some(thread) };
        watched.cno.modify_agent(Some(watched.triggers.as_fd()))?;
        Ok(agent)
    }

    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.request();
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
    fn run(&self, stop: &Stop) {
        while self.sleep(stop) {
            // Reset the counter before the triggers are taken, so that a later one wakes the thread
            // again.
            let count = self.triggers.read().unwrap_or(0);
            self.call_for_each(count, stop);
        }
    }

    /// Calls the function for each trigger. The eventfd has counted `count` of them.
    fn call_for_each(&self, count: u64, stop: &Stop) {
        let mut left = count;
        while !stop.is_requested() {
            let Some(evd) = self.take(&mut left) else { return };
            let Some(ia) = self.ia.upgrade() else { return };
            let handle = evd.map_or(ptr::null_mut(), |evd| ia.handle_of(evd));
            // Hold no reference during the call: the program may free the CNO or close the adapter.
            drop(ia);
            self.proxy.call(handle);
        }
    }

    /// Takes a trigger, without sleeping. Its EVD is `None` after `dat_cno_trigger`.
    ///
    /// A module that has no triggers for agents refuses the flag with `EINVAL`. There the thread
    /// takes triggers from the waiters, not more often than the eventfd has counted: polling the
    /// CNO more often would return an EVD again whose events the program has not taken yet.
    fn take(&self, left: &mut u64) -> Option<Option<Handle>> {
        match self.cno.take_for_agent() {
            Err(error) if error.errno() == Some(libc::EINVAL) => {
                *left = left.checked_sub(1)?;
                self.cno.wait(Some(Duration::ZERO)).ok()
            }
            taken => taken.ok(),
        }
    }

    /// Sleeps until the CNO is triggered. Returns false once the thread is to end.
    fn sleep(&self, stop: &Stop) -> bool {
        let mut files = [
            PollFd::new(self.triggers.as_fd(), PollFlags::POLLIN),
            PollFd::new(stop.eventfd.as_fd(), PollFlags::POLLIN),
        ];
        // After a signal no trigger is found, and the thread sleeps again.
        let _ = poll(&mut files, PollTimeout::NONE);
        files[1].revents().is_none_or(|seen| seen.is_empty())
    }
}
