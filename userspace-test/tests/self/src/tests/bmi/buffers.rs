// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! BMI's send buffers when no memory can be registered for others.

use super::super::tests;
use super::{transfer, Sides};
use crate::context::Context;
use crate::machine::NOBODY;
use anyhow::{ensure, Result};
use libkdapl_bmi::Options;
use std::time::Duration;

tests! {
    #[Transport]
    exhausted, 120, "BMI sends that wait for the buffers of earlier ones arrive and complete";
}

/// Bytes of an eager message in a large buffer, and of one in a small buffer.
const LARGE: usize = 16_000;
const SMALL: usize = 100;

/// Messages in large buffers: more than the 16 buffers that are registered together.
const MESSAGES: usize = 20;

/// Lets the process lock no more memory than it has locked. Root may exceed its limit, so the
/// process becomes an ordinary user.
fn lock_no_more() -> Result<()> {
    let limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
    // SAFETY: changes this process only, which runs only this test.
    let limited = unsafe {
        libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) == 0
            && libc::setgid(NOBODY) == 0
            && libc::setuid(NOBODY) == 0
    };
    ensure!(limited, "cannot become another user: {}", std::io::Error::last_os_error());
    Ok(())
}

fn exhausted(context: &Context) -> Result<()> {
    // No PING follows the messages, whose event would report their ends.
    let options = Options { silence: Duration::from_secs(86_400), ..Options::default() };
    let sides = Sides::open(context, &options)?;
    let back = sides.greet()?;
    let Sides { client, server, peer } = &sides;
    // Each side gets its buffers.
    for length in [LARGE, SMALL] {
        transfer(context, (client, peer), (server, &back), length)?;
        transfer(context, (server, &back), (client, peer), length)?;
    }
    let (sent, got) = (client.random(context, LARGE)?, server.bmi.alloc(LARGE)?);
    lock_no_more()?;
    ensure!(client.bmi.alloc(1 << 20).is_err(), "memory was locked above the limit");
    let registered = client.bmi.registered();
    // One event may report eight messages. So the last one is each of eight once.
    for short in 1..=8 {
        let lengths: Vec<_> =
            std::iter::repeat_n(LARGE, MESSAGES).chain(std::iter::repeat_n(SMALL, short)).collect();
        let receive = |_| server.context.receive(&back, 5, &[got.whole()], 0);
        let receives: Vec<_> = lengths.iter().map(receive).collect::<Result<_, _>>()?;
        let send = |length: &usize| client.context.send(peer, 5, &[sent.part(0, *length)], 0);
        let sends: Vec<_> = lengths.iter().map(send).collect::<Result<_, _>>()?;
        for ((receive, send), length) in receives.into_iter().zip(sends).zip(lengths) {
            server.done(receive, length)?;
            client.done(send, length)?;
        }
    }
    ensure!(client.bmi.registered() == registered, "other buffers were registered");
    Ok(())
}
