// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-bmi serve`: serves clients, all in one thread.

use crate::cli::ServeArgs;
use crate::protocol::{Request, REQUEST};
use crate::service::{number_of, Service};
use anyhow::Result;
use libkdapl_bmi::{Bmi, Context, Options, Unexpected};
use schemars::JsonSchema;
use serde::Serialize;
use slab::Slab;
use std::collections::HashMap;
use std::time::Duration;
use toolkit::output::{self, complain, say};
use toolkit::report::{grouped, size};
use toolkit::stop;

/// Time of a wait, after which the server looks for a stop and for new clients.
const SLICE: Duration = Duration::from_millis(100);

/// Results that are taken at once.
const BATCH: usize = 64;

/// Consumer's value of answers.
const ANSWER: u64 = u64::MAX;

/// First line of the output with `--json`.
#[derive(JsonSchema, Serialize)]
pub struct Listening {
    listening: String,
}

/// Line for each client with `--json`.
#[derive(JsonSchema, Serialize)]
pub struct Served {
    client: String,
    messages: u64,
    size: u32,
    kind: &'static str,
    error: Option<String>,
}

/// The server.
struct Server {
    bmi: Bmi,
    context: Context,
    services: Slab<Service>,
    /// Memory of answers that are being sent.
    answers: HashMap<libkdapl_bmi::Op, libkdapl_bmi::Memory>,
    json: bool,
}

pub fn run(args: &ServeArgs, json: bool) -> Result<()> {
    if args.with_parent {
        toolkit::stop::with_parent()?;
    }
    let options = Options { listen: Some(args.address.clone()), ..args.adapter.options() };
    let bmi = Bmi::open(&options)?;
    let listening = bmi.address().unwrap_or_default();
    match json {
        true => output::json(&Listening { listening })?,
        false => say(format!("Listening at {listening}; Ctrl-C ends the server."))?,
    }
    let context = bmi.open_context()?;
    let (services, answers) = (Slab::new(), HashMap::new());
    let mut server = Server { bmi, context, services, answers, json };
    while !stop::requested() {
        server.step()?;
    }
    Ok(())
}

impl Server {
    fn step(&mut self) -> Result<()> {
        // While there are clients, new ones wait for the end of a slice.
        let idle = self.services.is_empty() && self.answers.is_empty();
        let (first, second) = if idle { (SLICE, Duration::ZERO) } else { (Duration::ZERO, SLICE) };
        for message in self.bmi.wait_unexpected(BATCH, Some(first))? {
            self.answer(&message)?;
        }
        for completion in self.context.wait(BATCH, Some(second))? {
            if completion.user == ANSWER {
                self.answers.remove(&completion.op);
                continue;
            }
            let number = number_of(completion.user);
            let Some(service) = self.services.get_mut(number) else { continue };
            if service.completed(&self.context, &completion) {
                self.end(number)?;
            }
        }
        Ok(())
    }

    /// Answers a request, and begins to serve it.
    fn answer(&mut self, message: &Unexpected) -> Result<()> {
        let entry = self.services.vacant_entry();
        let number = entry.key();
        let service = Request::decode(message.bytes())
            .and_then(|request| Service::new(&self.bmi, &message.peer, request, number));
        let service = match service {
            Ok(service) => service,
            Err(error) => {
                self.reply(message, format!("{error:#}").as_bytes());
                return Ok(());
            }
        };
        let has_ended = entry.insert(service).start(&self.context);
        self.reply(message, &[]);
        match has_ended {
            true => self.end(number),
            false => Ok(()),
        }
    }

    /// Reports and forgets a service that has ended.
    fn end(&mut self, number: usize) -> Result<()> {
        let service = self.services.remove(number);
        self.report(&service)
    }

    /// Answers a client. One that has gone needs no answer, and one that gets none gives up.
    fn reply(&mut self, message: &Unexpected, text: &[u8]) {
        let Ok(memory) = self.bmi.alloc(text.len()) else { return };
        memory.buffer().write(0, text);
        let part = [memory.part(0, text.len())];
        if let Ok(op) = self.context.send(&message.peer, REQUEST, &part, ANSWER) {
            self.answers.insert(op, memory);
        }
    }

    fn report(&self, service: &Service) -> Result<()> {
        let (request, messages) = service.result();
        let error = service.failure().map(|failure| failure.to_string());
        if self.json {
            return output::json(&Served {
                client: service.client(),
                messages,
                size: request.size,
                kind: request.kind.name(),
                error,
            });
        }
        let line = format!(
            "{}: {} messages of {} {}",
            service.client(),
            grouped(messages),
            size(request.size.into()),
            request.kind.name()
        );
        match error {
            Some(error) => complain(format!("{line}; {error}")),
            None => say(line)?,
        }
        Ok(())
    }
}
