// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls as commands of io_uring: one thread makes any number of calls, and waits for the events
//! of any number of EVDs and CNOs, with one system call.
//!
//! ```no_run
//! use libkdapl::uring::{Outcome, Ring};
//! # fn later(evd: &libkdapl::Evd) -> libkdapl::Result<()> {
//! let mut ring = Ring::new(64)?;
//! ring.provide_buffers(16, 32)?;
//! ring.stream(evd, 1, 7)?;
//! loop {
//!     let completion = ring.wait()?;
//!     if let Outcome::Events(events) = completion.result? {
//!         events.iter().for_each(|event| println!("{event}"));
//!     }
//! }
//! # }
//! ```

use crate::cno::Cno;
use crate::cr::Cr;
use crate::ep::{ConnectOptions, Dto, Ep};
use crate::error::{Error, Result};
use crate::evd::Evd;
use crate::event::Event;
use crate::object::Handle;
use crate::raw::{self, call, Call, Completed, Device, Message};
use crate::sys::*;
use crate::time::Until;
use crate::Segment;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Result of a command.
#[derive(Debug)]
pub enum Outcome {
    /// The call succeeded.
    Done,
    /// Events of a wait or of a stream.
    Events(Vec<Event>),
    /// A CNO was triggered by this EVD; `None` by [`Cno::trigger`].
    Triggered(Option<Handle>),
    /// Number of commands that a [cancel](Ring::cancel) has found.
    Cancelled(u32),
}

/// A completion of a command.
#[derive(Debug)]
pub struct Completion {
    /// The value that the command was submitted with.
    pub tag: u64,
    /// More completions of the same command follow.
    pub more: bool,
    /// Result of the call. `ECANCELED` (see [`Error::errno`]) for a command that was cancelled;
    /// `ENOBUFS` for a stream that has found all buffers filled, whose events stay in the EVD.
    pub result: Result<Outcome>,
}

/// Memory of a command, and the meaning of its answer. Its message points to this memory only.
pub(crate) enum Owned {
    /// Private data.
    Plain(Vec<u8>),
    /// DTOs and their segments.
    Dtos(Vec<kdapl_dto>, #[expect(dead_code, reason = "the kernel reads them")] Vec<Segment>),
    Events(Arc<Device>, Vec<kdapl_event>),
    Stream(Arc<Device>),
    Cno,
    Accept(Cr, Vec<u8>),
    Cancel,
}

/// A ring of commands. It belongs to the thread that has created it.
///
/// A command is submitted by the next [`submit`](Ring::submit) or [`wait`](Ring::wait). The drop
/// cancels the commands that wait, and waits for the others.
pub struct Ring(raw::Ring<Owned>);

impl Ring {
    /// Creates a ring for `entries` commands in one submission. More than that can be pending.
    ///
    /// # Errors
    /// [`Error::Transport`] with the errno: `EPERM` if an administrator has disabled io_uring
    /// (`kernel.io_uring_disabled`).
    pub fn new(entries: u32) -> Result<Self> {
        let ring = raw::Ring::new(entries).map_err(of("io_uring_setup"))?;
        Ok(Self(ring))
    }

    /// Provides `count` buffers, a power of two, for `events` events each. All streams of the ring
    /// share them. A buffer is provided again when its completion was taken.
    ///
    /// # Errors
    /// `EINVAL` for another count, or while commands are pending.
    pub fn provide_buffers(&mut self, count: u16, events: usize) -> Result<()> {
        self.0.provide(count, events).map_err(of("io_uring_register"))
    }

    /// Returns the number of commands that have not completed.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.0.pending()
    }

    fn push<M: Message>(
        &mut self,
        device: &Arc<Device>,
        call: Call<M>,
        tag: u64,
        owned: Owned,
        build: impl FnOnce(&mut Owned) -> M,
    ) -> Result<()> {
        let stream = matches!(owned, Owned::Stream(_));
        raw::push(&mut self.0, device, call, stream, tag, owned, build).map_err(of(call.name()))
    }

