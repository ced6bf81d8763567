// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Rows of calls as commands of io_uring.
//!
//! Failures in io_uring itself are not of interest: what it has refused is submitted again.

use super::{rows, Row};
use crate::context::Context;
use crate::end::{End, Shape};
use crate::tests::uring::commands::{
    answer, cancel_message, entry, hdr, stream_entry, stream_message, wait_message, HeapMessage,
};
use anyhow::{ensure, Result};
use io_uring::{cqueue, opcode, squeue, IoUring};
use libkdapl::raw::call::{CNO_WAIT, EP_SUBMIT, EVD_WAIT, URING_CANCEL};
use libkdapl::sys::{
    kdapl_cno_wait, kdapl_dto, kdapl_ep_submit, kdapl_event, kdapl_hdr, KDAPL_DTO_RECEIVE,
};
use libkdapl::{Cno, DatError, Error, Evd, EvdFlags, Segment, Subtype, Type};
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

pub const ROWS: &[Row] = rows! {
    EVD_WAIT "as a command": commands, |commands| commands.wait_evd();
    CNO_WAIT "as a command": commands, |commands| commands.wait_cno();
    EP_SUBMIT "as a command": commands, |commands| commands.submit(), all_counted;
    URING_STREAM: commands, |commands| commands.stream();
    URING_CANCEL: commands, |commands| commands.cancel();
};

/// Time-out of a wait. It matters if its file is closed.
const LONGEST: Duration = Duration::from_secs(1);

/// Code in a message that the kernel has not answered.
const UNANSWERED: u32 = u32::MAX;

/// Buffers for a stream: more than one event comes if the stream is submitted again.
const BUFFERS: u16 = 4;

/// User data of the commands.
const COMMAND: u64 = 1;
const CANCEL: u64 = 2;
const OTHER: u64 = 3;

/// A ring, and objects to wait on.
struct Commands {
    ring: IoUring,
    evd: Evd,
    cno: Cno,
    end: End,
    /// Receives that the answers of submits count.
    posted: u32,
    buffers: Vec<kdapl_event>,
    /// Time-out of a wait in nanoseconds.
    longest: u64,
    /// Completions of other commands, which came while one was awaited.
    others: Vec<cqueue::Entry>,
}

fn commands(context: &Context) -> Result<Commands> {
    let end = End::new(&context.open()?, Shape::default())?;
    Ok(Commands {
        ring: IoUring::new(8)?,
        evd: end.ia.create_evd(EvdFlags::SOFTWARE, 4)?,
        cno: end.ia.create_cno(None)?,
        end,
        posted: 0,
        buffers: vec![kdapl_event::default(); BUFFERS.into()],
        longest: context.scaled(LONGEST).as_nanos() as u64,
        others: Vec::new(),
    })
}

/// Places a message in memory that the kernel may write at any time from now on.
fn placed<M: 'static>(mut message: M) -> &'static mut HeapMessage<M> {
    // SAFETY: each message begins with its header.
    unsafe { (*std::ptr::from_mut(&mut message).cast::<kdapl_hdr>()).ret = UNANSWERED };
    Box::leak(Box::new(HeapMessage::new(message)))
}

/// Returns the answer of a message whose command has completed with `result`.
fn outcome(result: i32, header: kdapl_hdr) -> Result<(), Error> {
    let errno =
        |errno| Error::Transport { call: "command", source: io::Error::from_raw_os_error(errno) };
    match result {
        // The descriptor is that of another file.
        0 if header.ret == UNANSWERED => Err(errno(libc::ENOTTY)),
        0 => answer(header.ret),
        result => Err(errno(-result)),
    }
}

/// Makes a call that may fail once.
fn again(mut call: impl FnMut() -> bool) {
    if !call() {
        call();
    }
}

impl Commands {
    fn device(&self) -> i32 {
        self.evd.device().as_raw_fd()
    }

