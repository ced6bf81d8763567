// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Addresses: `kdapl://HOST:PORT`.

use crate::error::{Error, Result};
use std::net::{SocketAddr, ToSocketAddrs};

/// Scheme of the addresses.
const SCHEME: &str = "kdapl://";

/// Addresses of a peer, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hosts(pub(crate) Vec<SocketAddr>);

/// Resolves an address, which may have several hosts: `kdapl://HOST+HOST:PORT`. HOST is a name, an
/// IPv4 address, or an IPv6 address in brackets. A path after the port, as file systems append it,
/// is ignored. May wait for the name service.
///
/// # Errors
/// [`Error::Address`].
pub(crate) fn resolve(address: &str) -> Result<Hosts> {
    let error = |reason: String| Error::Address { address: address.to_owned(), reason };
    let rest = address.strip_prefix(SCHEME).ok_or_else(|| error(format!("it lacks {SCHEME}")))?;
    let place = rest.split('/').next().unwrap_or_default();
    let parts = place.rsplit_once(':').map(|(hosts, port)| (hosts, port.parse::<u16>()));
    let Some((hosts, Ok(port @ 1..=u16::MAX))) = parts else {
        return Err(error("it has no port from 1 to 65535".to_owned()));
    };
    let resolve = |host: &str| {
        let found = format!("{host}:{port}").to_socket_addrs();
        let first = found.map_err(|e| error(e.to_string()))?.next();
        first.ok_or_else(|| error("the host has no IP address".to_owned()))
    };
    Ok(Hosts(hosts.split('+').map(resolve).collect::<Result<_>>()?))
}

/// Returns the text of an address.
pub(crate) fn format(hosts: &Hosts) -> String {
    let ip = |address: &SocketAddr| {
        let mut text = address.to_string();
        text.truncate(text.rfind(':').unwrap_or(text.len()));
        text
    };
    let ips: Vec<_> = hosts.0.iter().map(ip).collect();
    let port = hosts.0.first().map_or(0, SocketAddr::port);
    format!("{SCHEME}{}:{port}", ips.join("+"))
}

#[cfg(test)]
mod tests {
    use super::{format, resolve};

    #[test]
    fn addresses_of_both_families() {
        for text in [
            "kdapl://10.7.0.1:7180",
            "kdapl://[fe80::1]:7180",
            "kdapl://10.7.0.1+[fe80::1]+10.8.0.1:7180",
        ] {
            assert_eq!(format(&resolve(text).unwrap()), text);
        }
        let with_path = resolve("kdapl://10.7.0.1:7180/pvfs2-fs").unwrap();
        assert_eq!(format(&with_path), "kdapl://10.7.0.1:7180");
    }

    #[test]
    fn malformed_addresses() {
        for (text, reason) in [
            ("tcp://10.7.0.1:7180", "it lacks kdapl://"),
            ("kdapl://10.7.0.1", "it has no port"),
            ("kdapl://10.7.0.1+:7180", ""),
            ("kdapl://10.7.0.1:0", "it has no port"),
            ("kdapl://10.7.0.1:70000", "it has no port"),
        ] {
            let error = resolve(text).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains(reason), "{error}");
        }
    }
}
