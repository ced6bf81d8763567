// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ways from devices of this side to hosts of a peer, by numbers.
//!
//! The n-th connection to a peer goes from the n-th device to the n-th host of its address. A
//! shorter list begins again. The first ways are the pairs of the n-th of both, then these pairs
//! with the hosts shifted, so that each pair has one number.

use super::devices::Rails;

/// Ways from the devices that are there to the hosts of one peer.
pub(crate) struct Ways {
    devices: usize,
    hosts: usize,
    /// Devices that are there, a bit for each.
    living: u8,
}

impl Ways {
    /// Makes the ways from `devices` devices, those of `living` out of them, to `hosts` hosts.
    pub(crate) fn new(devices: u8, hosts: usize, living: impl Iterator<Item = u8>) -> Self {
        let possible = living.filter(|device| Rails::ALL.has((*device).into()));
        Self {
            devices: devices.into(),
            hosts,
            living: possible.fold(0, |bits, device| bits | (1 << device)),
        }
    }

    fn count(&self) -> usize {
        self.devices * self.hosts
    }

    /// Returns the number of pairs until both lists begin again at once.
    fn turns(&self) -> usize {
        let (mut common, mut rest) = (self.devices, self.hosts);
        while rest > 0 {
            (common, rest) = (rest, common % rest);
        }
        self.count() / common.max(1)
    }

    /// Returns the device and the host of a turn, if the device is there.
    fn pair(&self, turn: usize, shift: usize) -> Option<(u8, usize)> {
        let device = turn.checked_rem(self.devices)?;
        let host = (turn + shift).checked_rem(self.hosts)?;
        (self.living & (1 << device) != 0).then_some((device as u8, host))
    }

    /// Returns the device and the host of a rail, if rail 0 takes the way `first`, or the next one
    /// whose device is there.
    pub(crate) fn of_rail(&self, first: usize, rail: u8) -> Option<(u8, usize)> {
        let turns = self.turns();
        let shift = first.checked_div(turns)?;
        let pairs = || (first..first + turns).filter_map(|turn| self.pair(turn % turns, shift));
        let place = usize::from(rail).checked_rem(pairs().count())?;
        pairs().nth(place)
    }

    /// Returns the way of rail 0 in [`Self::of_rail`].
    pub(crate) fn taken(&self, first: usize) -> Option<usize> {
        let turns = self.turns();
        let shift = first.checked_div(turns)?;
        let mut all = (first..first + turns).map(|turn| turn % turns);
        let turn = all.find(|turn| self.pair(*turn, shift).is_some())?;
        Some(shift * turns + turn)
    }

    /// Returns the ways from this one on whose devices are there, with their devices and hosts.
    fn from(&self, way: usize) -> impl Iterator<Item = (usize, (u8, usize))> + '_ {
        let (count, turns) = (self.count(), self.turns());
        let ways = (way..way + count).filter_map(move |way| way.checked_rem(count));
        ways.filter_map(move |way| {
            let (turn, shift) = (way.checked_rem(turns)?, way.checked_div(turns)?);
            Some((way, self.pair(turn, shift)?))
        })
    }
}

/// Devices that have no free Endpoint, a bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Short(u8);

impl Short {
    /// Adds a device.
    pub(crate) fn add(&mut self, device: u8) {
        self.0 |= 1_u8.checked_shl(device.into()).unwrap_or(0);
    }

    fn has(self, device: u8) -> bool {
        self.0 & 1_u8.checked_shl(device.into()).unwrap_or(0) != 0
    }
}

/// Attempts to connect the first rail of a session by one way after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts {
    /// Way of the first attempt.
    first: usize,
    /// Way of the last attempt.
    way: usize,
    /// Ways that have failed, a bit for each.
    failed: u64,
}

impl Attempts {
    /// Begins with the way `first`, or the next one whose device is there.
    pub(crate) fn new(ways: &Ways, first: usize) -> Option<Self> {
        let first = ways.taken(first)?;
        Some(Self {
            first,
            way: first,
            failed: 0,
        })
    }

    /// Returns the way of the last attempt.
    pub(crate) const fn way(&self) -> usize {
        self.way
    }

    /// Notes that the last attempt has failed.
    pub(crate) fn fail(&mut self) {
        self.failed |= bit(self.way);
    }

    /// Chooses the next way: the first one that has not failed, whose device is there and is not
    /// short of Endpoints. Returns its device and its host.
    pub(crate) fn next(&mut self, ways: &Ways, short: Short) -> Option<(u8, usize)> {
        let possible = |way, device| bit(way) & !self.failed != 0 && !short.has(device);
        let mut all = ways.from(self.first);
        let (way, pair) = all.find(|(way, (device, _))| possible(*way, *device))?;
        self.way = way;
        Some(pair)
    }
}

/// Returns the bit of a way. Those after the 64th have none, and are not tried again.
fn bit(way: usize) -> u64 {
    let way = u32::try_from(way).ok();
    way.and_then(|way| 1_u64.checked_shl(way)).unwrap_or(0)
}
