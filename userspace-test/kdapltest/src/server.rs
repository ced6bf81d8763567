// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest server`: a thread for each connection, which provides the service that the client
//! requests.

mod brief;
mod connection;

use crate::cli::{ServerArgs, CONNECTIONS_MAX};
use crate::device::{self, own_address};
use crate::protocol::Mode;
use crate::record::Line;
use anyhow::{anyhow, bail, Context, Result};
use brief::{Brief, Ended};
use connection::Arrival;
use libkdapl::{Cr, Evd, EvdFlags, Event, Ia, PspOptions, Type};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};
use toolkit::output::{self, say};
use toolkit::report::{self, grouped};
use toolkit::stop;

/// Maximum number of unanswered requests: as many as a client may have connections at a time.
const BACKLOG: u32 = CONNECTIONS_MAX;
/// Interval between two checks for a stop and for connections that have ended.
const SLICE: Duration = Duration::from_millis(100);
/// Time for the connections to end before the server does.
const END: Duration = Duration::from_millis(700);

/// Reason of a refusal.
const NO_THREAD: &str =
    "no thread for another connection: use fewer --threads or --eps, or raise 'ulimit -u'";

/// First line of the JSON output.
#[derive(Debug, JsonSchema, Serialize, Deserialize)]
pub struct Listening {
    pub device: String,
    pub address: String,
    pub port: u16,
}

/// Result of a connection.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
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
    if args.with_parent {
        stop::with_parent()?;
    }
    let (ia, device) = device::open(&args.device)?;
    let address = own_address(&ia, &device)?.to_string();
    let port = args.device.port;
    // Connection requests, and all events of short connections.
    let streams = EvdFlags::CR | EvdFlags::DTO | EvdFlags::CONNECTION;
    let evd = ia.create_evd(streams, (BACKLOG + 4 * CONNECTIONS_MAX) as i32)?;
    let options =
        PspOptions { conn_qual: Some(port.into()), backlog: Some(BACKLOG), ..Default::default() };
    let _psp = match ia.create_psp_with(&evd, &options) {
        Ok(psp) => psp,
        Err(error) if error.kind() == Some(Type::CONN_QUAL_IN_USE) => {
            bail!(
                "port {port} of {device} is in use: stop the other server or choose another --port"
            )
        }
        Err(error) => return Err(error).context(format!("cannot listen on {device}, port {port}")),
    };
    if as_json {
        output::json(&Listening { device, address, port })?;
    } else {
        say(format!("Serving on {device}, address {address}, port {port}. Ctrl-C ends it."))?;
    }
    Server {
        ia,
        evd,
        as_json,
        record: args.events || as_json,
        patience: Duration::from_secs(args.device.timeout),
        clients: Clients::default(),
        brief: Brief::default(),
    }
    .serve(args.limit())
}

struct Server {
    ia: Ia,
    evd: Evd,
    as_json: bool,
    record: bool,
    /// Time without a connection after which a client is lost.
    patience: Duration,
    clients: Clients,
    brief: Brief,
}

impl Server {
    fn serve(mut self, limit: Option<u64>) -> Result<()> {
        let (sender, receiver) = mpsc::channel();
        let mut fatal = None;
        while fatal.is_none()
            && !stop::requested()
            && limit.is_none_or(|limit| self.clients.done < limit)
        {
            match self.evd.wait(Some(SLICE), 1) {
                Ok((Event::ConnectionRequest { cr, .. }, _)) => self.answer(cr, &sender)?,
                Ok((event, _)) => {
                    let ended = self.brief.event(&event);
                    self.tell_all(ended)?;
                }
                Err(error) if error.is_timeout() => fatal = device::removed(&self.ia),
                Err(error) if error.is_interrupted() => {}
                // Removing the device ends the wait.
                Err(error) => {
                    fatal = Some(device::removed_soon(&self.ia).unwrap_or_else(|| error.into()));
                }
            }
            self.collect(&receiver)?;
            let lost = self.brief.lost(self.patience);
            self.tell_all(lost)?;
        }
        self.end(&receiver)?;
        if let Some(error) = fatal {
            return Err(error);
        }
        let Clients { connections, failed, .. } = self.clients;
        if limit.is_some() && failed > 0 {
            bail!("{failed} of {connections} connections failed");
        }
        Ok(())
    }

