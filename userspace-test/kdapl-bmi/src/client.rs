// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Client: connects to a server, and waits for results.

use crate::cli::ClientArgs;
use crate::protocol::{Request, COMPLETE, REQUEST, TEXT};
use anyhow::{bail, Context as _, Result};
use libkdapl_bmi::{Bmi, Completion, Context, Memory, Op, Peer};
use std::time::{Duration, Instant};
use toolkit::stop::{self, Stopped};

/// A client.
pub struct Client {
    pub bmi: Bmi,
    pub context: Context,
    pub peer: Peer,
    address: String,
    timeout: Duration,
}

impl Client {
    pub fn open(args: &ClientArgs) -> Result<Self> {
        let bmi = Bmi::open(&args.adapter.options())?;
        Ok(Self {
            context: bmi.open_context()?,
            peer: bmi.lookup(&args.address)?,
            bmi,
            address: args.address.clone(),
            // The library gives up a silent peer at this time, with a better error.
            timeout: Duration::from_secs(args.adapter.timeout + 2),
        })
    }

    /// Sends a request, and waits until the server is ready.
    pub fn request(&self, request: &Request) -> Result<()> {
        let memory = self.bmi.alloc(Request::LENGTH + TEXT)?;
        memory.buffer().write(0, &request.encode());
        let answer = memory.part(Request::LENGTH, TEXT);
        let answer = self.context.receive(&self.peer, REQUEST, &[answer], 0)?;
        let part = [memory.part(0, Request::LENGTH)];
        let sent = self.context.send_unexpected(&self.peer, REQUEST, &part, 0)?;
        self.done(sent)?;
        let length = self.done(answer)?.length as usize;
        if length > 0 {
            let text = memory.buffer().to_vec(Request::LENGTH, length);
            bail!("{}: {}", self.address, String::from_utf8_lossy(&text));
        }
        Ok(())
    }

    /// Waits until the server has all data.
    pub fn complete(&self) -> Result<()> {
        let receive = self.context.receive(&self.peer, COMPLETE, &[], 0)?;
        self.done(receive).map(drop)
    }

    /// Waits for the success of an operation.
    pub fn done(&self, op: Op) -> Result<Completion> {
        let completion = self.patiently(|slice| self.context.wait_for(op, Some(slice)))?;
        self.successful(completion)
    }

    /// Waits for the success of any operation.
    pub fn next(&self) -> Result<Completion> {
        let next = |slice| Ok(self.context.wait(1, Some(slice))?.pop());
        let completion = self.patiently(next)?;
        self.successful(completion)
    }

    fn successful(&self, completion: Completion) -> Result<Completion> {
        completion.result.with_context(|| self.address.clone())?;
        Ok(completion)
    }

    /// Repeats a wait until its time is over, or a stop was requested.
    fn patiently(
        &self,
        wait: impl Fn(Duration) -> libkdapl_bmi::Result<Option<Completion>>,
    ) -> Result<Completion> {
        let start = Instant::now();
        while start.elapsed() < self.timeout {
            if let Some(completion) = wait(stop::SLICE)? {
                return Ok(completion);
            }
            if stop::overdue() {
                bail!(Stopped);
            }
        }
        bail!("{}: no answer in {} seconds (--timeout)", self.address, self.timeout.as_secs())
    }

    /// Allocates memory with random bytes.
    pub fn random(&self, length: usize) -> Result<Memory> {
        let memory = self.bmi.alloc(length)?;
        let mut bytes = vec![0; length];
        fastrand::fill(&mut bytes);
        memory.buffer().write(0, &bytes);
        Ok(memory)
    }

    /// Returns the server's address.
    pub fn server(&self) -> String {
        self.address.clone()
    }
}