    fn submit_entry(&mut self, entry: &squeue::Entry) {
        // SAFETY: the memory of the command is never freed.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.expect("the queue has room");
        again(|| self.ring.submit().is_ok());
    }

    /// Returns the next completion of a command.
    fn completion(&mut self, of: u64) -> cqueue::Entry {
        loop {
            if let Some(at) = self.others.iter().position(|entry| entry.user_data() == of) {
                return self.others.remove(at);
            }
            self.others.extend(self.ring.completion());
            if self.others.iter().any(|entry| entry.user_data() == of) {
                continue;
            }
            again(|| self.ring.submit_and_wait(1).is_ok());
        }
    }

    /// Submits a command, and once more if io_uring has no memory for it. Returns its first result.
    fn run(&mut self, entry: squeue::Entry, event: impl Fn(&Self) -> bool) -> cqueue::Entry {
        let entry = entry.user_data(COMMAND);
        for is_last in [false, true] {
            self.submit_entry(&entry);
            again(|| event(self));
            let completion = self.completion(COMMAND);
            if completion.result() != -libc::ENOMEM || is_last {
                return completion;
            }
        }
        unreachable!("the last one returns")
    }

    fn post(&self) -> bool {
        self.evd.post_se(7).is_ok()
    }

    fn wait_evd(&mut self) -> Result<(), Error> {
        let event = placed(kdapl_event::default());
        let mut message = wait_message(&self.evd, event.address());
        message.timeout_ns = self.longest;
        let message = placed(message);
        let entry = entry(self.device(), EVD_WAIT.request(), [message.address(), 0], COMMAND);
        let completion = self.run(entry, Self::post);
        self.forget_events();
        outcome(completion.result(), message.read().hdr)
    }

    fn wait_cno(&mut self) -> Result<(), Error> {
        let message = placed(kdapl_cno_wait {
            hdr: hdr::<kdapl_cno_wait>(),
            handle: self.cno.handle().0,
            timeout_ns: self.longest,
            ..Default::default()
        });
        let entry = entry(self.device(), CNO_WAIT.request(), [message.address(), 0], COMMAND);
        let completion = self.run(entry, |commands| commands.cno.trigger().is_ok());
        outcome(completion.result(), message.read().hdr)
    }

    /// Posts two receives, and waits for an event.
    fn submit(&mut self) -> Result<(), Error> {
        let segment: &'static Segment = Box::leak(Box::new(self.end.lmr.segment(0, 8)));
        let dto = kdapl_dto {
            operation: KDAPL_DTO_RECEIVE,
            iov_count: 1,
            iov: std::ptr::from_ref(segment) as u64,
            iov_size: size_of::<Segment>() as u32,
            ..Default::default()
        };
        let (dtos, event) = (placed_dtos([dto; 2]), placed(kdapl_event::default()));
        let message = placed(kdapl_ep_submit {
            hdr: hdr::<kdapl_ep_submit>(),
            handle: self.end.ep.handle().0,
            count: 2,
            dtos,
            dto_size: size_of::<kdapl_dto>() as u32,
            evd: self.evd.handle().0,
            timeout_ns: self.longest,
            threshold: 1,
            max_events: 1,
            events: event.address(),
            event_size: size_of::<kdapl_event>() as u32,
            ..Default::default()
        });
        let entry = entry(self.device(), EP_SUBMIT.request(), [message.address(), 0], COMMAND);
        let completion = self.run(entry, Self::post);
        self.forget_events();
        let answered = message.read();
        let result = outcome(completion.result(), answered.hdr);
        match &result {
            // As for the ioctl: an event or an answer that cannot be copied out hides the number.
            Err(error) if error.errno() == Some(libc::EFAULT) => {
                let status = self.end.ep.status();
                self.posted = status.map_or(0, |status| status.recv_outstanding);
            }
            Err(Error::Transport { .. }) => {}
            _ => self.posted += answered.posted,
        }
        // As for the ioctl: if the second DTO cannot be read, an errno would hide the first one.
        match result {
            Err(error) if error.subtype() == Some(Subtype::INVALID_ARG2) => {
                let source = io::Error::from_raw_os_error(libc::EFAULT);
                Err(Error::Transport { call: "submit", source })
            }
            other => other,
        }
    }

