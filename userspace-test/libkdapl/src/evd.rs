// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Event Dispatchers (EVDs): queues of events.

mod mapped;

use crate::cno::Cno;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::file::EvdFile;
use crate::flags::EvdFlags;
use crate::object::{Handle, Object};
use crate::raw::{self, call, Call, Device, MappedEvents};
use crate::sys::*;
use crate::time::{Monotonic, Until};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Result of [`Evd::query`].
#[derive(Clone, Copy, Debug)]
pub struct EvdQuery {
    /// Queue length in entries.
    pub qlen: i32,
    /// Events trigger the CNO.
    pub enabled: bool,
    /// Threads may wait on the EVD.
    pub waitable: bool,
    /// CNO that the EVD triggers.
    pub cno: Option<Handle>,
    /// Event streams that may feed the EVD.
    pub flags: EvdFlags,
    /// Number of events that can be dequeued now.
    pub queued: u32,
    /// Completions that wake a waiter.
    pub wakes: EvdConfig,
    /// Completion vector of the first completion queue.
    pub vector: u32,
    /// Number of completion queues.
    pub cqs: u32,
}

/// Completions that wake a waiter, determined by the completion flags of the EVD's endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvdConfig {
    /// All, once the queue holds as many events as the wait asks for (the default).
    Threshold,
    /// Those posted without [`CompletionFlags::UNSIGNALLED`](crate::CompletionFlags).
    Notify,
    /// Receives of messages sent with [`CompletionFlags::SOLICITED_WAIT`](crate::CompletionFlags).
    Solicited,
}

/// An event queue. One thread at a time can wait on it.
#[derive(Clone, Debug)]
pub struct Evd(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ownership: Ownership,
    /// CNO that the EVD triggers. Kept alive, and dropped after the EVD.
    cno: Mutex<Option<Cno>>,
    /// Events that are taken without a system call. Mapped by the first call that leaves events in
    /// the queue; `None` if the kernel cannot map them.
    mapped: OnceLock<Option<MappedEvents>>,
}

#[derive(Debug)]
enum Ownership {
    Own(Object),
    /// Asynchronous EVD. It is freed with its IA.
    OfIa(Arc<Device>, Handle),
}

impl Evd {
    pub(crate) fn create(
        device: &Arc<Device>,
        flags: EvdFlags,
        qlen: i32,
        vector: i32,
    ) -> Result<Self> {
        let mut message = kdapl_evd_create { qlen, flags: flags.0, vector, ..Default::default() };
        raw::call(device, call::EVD_CREATE, &mut message)?;
        Ok(Self::at(Ownership::Own(Object::new(device, message.handle, call::EVD_FREE))))
    }

    pub(crate) fn of_ia(device: &Arc<Device>, handle: u64) -> Self {
        Self::at(Ownership::OfIa(device.clone(), Handle(handle)))
    }

    fn at(ownership: Ownership) -> Self {
        Self(Arc::new(Inner { ownership, cno: Mutex::new(None), mapped: OnceLock::new() }))
    }

