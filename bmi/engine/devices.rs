// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Sessions whose rails are on several devices.
//!
//! An RMR context is valid on one device only. So the memory of an operation is exposed on each
//! device that has a rail of the session, and a message names the rails of each device with its
//! descriptors. The peer accesses the memory over a rail with the descriptors of this rail only. A
//! device on which memory cannot be exposed is left out: the others carry the message. So are some
//! devices if one message has no room for the descriptors of all.
//!
//! The numbers of devices are those of the home, below [`MAX_RAILS`]. The peer does not see them.

use super::{
    error::Error,
    home::{
        Home,
        Place,
        Rdma,
        Wanted, //
    },
    op::{
        Exposure,
        Op,
        OpId,
        Role, //
    },
    peer::{
        Link,
        Peer,
        PeerId,
        Rail,
        RailId,
        MAX_RAILS, //
    },
    pump::rail_id,
    wire::{
        entry_limit,
        GROUPS, //
    },
    Config,
    Engine,
    Storage, //
};

/// Rails of a session, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rails(u8);

impl Rails {
    /// No rail.
    pub(crate) const NONE: Self = Self(0);
    /// All rails.
    pub(crate) const ALL: Self = Self((1 << MAX_RAILS) - 1);

    /// Returns the rails with these bits, if there are no others than possible ones.
    pub(crate) const fn from_bits(bits: u8) -> Option<Self> {
        if bits & !Self::ALL.0 == 0 {
            Some(Self(bits))
        } else {
            None
        }
    }

    /// Returns the bits.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether there is none.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether a rail is among them.
    pub(crate) fn has(self, rail: usize) -> bool {
        rail < MAX_RAILS && self.0 & (1 << rail) != 0
    }

    /// Returns the rails of both sets.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the rails of either set.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Collects the rails for which a condition holds.
    pub(super) fn of(peer: &Peer, condition: impl Fn(&Rail) -> bool) -> Self {
        let mut bits = 0;
        for (index, rail) in peer.rails.iter().enumerate() {
            if condition(rail) {
                bits |= 1 << index;
            }
        }
        Self(bits)
    }
}

/// Rails over which a peer accesses memory, by the devices on which it is exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    /// The rails of each device; none if the memory is not exposed there.
    rails: [Rails; MAX_RAILS],
    /// The message names the rails. Otherwise there is one device, and each rail can be used.
    pub(crate) named: bool,
}

impl Groups {
    /// Returns the devices on which the memory is exposed, and the rails of each.
    pub(crate) fn devices(self) -> impl Iterator<Item = (u8, Rails)> {
        let all = (0_u8..).zip(self.rails);
        all.filter(|(_, rails)| !rails.is_empty())
    }

    fn count(self) -> u16 {
        self.devices().fold(0, |count, _| count.saturating_add(1))
    }
}

impl Peer {
    /// Returns the rails on which messages flow.
    fn up(&self) -> Rails {
        Rails::of(self, |rail| rail.link == Link::Up)
    }

    /// Returns whether the rails that are up are on several devices of this side.
    fn is_spread(&self) -> bool {
        let mut devices = self.rails.iter().filter(|rail| rail.link == Link::Up);
        let first = devices.next().map(|rail| rail.device);
        devices.any(|rail| Some(rail.device) != first)
    }

    /// Returns whether a rail may be on a device of this side, since the peer can tell devices
    /// apart or rail 0 is on the same one.
    pub(super) fn may_use(&self, device: u8) -> bool {
        self.groups || self.rails.first().is_some_and(|rail| rail.device == device)
    }

    /// Returns whether descriptors name their rails. They do so also while there is one rail: by
    /// the time that the peer uses them, it may have a rail to another device.
    fn names_rails(&self, config: &Config) -> bool {
        self.groups && config.devices > 1
    }

    /// Returns the number of descriptors that memory may have on each of so many devices.
    fn share(&self, config: &Config, devices: u16) -> u16 {
        let limit = entry_limit(self.message);
        if !self.names_rails(config) {
            return limit;
        }
        // Each device takes one more entry, which names its rails.
        limit
            .saturating_sub(devices)
            .checked_div(devices)
            .unwrap_or(0)
    }

    /// Divides the descriptors of a message, whose memory has so many on each device, between at
    /// most `most` devices: between fewer ones if the shares are too small otherwise.
    fn spread(&self, config: &Config, needed: u64, most: u16) -> Spread {
        let spread = |devices| Spread {
            devices,
            descriptors: self.share(config, devices),
        };
        let fits = |spread: &Spread| u64::from(spread.descriptors) >= needed;
        let mut all = (2..=most).rev().map(spread);
        all.find(fits).unwrap_or_else(|| spread(1))
    }

    /// Returns a rail of each device that has one, out of those that are up.
    fn rail_of_each_device(&self, id: PeerId) -> [Option<RailId>; MAX_RAILS] {
        let mut rails = [None; MAX_RAILS];
        for (index, rail) in self.rails.iter().enumerate() {
            let first: Option<&mut Option<RailId>> = rails.get_mut(usize::from(rail.device));
            if let Some(first) = first.filter(|_| rail.link == Link::Up) {
                first.get_or_insert(rail_id(id, self, index));
            }
        }
        rails
    }

