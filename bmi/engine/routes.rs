// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Routes of rails: from which device to which address of the peer. If the first connection to a
//! peer fails, the next [way](Ways) is tried, until all pairs of a device and a host were.

use super::{
    ways::{
        Attempts,
        Short,
        Ways, //
    },
    wire::Hello, //
};
use core::net::SocketAddr;

/// Attempts to begin a session.
#[derive(Clone, Copy, Debug)]
struct Retry {
    hello: Hello,
    attempts: Attempts,
}

/// Hosts of a peer, and the ways to them.
pub(crate) struct Destination<'a> {
    pub(crate) ways: Ways,
    pub(crate) hosts: &'a [SocketAddr],
    /// Number of the way that is tried first.
    pub(crate) first: usize,
}

/// Route of a rail that this side connects, or has accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) device: u8,
    /// Address to connect to.
    pub(crate) address: Option<SocketAddr>,
    /// Other ways, while the session is connecting.
    retry: Option<Retry>,
}

impl Route {
    /// Returns the route of a rail that was accepted at a device.
    pub(crate) const fn accepted(device: u8) -> Self {
        Self {
            device,
            address: None,
            retry: None,
        }
    }

    /// Chooses the route of the rail with this number: that of the rail `beside`, or its own.
    pub(crate) fn choose(
        rail: u8,
        to: Option<&Destination<'_>>,
        beside: Option<&Self>,
        hello: &Hello,
    ) -> Self {
        let own = to.and_then(|to| {
            let (device, host) = to.ways.of_rail(to.first, rail)?;
            Some((device, to.hosts.get(host).copied()))
        });
        let (device, address) = match beside {
            Some(beside) => (beside.device, beside.address),
            None => own.unwrap_or((0, None)),
        };
        let begins = to.filter(|_| rail == 0);
        let attempts = begins.and_then(|to| Attempts::new(&to.ways, to.first));
        let hello = *hello;
        let retry = attempts.map(|attempts| Retry { hello, attempts });
        Self {
            device,
            address,
            retry,
        }
    }

    /// Returns the next route of a rail that has begun a session and was not established, with the
    /// number of its way and the private data, if there is a way left from a device that is not
    /// short of Endpoints.
    pub(crate) fn next(&self, to: &Destination<'_>, short: Short) -> Option<(Self, usize, Hello)> {
        let mut retry = self.retry?;
        let (device, host) = retry.attempts.next(&to.ways, short)?;
        let route = Self {
            device,
            address: to.hosts.get(host).copied(),
            retry: Some(retry),
        };
        Some((route, retry.attempts.way(), retry.hello))
    }

    /// Notes that the rail is established, or is being closed: it is not connected again.
    pub(crate) fn settle(&mut self) {
        self.retry = None;
    }

    /// Notes that the last attempt to connect the rail has failed.
    pub(crate) fn fail(&mut self) {
        if let Some(retry) = &mut self.retry {
            retry.attempts.fail();
        }
    }
}
