// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Programs of two sides, and what each says when the other one dies.

use crate::context::Context;
use crate::machine::count_of;
use crate::udapl::{listens, Program, Provider};
use anyhow::{ensure, Result};

/// How a server reports that a client can connect.
#[derive(Clone, Copy)]
pub enum Ready {
    /// It prints this.
    Says(&'static str),
    /// It prints this, and publishes its address at this TCP port.
    Publishes(&'static str, u16),
    /// It has a service point.
    Listens,
}

/// What a server does that has lost its client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// It ends, or waits for ever if its client had not connected yet.
    One,
    /// It goes on. It may wait for ever for the dead one's next connection, so each client gets a
    /// server of its own.
    Some,
    /// It serves the next client.
    All,
}

/// A program of two sides.
pub struct Pair {
    pub provider: Provider,
    /// Command of the server.
    pub server: Vec<String>,
    pub ready: Ready,
    /// Command of the client that is killed, or whose server is.
    pub client: Vec<String>,
    /// Command of a client that ends by itself. By default that of `client`.
    pub short: Option<Vec<String>>,
    /// Output of a client and of a server that have done all their work.
    pub complete: [&'static str; 2],
    /// Output of a client, and of a server, that has lost its peer: one of these.
    pub lost: [&'static [&'static str]; 2],
    pub serves: Serves,
    /// The server has many connections. If not all have been made, it waits for the others.
    pub many: bool,
}

impl Pair {
    /// Makes a pair of command lines without quotes.
    pub fn new(server: &str, client: &str) -> Self {
        let words = |line: &str| line.split_whitespace().map(String::from).collect();
        Self {
            provider: Provider::Ours,
            server: words(server),
            ready: Ready::Listens,
            client: words(client),
            short: None,
            complete: [""; 2],
            lost: [&[]; 2],
            serves: Serves::One,
            many: false,
        }
    }

    pub fn short(mut self, line: &str) -> Self {
        self.short = Some(line.split_whitespace().map(String::from).collect());
        self
    }

    /// Starts the server, and waits until a client can connect.
    pub fn start_server(&self, context: &Context) -> Result<Program> {
        let mut server = start(context, self.provider, &self.server, true)?;
        match self.ready {
            Ready::Says(words) => server.says(context, words)?,
            Ready::Publishes(words, port) => {
                server.says(context, words)?;
                context
                    .until("the server publishes its address", || listens(&context.server, port))?;
            }
            Ready::Listens => context.until("the server listens", || {
                let ended = server.ended()?;
                ensure!(ended.is_none(), "the server ended: {}", server.output());
                Ok(count_of("psp")? > 0)
            })?,
        }
        Ok(server)
    }

    pub fn start_client(&self, context: &Context) -> Result<Program> {
        start(context, self.provider, &self.client, false)
    }

    /// Starts a client that ends by itself.
    pub fn start_short(&self, context: &Context) -> Result<Program> {
        start(context, self.provider, self.short.as_ref().unwrap_or(&self.client), false)
    }
}

fn start(
    context: &Context,
    provider: Provider,
    words: &[String],
    is_server: bool,
) -> Result<Program> {
    let host = if is_server { &context.server } else { &context.client };
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    Program::start_words(host, provider, &words)
}
