// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest server`: a thread for each connection, which provides the service that the client
//! requests.

mod brief;
mod connection;

use crate::cli::{ServerArgs, CONNECTIONS_MAX};
use crate::client::{open_device, own_address};
use crate::protocol::Mode;
use crate::record::Line;
use crate::report::{self, grouped};
use crate::stop;
use anyhow::{bail, Context, Result};
use brief::Brief;
use connection::Arrival;
use libkdapl::{Cr, Evd, EvdFlags, Event, Ia, Type};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// Maximum number of unanswered requests.
const BACKLOG: i32 = 256;
/// Interval between two checks for Ctrl-C and for connections that have ended.
const SLICE: Duration = Duration::from_millis(100);

/// First line of the JSON output.
#[derive(Debug, Serialize, Deserialize)]
pub struct Listening {
    pub device: String,
    pub address: String,
    pub port: u16,
}

/// Result of a connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Served {
    pub client: String,
    pub mode: String,
    /// Identifier of the client and the number of its connections.
    pub run: u64,
    pub connections: u32,
    pub messages: u64,
    pub bytes: u64,
    pub wakeups: u64,
    pub switches: u64,
    pub events: Vec<Line>,
    pub error: Option<String>,
}

pub fn run(args: &ServerArgs, as_json: bool) -> Result<()> {
    let (ia, device) = open_device(&args.device)?;
    let address = own_address(&ia, &device)?.to_string();
    let port = args.device.port;
    // Connection requests, and all events of short connections.
    let streams = EvdFlags::CR | EvdFlags::DTO | EvdFlags::CONNECTION;
    let evd = ia.create_evd(streams, BACKLOG + 4 * CONNECTIONS_MAX as i32)?;
    let _psp = match ia.create_psp(port.into(), &evd) {
        Ok(psp) => psp,
        Err(error) if error.kind() == Some(Type::CONN_QUAL_IN_USE) => {
            bail!("port {port} is in use: stop the other server or choose another --port")
        }
        Err(error) => return Err(error).context("cannot listen"),
    };
    if as_json {
        report::json(&Listening { device, address, port })?;
    } else {
        println!("Serving on {device}, address {address}, port {port}. Ctrl-C ends it.");
    }
    let clients = if args.once { Some(1) } else { args.clients };
    Server {
        ia,
        evd,
        as_json,
        record: args.events || as_json,
        clients: Clients::default(),
        brief: Brief::default(),
    }
    .serve(clients)
}

struct Server {
    ia: Ia,
    evd: Evd,
    as_json: bool,
    record: bool,
    clients: Clients,
    brief: Brief,
}

impl Server {
    fn serve(mut self, limit: Option<u64>) -> Result<()> {
        let (sender, receiver) = mpsc::channel();
        while !stop::requested() && limit.is_none_or(|limit| self.clients.done < limit) {
            match self.evd.wait(Some(SLICE), 1) {
                Ok((Event::ConnectionRequest { cr, .. }, _)) => self.answer(cr, &sender)?,
                Ok((event, _)) => {
                    if let Some(served) = self.brief.event(&event)? {
                        self.tell(&served, served.connections)?;
                    }
                }
                Err(error) if error.is_timeout() || error.is_interrupted() => {}
                Err(error) => return Err(error.into()),
            }
            self.collect(&receiver)?;
        }
        if limit.is_some() && self.clients.failed > 0 {
            bail!("{} of {} connections failed", self.clients.failed, self.clients.connections);
        }
        Ok(())
    }

    fn answer(&mut self, cr: Cr, sender: &Sender<Served>) -> Result<()> {
        let mut arrival = match Arrival::new(cr) {
            Ok(arrival) => arrival,
            Err(served) => return self.tell(&served, 1),
        };
        if arrival.request.mode == Mode::Connect {
            let accepted = self.brief.accept(&self.ia, &self.evd, &mut arrival);
            return match accepted {
                Ok(()) => Ok(()),
                Err(error) => self.tell(&arrival.refused(&error), 1),
            };
        }
        let (ia, record, sender) = (self.ia.clone(), self.record, sender.clone());
        std::thread::spawn(move || {
            // Fails only when the server is ending.
            let _ = sender.send(connection::serve(&ia, arrival, record));
        });
        Ok(())
    }

    fn collect(&mut self, receiver: &Receiver<Served>) -> Result<()> {
        receiver.try_iter().try_for_each(|served| self.tell(&served, 1))
    }

    /// Prints the result of `ended` connections of a client.
    fn tell(&mut self, served: &Served, ended: u32) -> Result<()> {
        self.clients.count(served, ended);
        if self.as_json {
            return report::json(served);
        }
        show(served);
        Ok(())
    }
}

/// Clients that are connected and that have finished. A client may have several connections.
#[derive(Default)]
struct Clients {
    open: HashMap<u64, u32>,
    done: u64,
    connections: u64,
    failed: u64,
}

impl Clients {
    fn count(&mut self, served: &Served, ended: u32) {
        self.connections += u64::from(ended);
        self.failed += u64::from(served.error.is_some());
        let sum = self.open.entry(served.run).or_default();
        *sum += ended;
        if *sum >= served.connections {
            self.open.remove(&served.run);
            self.done += 1;
        }
    }
}

fn show(served: &Served) {
    let outcome = match &served.error {
        None => "passed".into(),
        Some(error) => format!("FAILED: {error}"),
    };
    let Served { client, mode, .. } = served;
    let (messages, bytes) = (grouped(served.messages), report::size(served.bytes));
    let how = if served.mode == Mode::Connect.name() {
        format!("{} connections, {messages} messages, {bytes}", grouped(served.connections.into()))
    } else {
        let (wakeups, switches) = (grouped(served.wakeups), grouped(served.switches));
        format!("{messages} messages, {bytes}, {wakeups} wake-ups with {switches} context switches")
    };
    println!("{client} ({mode}): {how}: {outcome}");
    for line in &served.events {
        println!("  {:>10} us  {}", grouped(line.at_us), line.event);
    }
}
