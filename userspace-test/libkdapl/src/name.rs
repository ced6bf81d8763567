// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Names of hosts.

use crate::ep::{ConnectOptions, EpConfig};
use crate::error::{Error, Result};
use crate::ia::Ia;
use crate::Type;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Returns the addresses of a host, the preferred one first (RFC 6724). `host` is a name or an
/// address. A link-local address ends with `%` and the network device.
fn addresses(host: &str) -> io::Result<Vec<SocketAddr>> {
    let mut found: Vec<SocketAddr> = (host, 0).to_socket_addrs()?.collect();
    found.dedup();
    match found.is_empty() {
        true => Err(io::Error::other("it has no address")),
        false => Ok(found),
    }
}

impl Ia {
    /// Looks up the address at which this IA reaches a host: [`Ep::connect_with`] takes it. Waits
    /// for the answer of a name server.
    ///
    /// `host` is a name, an IPv4 or an IPv6 address (`fe80::1%eth0`). Of several addresses it is
    /// the first, in the system's order of preference, to which an address of the IA leads: an
    /// IPv4 address for a device that has no IPv6 address.
    ///
    /// # Errors
    /// [`Error::Host`] for a name that is unknown, or none of whose addresses the IA can use.
    ///
    /// [`Ep::connect_with`]: crate::Ep::connect_with
    pub fn resolve(&self, host: &str) -> Result<SocketAddr> {
        let failed = |source| Error::Host { name: host.to_owned(), source };
        let found = addresses(host).map_err(failed)?;
        if let [only] = found[..] {
            // The connect reports the error.
            return Ok(only);
        }
        let mut usable = None;
        for address in &found {
            if usable.is_none() && self.leads_to(*address)? {
                usable = Some(*address);
            }
        }
        usable.ok_or_else(|| {
            let list: Vec<_> = found.iter().map(|address| address.ip().to_string()).collect();
            let text = format!("the device has no address that leads to {}", list.join(" or "));
            failed(io::Error::other(text))
        })
    }

    /// Returns whether the IA has an address from which it can connect to `address`.
    ///
    /// A connect checks the address before the state of its Endpoint. So the error of one without a
    /// PZ, which cannot connect, shows whether the address is usable.
    fn leads_to(&self, address: SocketAddr) -> Result<bool> {
        let ep = self.create_ep_with(&EpConfig::default())?;
        let options =
            ConnectOptions { timeout: Some(Duration::from_secs(1)), ..Default::default() };
        let refused = ep.connect_with(address, 1, &options);
        ep.free()?;
        Ok(refused.err().and_then(|error| error.kind()) != Some(Type::INVALID_ADDRESS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_name_server() {
        assert_eq!(addresses("10.7.0.1").unwrap(), ["10.7.0.1:0".parse().unwrap()]);
        assert_eq!(addresses("fd00::1").unwrap(), ["[fd00::1]:0".parse().unwrap()]);
        assert!(addresses("10.7.0.1.").is_err() && addresses("").is_err());
    }
}
