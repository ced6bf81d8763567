// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events and triggers as asynchronous streams: `docs/async.md`.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, same};
use crate::machine::count_of;
use crate::plain::Plain;
use crate::software::{number, post_all, software, take};
use anyhow::{bail, ensure, Context as _, Result};
use async_io::Async;
use libkdapl::{AsyncFile, CnoFile, DtoOperation, EvdFile, EvdFlags, Event, Events, Triggers};
use std::fs;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::pin::pin;
use std::task::{ready, Poll, Waker};

tests! {
    software_events, 60, "A stream yields the events of an EVD in order, with another runtime than tokio, and ends with the EVD";
    completions, 60, "A stream yields completions as they arrive, and a future that is dropped loses none";
    triggers, 60, "A stream yields the triggers of a CNO, and ends with the CNO";
    #[Long]
    tokio_echo, 120, "The program of docs/async.md echoes messages over many connections in one thread";
}

/// A file that the runtime of `async-io` watches: what a program writes for its runtime.
struct Watched<F>(Async<F>);

impl<F: AsFd> AsyncFile for Watched<F> {
    type File = F;

    fn poll_read<T>(
        &mut self,
        context: &mut std::task::Context<'_>,
        mut read: impl FnMut(&F) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            match read(self.0.get_ref()) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
            ready!(self.0.poll_readable(context))?;
        }
    }
}

fn events(file: EvdFile) -> Result<Events<Watched<EvdFile>>> {
    Ok(Events::new(Watched(Async::new(file)?)))
}

fn software_events(context: &Context) -> Result<()> {
    let evd = software(context, 32)?;
    let mut stream = events(evd.file()?)?;
    let (each, patience) = (context.count(5_000), context.patience());
    std::thread::scope(|scope| -> Result<()> {
        let poster = scope.spawn(|| post_all(&evd, 0, each, patience));
        let outcome = async_io::block_on(async {
            for expected in 0..each {
                let event = stream.next().await.context("the stream has ended")?;
                same("event", number(event.map(|event| (event, 0)))?.0, expected)?;
            }
            Ok(())
        });
        poster.join().ok().context("the poster has panicked")??;
        outcome
    })?;
    // The end comes while the stream waits.
    std::thread::scope(|scope| -> Result<()> {
        let end = scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            evd.free()
        });
        let last = async_io::block_on(stream.next());
        end.join().ok().context("the thread has panicked")??;
        ensure!(last.is_none(), "an event follows the end: {last:?}");
        Ok(())
    })
}

fn completions(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let mut stream = events(pair.server.recv.file()?)?;
    for round in 0..context.count(100).max(5) {
        pair.server.receive(0, 64, round)?;
        {
            let mut early = pin!(stream.next());
            let mut waker = std::task::Context::from_waker(Waker::noop());
            ensure!(early.as_mut().poll(&mut waker).is_pending(), "an event before the message");
        }
        pair.client.send(0, 64, round)?;
        let event = async_io::block_on(stream.next()).context("the stream has ended")??;
        done(&event, DtoOperation::Receive, 64, round)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, round)?;
    }
    Ok(())
}

fn triggers(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    evd.modify_cno(Some(&cno))?;
    let file: CnoFile = cno.file()?;
    let mut stream = Triggers::new(Watched(Async::new(file)?));
    let mut next = || match async_io::block_on(stream.next()) {
        Some(trigger) => Ok(trigger?),
        None => bail!("the stream has ended"),
    };
    for round in 0..context.count(50).max(5) {
        evd.post_se(round)?;
        same("trigger", next()?, Some(evd.handle()))?;
        same("event", take(&evd)?, round)?;
        cno.trigger()?;
        // A poll may have found the event before it was taken. Then the EVD triggers again.
        while let Some(again) = next()? {
            same("repeated trigger", again, evd.handle())?;
        }
    }
    evd.free()?;
    cno.free()?;
    let last = async_io::block_on(stream.next());
    ensure!(last.is_none(), "a trigger follows the end: {last:?}");
    Ok(())
}

fn tokio_echo(context: &Context) -> Result<()> {
    const CONNECTIONS: u64 = 30;
    let (program, device) = ("kdapl-tokio-echo", &context.server.device);
    let all = (CONNECTIONS + 1).to_string();
    let mut server = Plain::start(&context.server, program, &[device, &all])?;
    context.until("the program listens", || Ok(count_of("psp")? > 0))?;
    let address = context.server_address().to_string();
    let client = |count: u64| -> Result<()> {
        let arguments = [context.client.device.as_str(), &count.to_string(), &address];
        let mut client = Plain::start(&context.client, program, &arguments)?;
        client.says(&format!("{count} connections, {} messages", count * 10))?;
        client.succeeds()
    };
    client(CONNECTIONS)?;
    let threads = fs::read_dir(format!("/proc/{}/task", server.pid()))?.count();
    same("threads of the server", threads, 1)?;
    client(1)?;
    server.says(&format!("{all} connections, {} messages", (CONNECTIONS + 1) * 10))?;
    server.succeeds()
}

/// Checks at compile time that events are a `Stream` of the crate `futures-core`.
const _: () = {
    const fn is_a_stream<S: futures_core::Stream<Item = libkdapl::Result<Event>>>() {}
    is_a_stream::<Events<Watched<EvdFile>>>();
};
