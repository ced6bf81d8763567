// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Context of a test: the amount of work, time limits, hosts.

use crate::harness::skip;
use crate::hosts::{Host, Layout};
use crate::repeat::unheard;
use anyhow::{bail, Context as _, Result};
use fastrand::Rng;
use libkdapl::{Cno, ConnectionEvent, Evd, Event, Ia};
use observe::threads::Patience;
use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::panic::Location;
use std::time::{Duration, Instant};

/// Time within which an expected event arrives (times the scale).
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for which a test watches that no event arrives (times the scale).
const QUIET: Duration = Duration::from_millis(60);
/// Time in which two threads wake each other on a usual machine.
const USUAL: Duration = Duration::from_micros(20);

/// Effort below which a test tries a part of each table only.
const EFFORT_OF_WHOLE_TABLES: f64 = 0.1;
/// The inverse of that part.
const TABLE_DIVISOR: usize = 3;

/// Options of the whole run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub seed: u64,
    /// Factor by which the kernel is slower than usual.
    pub scale: f64,
    /// Factor for all counts.
    pub effort: f64,
    pub layout: Layout,
}

/// Returns `KDAPL_SELFTEST_SCALE`. By default, compares the time of a wake-up on this kernel, which
/// needs no RDMA, with the usual time; the result is 1 to 15.
pub fn scale() -> f64 {
    let asked = std::env::var("KDAPL_SELFTEST_SCALE").ok().and_then(|text| text.parse().ok());
    let measured = || round_trip().map_or(1.0, |time| time.as_secs_f64() / USUAL.as_secs_f64());
    asked.unwrap_or_else(|| measured().min(15.0)).max(1.0)
}

/// Measures the time in which two threads wake each other once, through a socket.
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
    // Use the median: other work may delay single rounds.
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Context of a test.
pub struct Context {
    pub settings: Settings,
    /// Host of this thread, and of everything that needs one side only.
    pub client: Host,
    /// Host of the listener. It is the client's host unless there are two.
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
    /// Finds the hosts, and moves this thread to the client's host.
    pub fn new(settings: &Settings) -> Result<Self> {
        let mut rng = Rng::with_seed(settings.seed);
        // Each test begins at another port, so that leftovers of one do not disturb the next.
        let first_port = 20_000 + (u64::from(std::process::id()) * 37 + rng.u64(0..1000)) % 8_000;
        Self::with_ports(settings, rng, first_port)
    }

    /// Context of another process of a test, which has some ports of its own.
    pub fn new_for_peer(settings: &Settings) -> Result<Self> {
        let first_port = 10_000 + u64::from(std::process::id()) % 90 * 100;
        Self::with_ports(settings, Rng::with_seed(settings.seed), first_port)
    }

    /// Ports stay below the ephemeral ports of sockets, since iWARP uses the same ports.
    fn with_ports(settings: &Settings, rng: Rng, first_port: u64) -> Result<Self> {
        let (client, server) = settings.layout.hosts()?;
        client.settle()?;
        Ok(Self {
            settings: *settings,
            client,
            server,
            rng: RefCell::new(rng),
            port: Cell::new(first_port as u16),
        })
    }

    /// Copies the context for another thread, which only waits.
    pub fn new_for_thread(&self) -> Self {
        Self {
            settings: self.settings,
            client: self.client.clone(),
            server: self.server.clone(),
            rng: RefCell::new(self.rng()),
            port: self.port.clone(),
        }
    }

    /// Opens an IA of the side that connects. Also used by tests that need one side only.
    pub fn open(&self) -> Result<Ia> {
        self.client.open()
    }

    /// Opens an IA of the side that listens.
    pub fn open_server(&self) -> Result<Ia> {
        self.server.open()
    }

    /// Opens an IA of each side: client, server.
    pub fn open_both(&self) -> Result<(Ia, Ia)> {
        Ok((self.open()?, self.open_server()?))
    }

    /// Returns the address at which a listener of the [server](Self::open_server)'s IA is reached.
    pub fn server_address(&self) -> IpAddr {
        self.server.address
    }

    /// Returns the host of an IA.
    pub fn host_of(&self, ia: &Ia) -> Result<&Host> {
        let is_client = ia.query()?.adapter_name == self.client.device;
        Ok(if is_client { &self.client } else { &self.server })
    }

    /// Returns the hosts, each once.
    pub fn hosts(&self) -> Vec<&Host> {
        let both = [&self.server, &self.client];
        let one = self.server.device == self.client.device;
        both.into_iter().skip(usize::from(one)).collect()
    }

    /// Checks whether netem loses or reorders packets between the hosts.
    pub fn link_is_spoilt(&self) -> bool {
        self.settings.layout.netem.is_some()
    }

    /// Skips a test that needs each reject to arrive, if the link may lose it.
    pub fn rejects_arrive(&self) -> Result<()> {
        if self.link_is_spoilt() {
            return skip("ib_cm does not repeat a lost reject: the peer repeats its request");
        }
        Ok(())
    }

