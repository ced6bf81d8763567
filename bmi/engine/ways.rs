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

    /// Returns the number of pairs of a device that is there and a host.
    pub(crate) fn living(&self) -> usize {
        self.living.count_ones() as usize * self.hosts
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

    /// Returns the first way from this one on whose device is there.
    pub(crate) fn from(&self, way: usize) -> Option<usize> {
        let (count, turns) = (self.count(), self.turns());
        let mut ways = (way..way + count).map(|way| way % count);
        ways.find(|way| self.pair(way % turns, way / turns).is_some())
    }
}