    /// Waits on an EVD: [`Evd::wait_many`].
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)`. The errors of the wait come with its completion.
    pub fn wait_evd(
        &mut self,
        evd: &Evd,
        timeout: Option<Duration>,
        threshold: i32,
        most: usize,
        tag: u64,
    ) -> Result<()> {
        let device = evd.device();
        let room = vec![kdapl_event::default(); most.min(KDAPL_EVENTS_MAX as usize)];
        let mut message = Self::wait_message(evd, timeout, threshold);
        message.max_events = room.len() as u32;
        let owned = Owned::Events(device.clone(), room);
        self.push(device, call::EVD_WAIT, tag, owned, |owned| {
            if let Owned::Events(_, room) = owned {
                message.events = room.as_mut_ptr() as u64;
            }
            message
        })
    }

    fn wait_message(evd: &Evd, timeout: Option<Duration>, threshold: i32) -> kdapl_evd_wait {
        kdapl_evd_wait {
            handle: evd.handle().0,
            timeout_ns: Until::after(timeout).timeout_ns,
            threshold,
            event_size: size_of::<kdapl_event>() as u32,
            ..Default::default()
        }
    }

    /// Streams the events of an EVD: a completion with events follows whenever at least `threshold`
    /// events are queued, until the stream ends. The [buffers](Self::provide_buffers) limit the
    /// number of events of a completion. A stream ends with events, its last ones, when the
    /// completion queue is full.
    ///
    /// # Errors
    /// Those of [`wait_evd`](Self::wait_evd).
    pub fn stream(&mut self, evd: &Evd, threshold: i32, tag: u64) -> Result<()> {
        let message = kdapl_uring_stream {
            handle: evd.handle().0,
            timeout_ns: KDAPL_TIMEOUT_INFINITE,
            threshold,
            event_size: size_of::<kdapl_event>() as u32,
            ..Default::default()
        };
        let owned = Owned::Stream(evd.device().clone());
        self.push(evd.device(), call::URING_STREAM, tag, owned, |_| message)
    }

    /// Waits on a CNO: [`Cno::wait`].
    ///
    /// # Errors
    /// Those of [`wait_evd`](Self::wait_evd).
    pub fn wait_cno(&mut self, cno: &Cno, timeout: Option<Duration>, tag: u64) -> Result<()> {
        let message = kdapl_cno_wait {
            handle: cno.handle().0,
            timeout_ns: Until::after(timeout).timeout_ns,
            ..Default::default()
        };
        self.push(cno.device(), call::CNO_WAIT, tag, Owned::Cno, |_| message)
    }

    /// Posts DTOs in their order, up to the first that is refused: [`Ep::submit`].
    ///
    /// # Errors
    /// Those of [`wait_evd`](Self::wait_evd).
    pub fn post(&mut self, ep: &Ep, dtos: &[Dto<'_>], tag: u64) -> Result<()> {
        let segments: Vec<Segment> = dtos.iter().flat_map(raw::segments).copied().collect();
        let mut next = segments.as_ptr();
        let mut dtos: Vec<kdapl_dto> = dtos.iter().map(|dto| dto.raw()).collect();
        for dto in &mut dtos {
            dto.iov = if dto.iov_count == 0 { 0 } else { next as u64 };
            next = next.wrapping_add(dto.iov_count as usize);
        }
        let message = kdapl_ep_submit {
            handle: ep.handle().0,
            count: dtos.len() as u32,
            dto_size: size_of::<kdapl_dto>() as u32,
            ..Default::default()
        };
        self.push(ep.device(), call::EP_SUBMIT, tag, Owned::Dtos(dtos, segments), |owned| {
            let Owned::Dtos(dtos, _) = owned else { return message };
            kdapl_ep_submit { dtos: dtos.as_ptr() as u64, ..message }
        })
    }

    /// Connects an endpoint: [`Ep::connect_with`].
    ///
    /// # Errors
    /// Those of [`wait_evd`](Self::wait_evd).
    pub fn connect(
        &mut self,
        ep: &Ep,
        address: SocketAddr,
        conn_qual: u64,
        options: &ConnectOptions<'_>,
        tag: u64,
    ) -> Result<()> {
        let mut message = ep.connect_message(address, conn_qual, options);
        let owned = Owned::Plain(options.private_data.to_vec());
        self.push(ep.device(), call::EP_CONNECT, tag, owned, |owned| {
            if let Owned::Plain(private_data) = owned {
                message.private_data = private_data.as_ptr() as u64;
            }
            message
        })
    }

    /// Accepts a connection request: [`Cr::accept`]. A request whose accept fails is rejected.
    ///
    /// # Errors
    /// Those of [`wait_evd`](Self::wait_evd).
    pub fn accept(&mut self, cr: Cr, ep: &Ep, private_data: &[u8], tag: u64) -> Result<()> {
        let mut message = kdapl_cr_answer {
            handle: cr.handle().0,
            ep: ep.handle().0,
            private_data_size: private_data.len() as u32,
            ..Default::default()
        };
        let owned = Owned::Accept(cr, private_data.to_vec());
        self.push(ep.device(), call::CR_ACCEPT, tag, owned, |owned| {
            if let Owned::Accept(_, private_data) = owned {
                message.private_data = private_data.as_ptr() as u64;
            }
            message
        })
    }

    /// Cancels a command that waits. It completes with `ECANCELED`, or with success if it has
    /// succeeded already.
    ///
    /// # Errors
    /// `ENOENT` if no command with this tag is pending; those of [`wait_evd`](Self::wait_evd).
    pub fn cancel(&mut self, cancelled: u64, tag: u64) -> Result<()> {
        let not_found = || of("cancel")(std::io::Error::from_raw_os_error(libc::ENOENT));
        let (device, user_data) = self.0.find(cancelled).ok_or_else(not_found)?;
        let message = kdapl_uring_cancel { user_data, ..Default::default() };
        self.push(&device, call::URING_CANCEL, tag, Owned::Cancel, |_| message)
    }

    /// Submits the commands that were queued.
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)`.
    pub fn submit(&mut self) -> Result<()> {
        self.0.enter(0).map_err(of("io_uring_enter"))
    }

    /// Takes a completion, if there is one.
    pub fn take(&mut self) -> Option<Completion> {
        self.0.take().map(|completed| self.decode(completed))
    }

    /// Submits the commands that were queued, and waits for a completion.
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)`.
    pub fn wait(&mut self) -> Result<Completion> {
        loop {
            if let Some(completion) = self.take() {
                return Ok(completion);
            }
            self.0.enter(1).map_err(of("io_uring_enter"))?;
        }
    }

    fn decode(&mut self, mut completed: Completed<Owned>) -> Completion {
        let result = match (completed.events.take(), completed.owned.take()) {
            (Some((device, events)), _) => Ok(decode_events(&device, &events)),
            (None, Some(owned)) => answer(&mut self.0, &completed, owned),
            (None, None) => Ok(Outcome::Done),
        };
        Completion { tag: completed.tag, more: completed.more, result }
    }
}

/// Converts the error of a system call.
fn of(call: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Transport { call, source }
}

fn decode_events(device: &Arc<Device>, events: &[kdapl_event]) -> Outcome {
    Outcome::Events(events.iter().map(|event| Event::decode(device, event)).collect())
}

/// Converts the last completion of a command.
fn answer(
    ring: &mut raw::Ring<Owned>,
    completed: &Completed<Owned>,
    owned: Owned,
) -> Result<Outcome> {
    let name = owned.call();
    if completed.result < 0 {
        return Err(of(name)(std::io::Error::from_raw_os_error(-completed.result)));
    }
    match completed.ret() {
        0 => {}
        code => return Err(Error::dat(name, code)),
    }
    match owned {
        Owned::Plain(_) | Owned::Dtos(..) => Ok(Outcome::Done),
        Owned::Stream(device) => {
            let last = completed.message::<kdapl_uring_stream>();
            Ok(decode_events(&device, &ring.take_buffer(last.buffer, last.taken)))
        }
        Owned::Events(device, room) => {
            let taken = completed.message::<kdapl_evd_wait>().taken as usize;
            Ok(decode_events(&device, &room[..taken.min(room.len())]))
        }
        Owned::Cno => {
            let evd = completed.message::<kdapl_cno_wait>().evd;
            Ok(Outcome::Triggered((evd != 0).then_some(Handle(evd))))
        }
        Owned::Accept(cr, _) => {
            // It has been answered.
            let _ = cr.into_handle();
            Ok(Outcome::Done)
        }
        Owned::Cancel => Ok(Outcome::Cancelled(completed.message::<kdapl_uring_cancel>().found)),
    }
}

impl Owned {
    /// Returns DAT's name of the call.
    fn call(&self) -> &'static str {
        match self {
            Self::Plain(_) => call::EP_CONNECT.name(),
            Self::Dtos(..) => call::EP_SUBMIT.name(),
            Self::Events(..) => call::EVD_WAIT.name(),
            Self::Stream(_) => call::URING_STREAM.name(),
            Self::Cno => call::CNO_WAIT.name(),
            Self::Accept(..) => call::CR_ACCEPT.name(),
            Self::Cancel => call::URING_CANCEL.name(),
        }
    }
}
