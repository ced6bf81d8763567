// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Event Dispatchers: the queues that events arrive on.

use crate::cno::Cno;
use crate::error::Result;
use crate::event::Event;
use crate::flags::EvdFlags;
use crate::object::{Handle, Object};
use crate::raw::{self, call, Call, Device};
use crate::sys::*;
use crate::time::{Monotonic, Until};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What [`Evd::query`] tells.
#[derive(Clone, Copy, Debug)]
pub struct EvdQuery {
    /// Queue length in entries.
    pub qlen: i32,
    /// Its events trigger its CNO.
    pub enabled: bool,
    /// Threads may wait on it.
    pub waitable: bool,
    /// The CNO that it triggers.
    pub cno: Option<Handle>,
    /// The streams that may feed it.
    pub flags: EvdFlags,
    /// Events that a dequeue would find now.
    pub queued: u32,
    /// Which completions wake who waits.
    pub wakes: EvdConfig,
    /// The completion vector of the first completion queue.
    pub vector: u32,
    /// How many completion queues there are.
    pub cqs: u32,
}

/// Which completions wake who waits: the completion flags of the Endpoints that report there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvdConfig {
    /// Each, once there are as many events as a wait wants (the default).
    Threshold,
    /// Those that were not posted with [`CompletionFlags::UNSIGNALLED`](crate::CompletionFlags).
    Notify,
    /// Receives of what was sent with [`CompletionFlags::SOLICITED_WAIT`](crate::CompletionFlags).
    Solicited,
}

/// An event queue. One thread waits on it at a time.
#[derive(Clone, Debug)]
pub struct Evd(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    place: Place,
    /// Kept alive, and dropped behind the EVD.
    cno: Mutex<Option<Cno>>,
}