    /// Returns the open file of the EVD, for raw messages.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        match &self.0.ownership {
            Ownership::Own(object) => &object.device,
            Ownership::OfIa(device, _) => device,
        }
    }

    /// Returns the kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        match &self.0.ownership {
            Ownership::Own(object) => object.handle,
            Ownership::OfIa(_, handle) => *handle,
        }
    }

    /// Sleeps until the queue holds `threshold` events or `timeout` expires (`None`: no limit),
    /// then takes the first. Also returns the number of events left in the queue. While some of
    /// them are mapped, that is the number of those only; it is 0 only if the queue was empty.
    ///
    /// # Errors
    /// `TIMEOUT_EXPIRED`; `INTERRUPTED_CALL` after a signal that called a handler;
    /// `INVALID_STATE/EVD_WAITER` if another thread waits; `INVALID_PARAMETER` for a threshold
    /// outside 1 .. queue length; `INVALID_STATE/EVD_CONFIG_NOTIFY` or `/EVD_CONFIG_SOLICITED` for
    /// a threshold above 1 in that [configuration](EvdQuery::wakes). None of them loses an event.
    pub fn wait(&self, timeout: Option<Duration>, threshold: i32) -> Result<(Event, u32)> {
        self.take(call::EVD_WAIT, Until::after(timeout), threshold)
    }

    /// Like [`wait`](Self::wait), but until a point in time.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait). A time in the past ends the wait at once, unless there are
    /// enough events.
    pub fn wait_until(&self, time: Monotonic, threshold: i32) -> Result<(Event, u32)> {
        self.take(call::EVD_WAIT, Until::at(time), threshold)
    }

    /// Like [`wait`](Self::wait), but takes all available events, up to `most` and
    /// [`KDAPL_EVENTS_MAX`], in their order and in the same system call.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait); `INVALID_PARAMETER` (argument 4) if `most` is 0.
    pub fn wait_many(
        &self,
        timeout: Option<Duration>,
        threshold: i32,
        most: usize,
    ) -> Result<(Vec<Event>, u32)> {
        self.take_many(call::EVD_WAIT, Until::after(timeout), threshold, most)
    }

    /// Takes the first event without sleeping.
    ///
    /// # Errors
    /// `QUEUE_EMPTY` if there is none (see [`Error::is_empty`](crate::Error::is_empty)).
    pub fn dequeue(&self) -> Result<(Event, u32)> {
        self.take(call::EVD_DEQUEUE, Until::NOW, 1)
    }

    /// Takes up to `most` events in their order, but no more than [`KDAPL_EVENTS_MAX`], in one
    /// system call and without sleeping. Also returns the number of events left in the queue.
    ///
    /// # Errors
    /// `QUEUE_EMPTY` if there is none; `INVALID_PARAMETER` (argument 2) if `most` is 0.
    pub fn dequeue_many(&self, most: usize) -> Result<(Vec<Event>, u32)> {
        self.take_many(call::EVD_DEQUEUE, Until::NOW, 1, most)
    }

    fn take(
        &self,
        call: Call<kdapl_evd_wait>,
        until: Until,
        threshold: i32,
    ) -> Result<(Event, u32)> {
        let empty = self.is_known_empty(call);
        if let Some((event, nmore)) = self.take_mapped(threshold) {
            return Ok((Event::decode(self.device(), &event), nmore));
        }
        if empty {
            return Err(Error::queue_empty(call.name()));
        }
        let mut event = kdapl_event::default();
        let room = std::slice::from_mut(&mut event);
        let (_, nmore) = self.take_into(call, until, threshold, room)?;
        Ok((Event::decode(self.device(), &event), nmore))
    }

    fn take_many(
        &self,
        call: Call<kdapl_evd_wait>,
        until: Until,
        threshold: i32,
        most: usize,
    ) -> Result<(Vec<Event>, u32)> {
        let mut room = vec![kdapl_event::default(); most.min(KDAPL_EVENTS_MAX as usize)];
        let empty = self.is_known_empty(call);
        let (taken, nmore) = match self.take_mapped_into(threshold, &mut room) {
            (0, _) if empty && most != 0 => return Err(Error::queue_empty(call.name())),
            (0, _) => self.take_into(call, until, threshold, &mut room)?,
            mapped => mapped,
        };
        let events = room[..taken].iter().map(|event| Event::decode(self.device(), event));
        Ok((events.collect(), nmore))
    }

    /// Takes events into `room`. Returns the number of events taken and the number left in the
    /// queue.
    fn take_into(
        &self,
        call: Call<kdapl_evd_wait>,
        until: Until,
        threshold: i32,
        room: &mut [kdapl_event],
    ) -> Result<(usize, u32)> {
        let until = until.restartable();
        let mut message = kdapl_evd_wait {
            hdr: until.hdr(),
            handle: self.handle().0,
            timeout_ns: until.timeout_ns,
            threshold,
            max_events: room.len() as u32,
            events: room.as_mut_ptr() as u64,
            event_size: size_of::<kdapl_event>() as u32,
            ..Default::default()
        };
        self.device().bursts.note_take();
        raw::call(self.device(), call, &mut message)?;
        if message.nmore != 0 {
            self.map_events();
        }
        Ok(((message.taken as usize).min(room.len()), message.nmore))
    }

    /// Opens a file from which events are read, for `poll`, `epoll` and async runtimes
    /// ([`Events`](crate::Events)). Software events are written to it.
    ///
    /// # Errors
    /// `INSUFFICIENT_RESOURCES` if the process has too many open files.
    pub fn file(&self) -> Result<EvdFile> {
        EvdFile::open(self)
    }

    /// Appends a software event with `pointer` to the queue.
    ///
    /// # Errors
    /// `QUEUE_FULL`; `INVALID_PARAMETER` without [`EvdFlags::SOFTWARE`].
    pub fn post_se(&self, pointer: u64) -> Result<()> {
        let mut message =
            kdapl_evd_post_se { handle: self.handle().0, pointer, ..Default::default() };
        raw::call(self.device(), call::EVD_POST_SE, &mut message)
    }

    /// Returns length, state and fill level.
    ///
    /// # Errors
    /// `INVALID_HANDLE` after the EVD was freed.
    pub fn query(&self) -> Result<EvdQuery> {
        let mut message = kdapl_evd_query { handle: self.handle().0, ..Default::default() };
        raw::call(self.device(), call::EVD_QUERY, &mut message)?;
        Ok(EvdQuery {
            qlen: message.qlen,
            enabled: message.state & KDAPL_EVD_ENABLED != 0,
            waitable: message.state & KDAPL_EVD_WAITABLE != 0,
            cno: (message.cno != 0).then_some(Handle(message.cno)),
            flags: EvdFlags(message.flags),
            queued: message.queued,
            wakes: match message.state & KDAPL_EVD_CONFIG_THRESHOLD {
                KDAPL_EVD_CONFIG_NOTIFY => EvdConfig::Notify,
                KDAPL_EVD_CONFIG_SOLICITED => EvdConfig::Solicited,
                _ => EvdConfig::Threshold,
            },
            vector: message.vector,
            cqs: message.cqs,
        })
    }

    /// Sets the CNO that the EVD triggers, or none. Queued events trigger the new CNO as well.
    ///
    /// # Errors
    /// `INVALID_HANDLE/CNO` if the CNO was freed.
    pub fn modify_cno(&self, cno: Option<&Cno>) -> Result<()> {
        let mut message = kdapl_evd_modify_cno {
            handle: self.handle().0,
            cno: cno.map_or(0, |cno| cno.handle().0),
            ..Default::default()
        };
        let mut kept = self.0.cno.lock().unwrap_or_else(PoisonError::into_inner);
        raw::call(self.device(), call::EVD_MODIFY_CNO, &mut message)?;
        *kept = cno.cloned();
        Ok(())
    }

    /// Changes the queue length to at least `qlen` events and returns the actual length. Queued
    /// events are kept.
    ///
    /// # Errors
    /// `INVALID_STATE` if more events are queued than that, or a thread waits for more than that;
    /// `INVALID_PARAMETER` (argument 2) below 1 or above the IA's maximum. The queue is then
    /// unchanged.
    pub fn resize(&self, qlen: i32) -> Result<i32> {
        let mut message = kdapl_evd_resize { handle: self.handle().0, qlen, ..Default::default() };
        raw::call(self.device(), call::EVD_RESIZE, &mut message)?;
        Ok(message.qlen)
    }

    /// Lets events trigger the CNO (the default), including the queued ones.
    ///
    /// # Errors
    /// `INVALID_HANDLE` after the EVD was freed.
    pub fn enable(&self) -> Result<()> {
        self.simply(call::EVD_ENABLE)
    }

    /// Keeps events from triggering the CNO.
    ///
    /// # Errors
    /// Those of [`enable`](Self::enable).
    pub fn disable(&self) -> Result<()> {
        self.simply(call::EVD_DISABLE)
    }

    /// Makes present and later waits fail with `INVALID_STATE/EVD_UNWAITABLE`.
    ///
    /// # Errors
    /// Those of [`enable`](Self::enable).
    pub fn set_unwaitable(&self) -> Result<()> {
        self.simply(call::EVD_SET_UNWAITABLE)
    }

    /// Allows waits (the default).
    ///
    /// # Errors
    /// Those of [`enable`](Self::enable).
    pub fn clear_unwaitable(&self) -> Result<()> {
        self.simply(call::EVD_CLEAR_UNWAITABLE)
    }

    fn simply(&self, call: Call<kdapl_handle>) -> Result<()> {
        let mut message = kdapl_handle { handle: self.handle().0, ..Default::default() };
        raw::call(self.device(), call, &mut message)
    }

    /// Frees the EVD with its queued events.
    ///
    /// # Errors
    /// `INVALID_STATE/EVD_IN_USE` while endpoints or service points feed it.
    pub fn free(&self) -> Result<()> {
        match &self.0.ownership {
            Ownership::Own(object) => object.free(),
            Ownership::OfIa(..) => self.simply(call::EVD_FREE),
        }
    }
}