    /// Takes the events of commands that have not taken their own.
    fn forget_events(&self) {
        while self.evd.dequeue().is_ok() {}
    }

    /// Streams an event, and ends the stream.
    fn stream(&mut self) -> Result<(), Error> {
        self.provide();
        let mut message = stream_message(&self.evd);
        message.timeout_ns = self.longest;
        let message = placed(message);
        let entry = stream_entry(self.device(), message.address(), 0, COMMAND);
        let mut completion = self.run(entry, Self::post);
        if cqueue::more(completion.flags()) {
            let found = self.end_command();
            while cqueue::more(completion.flags()) {
                completion = self.completion(COMMAND);
            }
            if completion.result() == -libc::ECANCELED {
                return found.map(drop);
            }
        }
        self.forget_events();
        outcome(completion.result(), message.read().hdr)
    }

    /// Provides buffers for the stream.
    fn provide(&mut self) {
        let (buffers, size) = (self.buffers.as_mut_ptr().cast(), size_of::<kdapl_event>() as i32);
        let provide = opcode::ProvideBuffers::new(buffers, size, BUFFERS, 0, 0).build();
        for _ in 0..2 {
            self.submit_entry(&provide.clone().user_data(OTHER));
            if self.completion(OTHER).result() >= 0 {
                break;
            }
        }
    }

    fn cancel_command(&mut self) -> Result<u32, Error> {
        let message = placed(cancel_message(COMMAND));
        let operand = [message.address(), 0];
        let entry = entry(self.device(), URING_CANCEL.request(), operand, CANCEL);
        self.submit_entry(&entry);
        let mut result = self.completion(CANCEL).result();
        if result == -libc::ENOMEM {
            self.submit_entry(&entry);
            result = self.completion(CANCEL).result();
        }
        outcome(result, message.read().hdr).map(|()| message.read().found)
    }

    /// Cancels the command, and once more if that fails. Returns the first result.
    fn end_command(&mut self) -> Result<u32, Error> {
        let found = self.cancel_command();
        if found.is_err() {
            let _ = self.cancel_command();
        }
        found
    }

    /// Cancels a wait.
    fn cancel(&mut self) -> Result<(), Error> {
        let event = placed(kdapl_event::default());
        let mut message = wait_message(&self.evd, event.address());
        message.timeout_ns = self.longest;
        let message = placed(message);
        let wait = entry(self.device(), EVD_WAIT.request(), [message.address(), 0], COMMAND);
        self.submit_entry(&wait);
        let found = self.end_command();
        let completion = self.completion(COMMAND);
        match (found?, completion.result()) {
            (1, result) if result == -libc::ECANCELED => Ok(()),
            // The wait was refused.
            (_, result) if result == -libc::ENOMEM => Err(without_memory()),
            (_, result) => outcome(result, message.read().hdr),
        }
    }
}

fn without_memory() -> Error {
    let (kind, subtype) = (Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY);
    let code = (2 << 30) | (u32::from(kind.0) << 16) | u32::from(subtype.0);
    Error::Dat(DatError { call: "command", code })
}

fn placed_dtos(dtos: [kdapl_dto; 2]) -> u64 {
    Box::leak(Box::new(dtos)).as_ptr() as u64
}

/// Checks that the answers have counted all receives that were posted.
fn all_counted(_: &Context, commands: &mut Commands, (): (), _: bool) -> Result<()> {
    let outstanding = commands.end.ep.status()?.recv_outstanding;
    ensure!(
        outstanding == commands.posted,
        "{outstanding} receives are posted, and {} were counted",
        commands.posted
    );
    Ok(())
}