    /// Skips a test that needs RDMA reads of several packets, if they may fail.
    pub fn reads_arrive(&self) -> Result<()> {
        if self.loses_reads() {
            return skip("soft-RoCE stops the QP when a part of a read response is lost");
        }
        Ok(())
    }

    /// Skips a test in which packets arrive for an address that has gone, or is not known to the
    /// device yet, if that stops the kernel.
    pub fn addresses_may_go(&self) -> Result<()> {
        if self.settings.layout.ipv6 && !self.server.is_iwarp() {
            return skip(
                "soft-RoCE takes an uninitialised pointer for an IPv6 packet to such an address",
            );
        }
        Ok(())
    }

    /// Skips a test that shows a device as that of another driver, between two hosts: soft-RoCE
    /// takes no packets for such a device.
    pub fn packets_find_disguised(&self) -> Result<()> {
        if self.hosts().len() > 1 {
            return skip("soft-RoCE finds the device of a packet by its driver");
        }
        Ok(())
    }

    /// Checks whether an RDMA read of several packets may fail. If one packet of the response is
    /// lost or late, soft-RoCE takes the rest for invalid. It completes the read with SUCCESS,
    /// prints a warning and stops the QP. Of several outstanding reads or atomic operations it may
    /// lose one.
    pub fn loses_reads(&self) -> bool {
        self.link_is_spoilt() && !self.client.is_iwarp()
    }

    /// Returns the length of a message of several packets. Over a spoilt link it is short:
    /// soft-RoCE repeats a message whole for each packet that arrives out of order, until its
    /// retries are used up.
    pub fn long_message(&self) -> usize {
        if self.link_is_spoilt() {
            1_000
        } else {
            30_000
        }
    }

    /// Returns the events that may end a connection if the peer disconnects amid traffic. Over TCP,
    /// data in flight at a disconnect is an error.
    pub fn ends_of_traffic(&self) -> &'static [ConnectionEvent] {
        let ends = &[ConnectionEvent::Disconnected, ConnectionEvent::Broken];
        &ends[..1 + usize::from(self.server.is_iwarp())]
    }

    /// Returns a connection qualifier that no other test uses.
    pub fn port(&self) -> u64 {
        self.port.set(self.port.get() + 1);
        self.port.get().into()
    }

    /// Returns a random number generator. Each call returns another one.
    pub fn rng(&self) -> Rng {
        self.rng.borrow_mut().fork()
    }

    /// Returns `usual` times the effort, divided by the scale; at least 1.
    pub fn count(&self, usual: u64) -> u64 {
        ((usual as f64 * self.settings.effort / self.settings.scale) as u64).max(1)
    }

    /// Returns `usual` times the effort; at least 1.
    pub fn count_at_any_scale(&self, usual: u64) -> u64 {
        ((usual as f64 * self.settings.effort) as u64).max(1)
    }

    /// Returns whether tests try a part of each table only.
    pub fn is_brief(&self) -> bool {
        self.settings.effort < EFFORT_OF_WHOLE_TABLES
    }

    /// Returns all rows of a table, or in a brief run a random third, in their order. Of a table
    /// with rows it returns at least one.
    pub fn sample<'a, T>(&self, table: &'a [T]) -> Vec<&'a T> {
        let count = if self.is_brief() { table.len().div_ceil(TABLE_DIVISOR) } else { table.len() };
        let mut chosen = self.rng().choose_multiple(0..table.len(), count);
        chosen.sort_unstable();
        chosen.into_iter().map(|index| &table[index]).collect()
    }

    pub fn scaled(&self, usual: Duration) -> Duration {
        usual.mul_f64(self.settings.scale)
    }

    pub fn patience(&self) -> Duration {
        self.scaled(PATIENCE)
    }

    /// Returns the next event of `evd`. It must arrive, and wake the waiter.
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
                        "no event arrived in {:?}, expected at {}",
                        self.patience(),
                        Location::caller()
                    )
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Checks that a wait that began at `start` was woken, and did not end by its time-out.
    pub fn woken_since(&self, start: Instant) -> Result<()> {
        if start.elapsed() >= self.patience() {
            bail!("the event was queued, but the waiter was not woken");
        }
        Ok(())
    }

    /// Checks that no event arrives on `evd`.
    pub fn quiet(&self, evd: &Evd) -> Result<()> {
        match evd.wait(Some(self.scaled(QUIET)), 1) {
            Err(error) if error.is_timeout() => Ok(()),
            Err(error) => Err(error.into()),
            Ok((event, _)) => bail!("expected no event, got {event}"),
        }
    }

    /// Checks that no EVD triggers the CNO.
    pub fn untriggered(&self, cno: &Cno) -> Result<()> {
        match cno.wait(Some(self.scaled(QUIET / 2))) {
            Err(error) if error.is_empty() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(evd) => bail!("expected no trigger, got {evd:?}"),
        }
    }

    /// Polls until `condition` holds.
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
