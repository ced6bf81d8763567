// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What a test is given: how much to do, how long to wait, which hosts.

use crate::again::unheard;
use crate::harness::skip;
use crate::hosts::{Host, Layout};
use anyhow::{bail, Context as _, Result};
use fastrand::Rng;
use libkdapl::{ConnectionEvent, Evd, Event, Ia};
use observe::threads::Patience;
use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::panic::Location;
use std::time::{Duration, Instant};

/// An event that is due comes within that (times the scale).
const PATIENCE: Duration = Duration::from_secs(10);
/// Nothing happens for that long (times the scale) where nothing should.
const QUIET: Duration = Duration::from_millis(60);
/// Two threads wake each other in that time on a usual machine.
const USUAL: Duration = Duration::from_micros(20);

/// How the whole run was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub seed: u64,
    /// How many times slower than usual the kernel is.
    pub scale: f64,
    /// Times the usual counts.
    pub effort: f64,
    pub layout: Layout,
}

/// `KDAPL_SELFTEST_SCALE`, or what this kernel takes for a thing that needs no RDMA, compared
/// with what a usual one takes; 1 to 15.
pub fn scale() -> f64 {
    let asked = std::env::var("KDAPL_SELFTEST_SCALE").ok().and_then(|text| text.parse().ok());
    let measured = || round_trip().map_or(1.0, |time| time.as_secs_f64() / USUAL.as_secs_f64());
    asked.unwrap_or_else(|| measured().min(15.0)).max(1.0)
}

/// The time in which two threads wake each other once, through a socket.
fn round_trip() -> std::io::Result<Duration> {
    const ROUNDS: usize = 300;
    let (mut here, mut there) = UnixStream::pair()?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let mut byte = [0];
        while there.read(&mut byte)? > 0 {
            there.write_all(&byte)?;
        }
        Ok(())
    });
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        here.write_all(&[1])?;
        here.read_exact(&mut [0])?;
        times.push(start.elapsed());
    }
    drop(here);
    let _ = echo.join();
    // The median: the machine may be busy with something else now and then.
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// What every test gets.
pub struct Context {
    pub settings: Settings,
    /// Where this thread is, and whatever needs one side only.
    pub client: Host,
    /// Where the listener of a connection is; the same as the client's unless there are two.
    pub server: Host,
    rng: RefCell<Rng>,
    port: Cell<u16>,
}

impl Patience for Context {
    fn patience(&self) -> Duration {
        Self::patience(self)
    }
}

impl Context {
    /// Looks for the hosts, and moves this thread to the client's.
    pub fn new(settings: &Settings) -> Result<Self> {
        let (client, server) = settings.layout.hosts()?;
        client.settle()?;
        let mut rng = Rng::with_seed(settings.seed);
        // Every process begins elsewhere, so that none meets what another left behind; and below
        // the ports that sockets take by themselves, which over iWARP are the same.
        let port = 20_000 + (u64::from(std::process::id()) * 37 + rng.u64(0..1000)) % 8_000;
        Ok(Self {
            settings: *settings,
            client,
            server,
            rng: RefCell::new(rng),
            port: Cell::new(port as u16),
        })
    }

    /// For another thread, which only waits.
    pub fn new_for_thread(&self) -> Self {
        Self {
            settings: self.settings,
            client: self.client.clone(),
            server: self.server.clone(),
            rng: RefCell::new(self.rng()),
            port: self.port.clone(),
        }
    }

    /// An IA of the side that connects; also for tests that need no second side.
    pub fn open(&self) -> Result<Ia> {
        self.client.open()
    }

    /// An IA of the side that listens.
    pub fn open_server(&self) -> Result<Ia> {
        self.server.open()
    }

    /// One of each side: client, server.
    pub fn open_both(&self) -> Result<(Ia, Ia)> {
        Ok((self.open()?, self.open_server()?))
    }

    /// Where a connect finds a listener of the [server](Self::open_server)'s IA.
    pub fn server_address(&self) -> IpAddr {
        self.server.address
    }