    /// Returns the rails that a transfer uses, out of those that the peer has named. A rail that
    /// is up at the peer may still be connecting here.
    fn usable(&self, named: Rails) -> Rails {
        let up = self.up().and(named);
        match up.is_empty() {
            true => Rails::of(self, |rail| rail.link == Link::Connecting).and(named),
            false => up,
        }
    }
}

/// Returns the flags, the number of entries and the rails of an operation's descriptors.
pub(super) fn groups_of(op: &Op, peer: &Peer, config: &Config) -> (u8, u16, Groups) {
    let named = peer.names_rails(config);
    let mut groups = Groups {
        rails: [Rails::NONE; MAX_RAILS],
        named,
    };
    let mut entries = 0_u16;
    for (device, (rails, exposure)) in (0_u8..).zip(groups.rails.iter_mut().zip(&op.exposures)) {
        if let Exposure::Exposed(count) = exposure {
            *rails = Rails::of(peer, |rail| rail.link == Link::Up && rail.device == device);
            entries = entries.saturating_add(*count);
        }
    }
    match named {
        true => (GROUPS, entries.saturating_add(groups.count()), groups),
        false => (0, entries, groups),
    }
}

/// Devices on which the memory of an operation is exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    /// Number of the devices.
    devices: u16,
    /// Descriptors that each may have.
    descriptors: u16,
}

impl<S: Storage> Engine<S> {
    /// Returns what of an operation's memory to expose, and on how many devices at most.
    pub(super) fn wanted(&self, home: &impl Home, id: OpId, rdma: Rdma) -> Option<(Wanted, u16)> {
        let op = self.op(id)?;
        let peer = self.peers.get(op.post.peer.0)?;
        let mut wanted = Wanted {
            rdma,
            length: match op.post.role {
                Role::Receive => op.actual,
                Role::Send | Role::SendUnexpected | Role::Arrival => op.post.length,
            },
            descriptors: 0,
        };
        let rails = peer.rail_of_each_device(op.post.peer);
        let most = match op.tried_alone {
            None => rails
                .iter()
                .flatten()
                .fold(0, |count: u16, _| count.saturating_add(1)),
            Some(_) => 1,
        };
        // A send that does not fit is pushed. A receive may get contiguous memory.
        let needed = match rdma {
            Rdma::Read => 0,
            Rdma::Write => wanted.length.div_ceil(home.longest_bind().max(1)),
        };
        let spread = peer.spread(&self.config, needed, most);
        wanted.descriptors = spread.descriptors;
        Some((wanted, spread.devices))
    }

    /// Starts to expose the memory of an operation, on each device with a rail of the session, or
    /// on fewer if a message has no room for the descriptors of all.
    pub(super) fn expose(&mut self, home: &mut impl Home, id: OpId, rdma: Rdma) {
        let Some((wanted, devices)) = self.wanted(home, id, rdma) else {
            return;
        };
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        let Some(peer) = self.peers.get(op.post.peer.0) else {
            return;
        };
        let failed = op.tried_alone.unwrap_or(0);
        let rails = peer.rail_of_each_device(op.post.peer);
        let all = (0_u8..).zip(rails).zip(&mut op.exposures);
        let left = all.filter_map(|((device, rail), exposure)| {
            let rail = rail.filter(|_| failed & (1 << device) == 0)?;
            Some((device, rail, exposure))
        });
        for (device, rail, exposure) in left.take(devices.into()) {
            *exposure = Exposure::Pending;
            if devices == 1 {
                op.tried_alone = Some(failed | (1 << device));
            }
            home.expose(Place { op: id, device }, rail, wanted);
        }
    }

    /// Exposes the memory of a receive on another device, after it could not be exposed: on one
    /// after the other, each with all descriptors of a message. Returns whether there is one.
    pub(super) fn expose_again(&mut self, home: &mut impl Home, id: OpId, error: Error) -> bool {
        let Some(op) = self.ops.get_mut(id.0) else {
            return false;
        };
        if !matches!(error, Error::NoMemory | Error::TooLong) {
            return false;
        }
        op.tried_alone = op.tried_alone.or(Some(0));
        self.expose(home, id, Rdma::Write);
        self.op(id).is_some_and(Op::is_being_exposed)
    }

    /// Returns the rails over which a transfer moves an operation's memory: those that the peer has
    /// named, without those of devices that cannot access the memory of this side.
    pub(super) fn rails_for(&self, home: &mut impl Home, id: OpId, named: Rails) -> Option<Rails> {
        let op = self.op(id)?;
        let peer = self.peers.get(op.post.peer.0)?;
        let usable = peer.usable(named);
        if !peer.is_spread() {
            return Some(usable);
        }
        let mut ready = Rails::NONE;
        for (device, _) in (0_u8..).zip(&op.exposures) {
            let on_device = Rails::of(peer, |rail| rail.device == device).and(usable);
            if !on_device.is_empty() && home.prepare(Place { op: id, device }) {
                ready = ready.or(on_device);
            }
        }
        // Without any, the first request fails for the reason.
        Some(if ready.is_empty() { usable } else { ready })
    }
}