    /// Reports the clients that are still there when the server ends.
    fn end(&mut self, receiver: &Receiver<Served>) -> Result<()> {
        let deadline = Instant::now() + END;
        while self.clients.served > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(served) = receiver.recv_timeout(left) else { break };
            self.tell(&served, 1)?;
        }
        let stopped = self.brief.stopped();
        self.tell_all(stopped)
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
        let (give, take) = mpsc::channel::<Arrival>();
        let (ia, record, sender) = (self.ia.clone(), self.record, sender.clone());
        let thread = thread::Builder::new().spawn(move || {
            let Ok(arrival) = take.recv() else { return };
            // Fails only when the server is ending.
            let _ = sender.send(connection::serve(&ia, arrival, record));
        });
        if thread.is_err() {
            return self.tell(&arrival.refused(&anyhow!(NO_THREAD)), 1);
        }
        self.clients.begin(arrival.served.run);
        // Cannot fail: the thread takes it before anything else.
        let _ = give.send(arrival);
        Ok(())
    }

    fn collect(&mut self, receiver: &Receiver<Served>) -> Result<()> {
        receiver.try_iter().try_for_each(|served| self.tell(&served, 1))
    }

    /// Prints the results of clients with short connections.
    fn tell_all(&mut self, clients: impl IntoIterator<Item = Ended>) -> Result<()> {
        clients.into_iter().try_for_each(|(served, ended)| self.tell(&served, ended))
    }

    /// Prints the result of `ended` connections of a client.
    fn tell(&mut self, served: &Served, ended: u32) -> Result<()> {
        self.clients.end(served, ended);
        if self.as_json {
            return output::json(served);
        }
        show(served)
    }
}

/// Clients that are connected and that have finished. A client may have several connections.
#[derive(Default)]
struct Clients {
    open: HashMap<u64, Client>,
    /// Number of connections that a thread serves.
    served: u64,
    done: u64,
    /// Clients that are done after an error.
    lost: HashSet<u64>,
    connections: u64,
    failed: u64,
}

#[derive(Default)]
struct Client {
    served: u32,
    ended: u32,
    failed: bool,
}

impl Clients {
    /// Counts a connection of the client `run` that a thread serves.
    fn begin(&mut self, run: u64) {
        self.served += 1;
        self.open.entry(run).or_default().served += 1;
    }

    /// Counts connections that have ended. A client is done after all its connections. After an
    /// error it makes no further ones.
    fn end(&mut self, served: &Served, ended: u32) {
        let failed = served.error.is_some();
        self.connections += u64::from(ended);
        self.failed += u64::from(failed);
        let client = self.open.entry(served.run).or_default();
        client.failed |= failed;
        client.ended += ended;
        if client.served > 0 {
            client.served -= 1;
            self.served -= 1;
        }
        if client.ended >= served.connections || (client.failed && client.served == 0) {
            let lost = client.failed;
            self.open.remove(&served.run);
            // A client makes several connections at once. Those that follow the one that failed
            // are not another client's. A request that cannot be decoded names no client.
            let again = served.run != 0 && self.lost.contains(&served.run);
            self.done += u64::from(!again);
            if lost {
                self.lost.insert(served.run);
            }
        }
    }
}

fn show(served: &Served) -> Result<()> {
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
    say(format!("{client} ({mode}): {how}: {outcome}"))?;
    let line = |line: &Line| say(format!("  {:>10} us  {}", grouped(line.at_us), line.event));
    served.events.iter().try_for_each(line)
}

#[cfg(test)]
mod tests {
    use super::{Clients, Served};

    fn served(run: u64, connections: u32, error: Option<&str>) -> Served {
        Served { run, connections, error: error.map(Into::into), ..Default::default() }
    }

    #[test]
    fn a_client_counts_once_although_some_of_its_connections_are_refused() {
        let mut clients = Clients::default();
        clients.end(&served(7, 10, Some("refused")), 1);
        clients.end(&served(7, 10, Some("refused")), 1);
        clients.end(&served(7, 10, Some("lost")), 8);
        assert_eq!((clients.done, clients.connections, clients.failed), (1, 10, 3));
        clients.end(&served(8, 10, None), 10);
        assert_eq!((clients.done, clients.failed), (2, 3));
    }

    #[test]
    fn a_client_of_several_threads_counts_when_all_have_ended() {
        let mut clients = Clients::default();
        clients.begin(7);
        clients.begin(7);
        clients.end(&served(7, 2, Some("lost")), 1);
        assert_eq!(clients.done, 0);
        clients.end(&served(7, 2, None), 1);
        assert_eq!(clients.done, 1);
    }

    #[test]
    fn requests_that_name_no_client_count_each() {
        let mut clients = Clients::default();
        clients.end(&served(0, 1, Some("no request")), 1);
        clients.end(&served(0, 1, Some("no request")), 1);
        assert_eq!(clients.done, 2);
    }
}