    /// Where an IA was opened.
    pub fn host_of(&self, ia: &Ia) -> Result<&Host> {
        let is_client = ia.query()?.adapter_name == self.client.device;
        Ok(if is_client { &self.client } else { &self.server })
    }

    /// The hosts, each once.
    pub fn hosts(&self) -> Vec<&Host> {
        let both = [&self.server, &self.client];
        let one = self.server.device == self.client.device;
        both.into_iter().skip(usize::from(one)).collect()
    }

    /// Whether packets get lost or overtake each other on the way between the hosts.
    pub fn link_is_spoilt(&self) -> bool {
        self.settings.layout.netem.is_some()
    }

    /// For tests that need each reject to arrive at once.
    pub fn rejects_arrive(&self) -> Result<()> {
        if self.link_is_spoilt() {
            return skip("ib_cm does not repeat a reject that gets lost: the request comes anew");
        }
        Ok(())
    }

    /// For tests with RDMA reads of several packets.
    pub fn reads_arrive(&self) -> Result<()> {
        if self.loses_reads() {
            return skip("soft-RoCE stops the QP when a part of the answer to a read gets lost");
        }
        Ok(())
    }

    /// Whether an RDMA read of several packets may fail on the way: soft-RoCE takes the rest of
    /// the answer to it for broken once one packet is lost or late, completes it with SUCCESS, warns,
    /// and stops the QP. Of several reads or atomic operations at once it may forget one.
    pub fn loses_reads(&self) -> bool {
        self.link_is_spoilt() && !self.client.is_iwarp()
    }

    /// How a connection may end that a peer leaves in the middle of traffic: over TCP, data that is
    /// under way when the peer hangs up is an error.
    pub fn ends_of_traffic(&self) -> &'static [ConnectionEvent] {
        let ends = &[ConnectionEvent::Disconnected, ConnectionEvent::Broken];
        &ends[..1 + usize::from(self.server.is_iwarp())]
    }

    /// A connection qualifier that no other test uses.
    pub fn port(&self) -> u64 {
        self.port.set(self.port.get() + 1);
        self.port.get().into()
    }

    /// Random numbers, others each time.
    pub fn rng(&self) -> Rng {
        self.rng.borrow_mut().fork()
    }

    /// `usual` times the effort, divided by the scale; at least 1.
    pub fn count(&self, usual: u64) -> u64 {
        ((usual as f64 * self.settings.effort / self.settings.scale) as u64).max(1)
    }

    pub fn scaled(&self, usual: Duration) -> Duration {
        usual.mul_f64(self.settings.scale)
    }

    pub fn patience(&self) -> Duration {
        self.scaled(PATIENCE)
    }

    /// The next event of `evd`, which is due, and wakes who waits for it.
    #[track_caller]
    pub fn next(&self, evd: &Evd) -> Result<Event> {
        loop {
            let start = Instant::now();
            match evd.wait(Some(self.patience()), 1) {
                Ok((event, _)) => {
                    self.woken_since(start).with_context(|| event.to_string())?;
                    return Ok(event);
                }
                Err(error) if error.is_interrupted() => {}
                Err(error) if error.is_timeout() => {
                    unheard!(
                        "no event came in {:?}, which {} waits for",
                        self.patience(),
                        Location::caller()
                    )
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A wait that began then did not come to its end before it found an event.
    pub fn woken_since(&self, start: Instant) -> Result<()> {
        if start.elapsed() >= self.patience() {
            bail!("it was there, and nobody was woken for it");
        }
        Ok(())
    }

    /// Nothing comes on `evd`.
    pub fn quiet(&self, evd: &Evd) -> Result<()> {
        match evd.wait(Some(self.scaled(QUIET)), 1) {
            Err(error) if error.is_timeout() => Ok(()),
            Err(error) => Err(error.into()),
            Ok((event, _)) => bail!("nothing was due, but {event} came"),
        }
    }

    /// Looks again and again until `condition` holds.
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
        let end = Instant::now() + self.patience();
        while !condition()? {
            if Instant::now() > end {
                unheard!("{what}: not in {:?}", self.patience());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}
