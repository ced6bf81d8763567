// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Options of an instance.

use crate::bmi::engine::{Config, Window, MAX_RAILS};
use crate::error::{Error, Result};
use std::time::Duration;

/// Options of [`Bmi::open`](crate::Bmi::open).
///
/// ```
/// let options = libkdapl_bmi::Options { rails: 2, ..Default::default() };
/// assert_eq!(options.message, 16 * 1024);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of up to four adapters, separated by commas, in the form of
    /// [`Ia::open`](libkdapl::Ia::open): a device, a network device or an IP address. `None` for
    /// the hosts of `listen` or the first device whose port is up.
    pub adapter: Option<String>,
    /// Address to listen at, `kdapl://HOST:PORT`, or `kdapl://HOST+HOST:PORT` for several adapters.
    /// `None`: peers cannot connect.
    pub listen: Option<String>,
    /// Bytes of the largest message on the wire, with its header of 48 bytes: at least 96. The
    /// smaller value of two peers is used. Longer messages are moved by RDMA. Below 8.2 KiB, it
    /// limits them to 1,020 KiB for each 16 bytes after the header; above that, they fail with
    /// [`Failure::TooLong`](crate::Failure::TooLong).
    pub message: u32,
    /// Messages that a peer may send before this side has taken them, at least 1.
    pub window: u16,
    /// Connections to each peer, 1 to 4, and at least one for each adapter. The smaller number of
    /// two peers is used. The n-th one goes from the n-th adapter to the n-th host of the peer's
    /// address; a shorter list begins again.
    pub rails: u8,
    /// Bytes from which on a message is divided over the connections to a peer.
    pub stripe_from: u64,
    /// Long messages are read by their receivers, if both sides can do so.
    pub pull: bool,
    /// Receives of the shared receive queue.
    pub shared_receives: u32,
    /// Length of the event queue at first. It grows with the number of connections.
    pub events: u16,
    /// Time without a message after which a peer is asked for one, and as much again after which
    /// it is given up.
    pub silence: Duration,
    /// Time that a cancelled operation waits for its peer.
    pub patience: Duration,
    /// Time after which an attempt to connect fails.
    pub connect_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            adapter: None,
            listen: None,
            message: 16 * 1024,
            window: 32,
            rails: 1,
            stripe_from: 256 * 1024,
            pull: true,
            shared_receives: 1024,
            events: 1024,
            silence: Duration::from_secs(15),
            patience: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(30),
        }
    }
}

impl Options {
    /// Returns the options for so many adapters.
    ///
    /// # Errors
    /// [`Error::Options`] for a number of adapters or of rails that is not possible.
    pub(crate) fn for_adapters(&self, count: usize) -> Result<Self> {
        let refused = |what: &str, number: usize| {
            Err(Error::Options(format!("{number} {what}: there can be 1 to {MAX_RAILS}")))
        };
        match (count, usize::from(self.rails)) {
            (1..=MAX_RAILS, rails @ 1..=MAX_RAILS) => {
                Ok(Self { rails: rails.max(count) as u8, ..self.clone() })
            }
            (1..=MAX_RAILS, rails) => refused("rails", rails),
            _ => refused("adapters", count),
        }
    }

    /// Returns the receives of each connection.
    pub(crate) fn window(&self) -> Window {
        Window::of_home(self.window)
    }

    /// Returns the requests of the engine on each connection.
    pub(crate) fn queue(&self) -> u16 {
        self.window().requests()
    }

    /// Returns the parameters of the engine. Its unit of time is a millisecond.
    pub(crate) fn config(&self, pull: bool, devices: u8) -> Config {
        Config {
            instance: random(),
            message: self.message,
            window: self.window(),
            lend: Window::LEND,
            lend_all: Window::LEND_ALL,
            queue: self.queue(),
            rails: self.rails,
            devices,
            stripe_from: self.stripe_from,
            pull,
            silence: milliseconds(self.silence),
            patience: milliseconds(self.patience),
        }
    }
}

/// Returns a number that nobody can guess, other than 0.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    // The kernel refuses it only before its generator has begun, early in the boot.
    getrandom::fill(&mut bytes).expect("random numbers of the kernel");
    u64::from_ne_bytes(bytes) | 1
}

/// Returns a time in the engine's unit.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
