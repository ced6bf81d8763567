// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events and triggers as asynchronous streams, for any async runtime.
//!
//! The library has no runtime of its own. A runtime watches a file, and reports when it is
//! readable: that is [`AsyncFile`]. With the feature `tokio` the library implements it for tokio's
//! `AsyncFd`. For another runtime a program implements it in a few lines.

use crate::error::{Error, Result};
use crate::event::Event;
use crate::file::{CnoFile, EvdFile};
use crate::object::Handle;
use futures_core::Stream;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{ready, Context, Poll};

/// Number of records that one read takes.
const AT_ONCE: usize = 64;

/// A non-blocking file that a runtime watches.
pub trait AsyncFile {
    /// The file.
    type File;

    /// Calls `read` until it succeeds, or fails with another error than
    /// [`WouldBlock`](io::ErrorKind::WouldBlock). Between two calls it waits until the file is
    /// readable, or hung up. While it waits it returns [`Poll::Pending`], and wakes the task
    /// afterwards.
    fn poll_read<T>(
        &mut self,
        context: &mut Context<'_>,
        read: impl FnMut(&Self::File) -> io::Result<T>,
    ) -> Poll<io::Result<T>>;
}

/// A file whose records are the items of a stream.
trait Source {
    type Item;

    fn read_some(&self) -> Result<Vec<Self::Item>>;
}

impl Source for EvdFile {
    type Item = Event;

    fn read_some(&self) -> Result<Vec<Event>> {
        self.read(AT_ONCE)
    }
}

impl Source for CnoFile {
    type Item = Option<Handle>;

    fn read_some(&self) -> Result<Vec<Option<Handle>>> {
        self.read(AT_ONCE)
    }
}

/// Takes the next record: those that were read before, then those that a read returns. `None` is
/// the end of the file.
fn poll_record<A>(
    file: &mut A,
    taken: &mut VecDeque<<A::File as Source>::Item>,
    context: &mut Context<'_>,
) -> Poll<Option<Result<<A::File as Source>::Item>>>
where
    A: AsyncFile,
    A::File: Source,
{
    if taken.is_empty() {
        // An error of the library passes the runtime as a value.
        let read = |file: &A::File| match file.read_some() {
            Err(Error::Transport { source, .. }) => Err(source),
            outcome => Ok(outcome),
        };
        match ready!(file.poll_read(context, read)) {
            Ok(Ok(records)) => taken.extend(records),
            Ok(Err(error)) => return Poll::Ready(Some(Err(error))),
            Err(source) => {
                return Poll::Ready(Some(Err(Error::Transport { call: "read", source })))
            }
        }
    }
    Poll::Ready(taken.pop_front().map(Ok))
}

macro_rules! streams {
    ($($(#[$doc:meta])* $name:ident of $file:ident: $item:ty;)*) => {
        $($(#[$doc])*
        #[derive(Debug)]
        pub struct $name<A> {
            file: A,
            taken: VecDeque<$item>,
        }

        impl<A: AsyncFile<File = $file>> $name<A> {
            /// Makes a stream of a non-blocking file that a runtime watches.
            pub fn new(file: A) -> Self {
                Self { file, taken: VecDeque::new() }
            }

            /// Waits for the next item. Returns `None` at the end: the object was freed, its IA
            /// closed or, for an EVD without software and asynchronous events, its device removed.
            /// A caller that drops the future before its end loses no item.
            ///
            /// # Errors
            /// Those of the file's `read`.
            pub async fn next(&mut self) -> Option<Result<$item>> {
                poll_fn(|context| poll_record(&mut self.file, &mut self.taken, context)).await
            }
        }

        impl<A: AsyncFile<File = $file> + Unpin> Stream for $name<A> {
            type Item = Result<$item>;

            fn poll_next(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<Option<Self::Item>> {
                let Self { file, taken } = &mut *self;
                poll_record(file, taken, context)
            }
        })*
    };
}

streams! {
    /// The events of an [`Evd`](crate::Evd), as a stream.
    ///
    /// It takes several events with one system call, and keeps those that are not wanted yet.
    /// Dropping it loses them.
    Events of EvdFile: Event;
    /// The triggers of a [`Cno`](crate::Cno), as a stream: the EVD of each, or `None` for a
    /// [`Cno::trigger`](crate::Cno::trigger).
    ///
    /// It takes several triggers with one system call, and keeps those that are not wanted yet.
    /// Dropping it loses them.
    Triggers of CnoFile: Option<Handle>;
}

#[cfg(feature = "tokio")]
mod on_tokio {
    use super::{AsyncFile, Events, Triggers};
    use crate::error::{Error, Result};
    use crate::file::{CnoFile, EvdFile};
    use crate::raw::watch::watch;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::task::{ready, Context, Poll};
    use tokio::io::unix::AsyncFd;

    impl<F: AsRawFd> AsyncFile for AsyncFd<F> {
        type File = F;

        fn poll_read<T>(
            &mut self,
            context: &mut Context<'_>,
            mut read: impl FnMut(&F) -> io::Result<T>,
        ) -> Poll<io::Result<T>> {
            loop {
                let mut readable = ready!(self.poll_read_ready(context))?;
                if let Ok(outcome) = readable.try_io(|file| read(file.get_ref())) {
                    return Poll::Ready(outcome);
                }
            }
        }
    }

    fn failed(source: io::Error) -> Error {
        Error::Transport { call: "registration with tokio", source }
    }

    macro_rules! on_tokio {
        ($($name:ident of $file:ident as $alias:ident;)*) => {
            $(#[doc = concat!("[`", stringify!($name), "`] that tokio watches.")]
            pub type $alias = $name<AsyncFd<$file>>;

            impl $alias {
                /// Makes a stream of a file, which becomes non-blocking and is watched by the tokio
                /// runtime of the caller.
                ///
                /// # Errors
                /// The errno of `fcntl(2)` or `epoll_ctl(2)`.
                ///
                /// # Panics
                /// Outside of a tokio runtime with I/O.
                pub fn on_tokio(file: $file) -> Result<Self> {
                    file.set_nonblocking(true)?;
                    Ok(Self::new(watch(file).map_err(failed)?))
                }
            })*
        };
    }

    on_tokio! {
        Events of EvdFile as TokioEvents;
        Triggers of CnoFile as TokioTriggers;
    }
}

#[cfg(feature = "tokio")]
pub use on_tokio::{TokioEvents, TokioTriggers};