#[derive(Debug)]
enum Place {
    Own(Object),
    /// The asynchronous EVD, which is freed with its IA.
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
        Ok(Self::at(Place::Own(Object::new(device, message.handle, call::EVD_FREE))))
    }

    pub(crate) fn of_ia(device: &Arc<Device>, handle: u64) -> Self {
        Self::at(Place::OfIa(device.clone(), Handle(handle)))
    }

    fn at(place: Place) -> Self {
        Self(Arc::new(Inner { place, cno: Mutex::new(None) }))
    }

    /// The open file that it belongs to, for raw messages.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        match &self.0.place {
            Place::Own(object) => &object.device,
            Place::OfIa(device, _) => device,
        }
    }

    /// The kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        match &self.0.place {
            Place::Own(object) => object.handle,
            Place::OfIa(_, handle) => *handle,
        }
    }

    /// Sleeps until `threshold` events are there or `timeout` is over (`None`: for ever), then
    /// takes the first. Also returns the number of events left in the queue.
    ///
    /// # Errors
    /// `TIMEOUT_EXPIRED`; `INTERRUPTED_CALL` if a signal arrived; `INVALID_STATE/EVD_WAITER`
    /// if another thread waits already; `INVALID_PARAMETER` for a threshold outside
    /// 1 .. queue length; `INVALID_STATE/EVD_CONFIG_NOTIFY` or `/EVD_CONFIG_SOLICITED` for one above 1
    /// where that is the [configuration](EvdQuery::wakes). No event is lost by any of them.
    pub fn wait(&self, timeout: Option<Duration>, threshold: i32) -> Result<(Event, u32)> {
        self.take(call::EVD_WAIT, Until::after(timeout), threshold)
    }

    /// As [`wait`](Self::wait), but until a time.
    ///
    /// # Errors
    /// As there. One that is over ends it at once, unless there are enough events.
    pub fn wait_until(&self, time: Monotonic, threshold: i32) -> Result<(Event, u32)> {
        self.take(call::EVD_WAIT, Until::at(time), threshold)
    }

    /// As [`wait`](Self::wait), but takes up to `most` events, in their order, in the same system
    /// call: no more than [`KDAPL_EVENTS_MAX`], and as many as are there.
    ///
    /// # Errors
    /// As there; `INVALID_PARAMETER` (argument 4) if `most` is 0.
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
    /// `QUEUE_EMPTY` if there is none; [`Error::is_empty`](crate::Error::is_empty) asks for it.
    pub fn dequeue(&self) -> Result<(Event, u32)> {
        self.take(call::EVD_DEQUEUE, Until::NOW, 0)
    }

    /// Takes up to `most` events in their order, in one system call and without sleeping: no more
    /// than [`KDAPL_EVENTS_MAX`]. Also returns the number of events left in the queue.
    ///
    /// # Errors
    /// `QUEUE_EMPTY` if there is none; `INVALID_PARAMETER` (argument 2) if `most` is 0.
    pub fn dequeue_many(&self, most: usize) -> Result<(Vec<Event>, u32)> {
        self.take_many(call::EVD_DEQUEUE, Until::NOW, 0, most)
    }

    fn take(
        &self,
        call: Call<kdapl_evd_wait>,
        until: Until,
        threshold: i32,
    ) -> Result<(Event, u32)> {
        let mut event = kdapl_event::default();
        let room = std::slice::from_mut(&mut event);
        let (_, nmore) = self.take_into(call, until, threshold, room)?;
        Ok((Event::decode(self.device(), &event)?, nmore))
    }

    fn take_many(
        &self,
        call: Call<kdapl_evd_wait>,
        until: Until,
        threshold: i32,
        most: usize,
    ) -> Result<(Vec<Event>, u32)> {
        let mut room = vec![kdapl_event::default(); most.min(KDAPL_EVENTS_MAX as usize)];
        let (taken, nmore) = self.take_into(call, until, threshold, &mut room)?;
        let events = room[..taken].iter().map(|event| Event::decode(self.device(), event));
        Ok((events.collect::<Result<_>>()?, nmore))
    }

    /// How many were taken, and how many are left.
    fn take_into(
        &self,
        call: Call<kdapl_evd_wait>,
        until: Until,
        threshold: i32,
        room: &mut [kdapl_event],
    ) -> Result<(usize, u32)> {
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
        raw::call(self.device(), call, &mut message)?;
        Ok(((message.taken as usize).min(room.len()), message.nmore))
    }

    /// Puts a software event, which carries `pointer`, at the end of the queue.
    ///
    /// # Errors
    /// `QUEUE_FULL`; `INVALID_PARAMETER` without [`EvdFlags::SOFTWARE`].
    pub fn post_se(&self, pointer: u64) -> Result<()> {
        let mut message =
            kdapl_evd_post_se { handle: self.handle().0, pointer, ..Default::default() };
        raw::call(self.device(), call::EVD_POST_SE, &mut message)
    }

    /// Length, state and fill.
    ///
    /// # Errors
    /// `INVALID_HANDLE` once freed.
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

    /// The CNO that it triggers from now on, also with the events that are there; or none.
    ///
    /// # Errors
    /// `INVALID_HANDLE/CNO` for one that was freed.
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

    /// Gives it room for `qlen` events at least, and says for how many. Events that are there stay.
    ///
    /// # Errors
    /// `INVALID_STATE` if more are there, or somebody waits for more, than that; `INVALID_PARAMETER`
    /// (argument 2) below 1 or above the adapter's maximum. Nothing has changed then.
    pub fn resize(&self, qlen: i32) -> Result<i32> {
        let mut message = kdapl_evd_resize { handle: self.handle().0, qlen, ..Default::default() };
        raw::call(self.device(), call::EVD_RESIZE, &mut message)?;
        Ok(message.qlen)
    }

    /// Its events trigger its CNO (the default), also those that are there.
    ///
    /// # Errors
    /// `INVALID_HANDLE` once freed.
    pub fn enable(&self) -> Result<()> {
        self.simply(call::EVD_ENABLE)
    }

    /// Its events trigger no CNO.
    ///
    /// # Errors
    /// As [`enable`](Self::enable).
    pub fn disable(&self) -> Result<()> {
        self.simply(call::EVD_DISABLE)
    }

    /// Nobody may wait: who does gets `INVALID_STATE/EVD_UNWAITABLE`, now and later.
    ///
    /// # Errors
    /// As [`enable`](Self::enable).
    pub fn set_unwaitable(&self) -> Result<()> {
        self.simply(call::EVD_SET_UNWAITABLE)
    }

    /// Threads may wait (the default).
    ///
    /// # Errors
    /// As [`enable`](Self::enable).
    pub fn clear_unwaitable(&self) -> Result<()> {
        self.simply(call::EVD_CLEAR_UNWAITABLE)
    }

    fn simply(&self, call: Call<kdapl_handle>) -> Result<()> {
        let mut message = kdapl_handle { handle: self.handle().0, ..Default::default() };
        raw::call(self.device(), call, &mut message)
    }

    /// Frees it now, with the events in it.
    ///
    /// # Errors
    /// `INVALID_STATE/EVD_IN_USE` while endpoints or listeners feed it.
    pub fn free(&self) -> Result<()> {
        match &self.0.place {
            Place::Own(object) => object.free(),
            Place::OfIa(..) => self.simply(call::EVD_FREE),
        }
    }
}
