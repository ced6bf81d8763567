// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Files of event dispatchers and notification objects, for `poll`, `epoll` and async runtimes.

use crate::cno::Cno;
use crate::error::{Error, Result};
use crate::evd::Evd;
use crate::event::Event;
use crate::object::Handle;
use crate::raw;
use crate::sys::{kdapl_event, kdapl_trigger, KDAPL_EVENTS_MAX};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Largest number of records that a read returns.
const MOST: usize = KDAPL_EVENTS_MAX as usize;

/// Names the call for an error.
fn failed(call: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Transport { call, source }
}

/// A file of an [`Evd`]: it is readable while the EVD has events, and writable while it has room
/// for software events. After the EVD was freed, or its IA closed, it reports a hang-up.
///
/// It is a consumer like the methods of [`Evd`], and beside them: each event is taken once. Any
/// number of threads may read. A process that gets the descriptor can read events and post software
/// events, and nothing else.
#[derive(Debug)]
pub struct EvdFile {
    file: OwnedFd,
    evd: Evd,
}

impl EvdFile {
    pub(crate) fn open(evd: &Evd) -> Result<Self> {
        let file = raw::evd_file(evd.device(), evd.handle().0)?;
        Ok(Self { file, evd: evd.clone() })
    }

    /// Returns the EVD.
    #[must_use]
    pub fn evd(&self) -> &Evd {
        &self.evd
    }

    /// Takes up to `most` events, but no more than [`KDAPL_EVENTS_MAX`], the oldest first. Sleeps
    /// while there is none, unless the file is [non-blocking](Self::set_nonblocking). Returns no
    /// event after the EVD was freed.
    ///
    /// # Errors
    /// `EAGAIN` of a non-blocking file without an event (see [`Error::is_empty`]); `EINTR` after a
    /// signal whose handler does not restart system calls; `EPERM` instead of a sleep if the EVD is
    /// unwaitable. None of them loses an event.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn read(&self, most: usize) -> Result<Vec<Event>> {
        assert!(most != 0, "a read of no events");
        let mut room = vec![kdapl_event::default(); most.min(MOST)];
        let count = raw::records::read(&self.file, &mut room).map_err(failed("read of events"))?;
        let events = room[..count].iter().map(|event| Event::decode(self.evd.device(), event));
        Ok(events.collect())
    }

    /// Posts a software event for each of these pointers. Sleeps while the queue is full, unless
    /// the file is [non-blocking](Self::set_nonblocking). Returns the number of posted events,
    /// which is less than that of the pointers if it would have to sleep for the others.
    ///
    /// # Errors
    /// `EAGAIN` of a non-blocking file without room; `EBADF` without
    /// [`EvdFlags::SOFTWARE`](crate::EvdFlags::SOFTWARE); `EPIPE` after the EVD was freed; `EINTR`
    /// as for [`read`](Self::read).
    ///
    /// # Panics
    /// If there is no pointer.
    pub fn write(&self, pointers: &[u64]) -> Result<usize> {
        assert!(!pointers.is_empty(), "a write of no events");
        raw::records::write(&self.file, pointers).map_err(failed("write of software events"))
    }

    /// Makes reads and writes fail instead of sleeping, or sleep again. This concerns all
    /// descriptors of the file, also those of other processes.
    ///
    /// # Errors
    /// The errno of `fcntl(2)`.
    pub fn set_nonblocking(&self, nonblocking: bool) -> Result<()> {
        raw::records::set_nonblocking(self.as_fd(), nonblocking).map_err(failed("fcntl"))
    }
}

/// A file of a [`Cno`]: it is readable while a read returns at once. After the CNO was freed, or
/// its IA closed, it reports a hang-up.
///
/// A read takes triggers like [`Cno::wait`], and beside it: each trigger is taken once.
#[derive(Debug)]
pub struct CnoFile {
    file: OwnedFd,
    cno: Cno,
}

impl CnoFile {
    pub(crate) fn open(cno: &Cno) -> Result<Self> {
        let file = raw::cno_file(cno.device(), cno.handle().0)?;
        Ok(Self { file, cno: cno.clone() })
    }

    /// Returns the CNO.
    #[must_use]
    pub fn cno(&self) -> &Cno {
        &self.cno
    }

    /// Takes up to `most` triggers, but no more than [`KDAPL_EVENTS_MAX`], in their order: the EVD
    /// of each, or `None` for a [`Cno::trigger`]. Sleeps while there is none, unless the file is
    /// [non-blocking](Self::set_nonblocking). Returns no trigger after the CNO was freed.
    ///
    /// # Errors
    /// `EAGAIN` of a non-blocking file without a trigger (see [`Error::is_empty`]); `EINTR` after a
    /// signal whose handler does not restart system calls. None of them loses a trigger.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn read(&self, most: usize) -> Result<Vec<Option<Handle>>> {
        assert!(most != 0, "a read of no triggers");
        let mut room = vec![kdapl_trigger::default(); most.min(MOST)];
        let count =
            raw::records::read(&self.file, &mut room).map_err(failed("read of triggers"))?;
        let triggers = room[..count].iter();
        Ok(triggers.map(|trigger| (trigger.evd != 0).then_some(Handle(trigger.evd))).collect())
    }

    /// Makes reads fail instead of sleeping, or sleep again, as for
    /// [`EvdFile::set_nonblocking`].
    ///
    /// # Errors
    /// The errno of `fcntl(2)`.
    pub fn set_nonblocking(&self, nonblocking: bool) -> Result<()> {
        raw::records::set_nonblocking(self.as_fd(), nonblocking).map_err(failed("fcntl"))
    }
}

macro_rules! descriptors {
    ($($file:ident),*) => {
        $(impl AsFd for $file {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.file.as_fd()
            }
        }

        impl AsRawFd for $file {
            fn as_raw_fd(&self) -> RawFd {
                self.file.as_raw_fd()
            }
        }

        impl From<$file> for OwnedFd {
            fn from(file: $file) -> Self {
                file.file
            }
        })*
    };
}

descriptors!(EvdFile, CnoFile);
