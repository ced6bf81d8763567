// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Numbers of addresses.

use libkdapl_bmi::Peer;
use std::collections::HashMap;
use std::ffi::CString;
use std::net::IpAddr;

/// An address.
pub struct Address {
    pub peer: Peer,
    /// Its text, which a C program may keep.
    pub text: CString,
    references: usize,
}

/// The addresses, whose numbers begin with 1 and are not used again.
#[derive(Default)]
pub struct Addresses {
    by_number: HashMap<i64, Address>,
    by_peer: HashMap<Peer, i64>,
    /// Numbers of addresses that were looked up.
    by_text: HashMap<String, i64>,
    last: i64,
}

impl Addresses {
    pub fn get(&self, number: i64) -> Option<&Address> {
        self.by_number.get(&number)
    }

    /// Returns the number of an address that was looked up before.
    pub fn looked_up(&self, text: &str) -> Option<i64> {
        self.by_text.get(text).copied()
    }

    /// Adds an address that was looked up.
    pub fn insert(&mut self, text: &str, peer: Peer) -> i64 {
        // Another thread may have been first.
        if let Some(number) = self.looked_up(text) {
            return number;
        }
        let number = self.of(&peer, false);
        self.by_text.insert(text.to_owned(), number);
        number
    }

    /// Returns the number of a peer, and adds a reference if `counted`. A new address has one.
    pub fn of(&mut self, peer: &Peer, counted: bool) -> i64 {
        if let Some(number) = self.by_peer.get(peer).copied() {
            if counted {
                self.add_reference(number);
            }
            return number;
        }
        self.last += 1;
        let text = CString::new(peer.address().unwrap_or_default()).unwrap_or_default();
        self.by_peer.insert(peer.clone(), self.last);
        let address = Address { peer: peer.clone(), text, references: 1 };
        self.by_number.insert(self.last, address);
        self.last
    }

    /// Adds a reference. Returns `false` if there is no such address.
    pub fn add_reference(&mut self, number: i64) -> bool {
        let address = self.by_number.get_mut(&number);
        address.map(|address| address.references += 1).is_some()
    }

    /// Drops a reference. The last one forgets the address.
    pub fn drop_reference(&mut self, number: i64) -> bool {
        let Some(address) = self.by_number.get_mut(&number) else { return false };
        address.references -= 1;
        if address.references == 0 {
            self.forget(number);
        }
        true
    }

    /// Forgets an address.
    pub fn forget(&mut self, number: i64) -> bool {
        let Some(address) = self.by_number.remove(&number) else { return false };
        self.by_peer.remove(&address.peer);
        self.by_text.retain(|_, other| *other != number);
        true
    }
}

/// Returns whether a host of an address is in a range; `None` if the range is malformed.
pub fn is_within(address: &str, range: &str, bits: i32) -> Option<bool> {
    let hosts = address.strip_prefix("kdapl://").unwrap_or(address).split('+');
    let mut within = hosts.map(|host| host_is_within(&format!("kdapl://{host}"), range, bits));
    let first = within.next()??;
    within.try_fold(first, |any, next| Some(any || next?))
}

fn host_is_within(address: &str, range: &str, bits: i32) -> Option<bool> {
    let host = |text: &str| {
        let place = text.strip_prefix("kdapl://")?.split('/').next()?.to_owned();
        let end = place.rfind(':').filter(|end| place[*end..].len() > 1);
        let host = match place.strip_prefix('[') {
            Some(rest) => rest.split(']').next()?.to_owned(),
            None => place[..end.unwrap_or(place.len())].to_owned(),
        };
        // A range is one of addresses, on all network devices.
        Some(host.split('%').next()?.to_owned())
    };
    let (address, range) = (host(address)?, host(range)?);
    // The star stands for whole parts of the address, and comes last.
    if let Some((start, rest)) = range.split_once('*') {
        let whole = rest.is_empty() && (start.is_empty() || start.ends_with(['.', ':']));
        return whole.then(|| address.starts_with(start));
    }
    let (address, range): (IpAddr, IpAddr) = (address.parse().ok()?, range.parse().ok()?);
    let (address, range) = match (address, range) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.octets().to_vec(), b.octets().to_vec()),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.octets().to_vec(), b.octets().to_vec()),
        _ => return Some(false),
    };
    let bits = usize::try_from(bits).ok().filter(|bits| *bits <= 8 * address.len())?;
    let bits = if bits == 0 { 8 * address.len() } else { bits };
    let bit = |bytes: &[u8], index: usize| (bytes[index / 8] >> (7 - index % 8)) & 1;
    Some((0..bits).all(|index| bit(&address, index) == bit(&range, index)))
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn ranges() {
        let address = "kdapl://10.7.3.4:7180";
        for (range, bits, within) in [
            ("kdapl://10.7.*", 0, Some(true)),
            ("kdapl://10.8.*", 0, Some(false)),
            ("kdapl://10.7.0.0", 16, Some(true)),
            ("kdapl://10.7.0.0", 24, Some(false)),
            ("kdapl://10.7.2.0", 23, Some(true)),
            ("kdapl://10.7.3.4", 0, Some(true)),
            ("kdapl://10.7.3.5", 0, Some(false)),
            ("kdapl://10.7.0.0", 33, None),
            ("tcp://10.7.0.0", 16, None),
            ("kdapl://*", 0, Some(true)),
            ("kdapl://10.7*", 0, None),
            ("kdapl://10.*.4", 0, None),
            ("kdapl://[fe80::1]", 64, Some(false)),
        ] {
            assert_eq!(is_within(address, range, bits), within, "{range}/{bits}");
        }
        for (address, within) in [
            ("kdapl://10.7.3.4+10.8.0.1:7180", true),
            ("kdapl://10.8.0.1+10.7.3.4:7180", true),
            ("kdapl://10.8.0.1+10.9.3.4:7180", false),
        ] {
            assert_eq!(is_within(address, "kdapl://10.7.*", 0), Some(within), "{address}");
        }
        for address in ["kdapl://[fe80::1]:7", "kdapl://[fe80::1%2]:7"] {
            assert_eq!(is_within(address, "kdapl://[fe80::2]", 64), Some(true));
        }
    }
}
