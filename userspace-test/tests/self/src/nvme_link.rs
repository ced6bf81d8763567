// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Two soft-RoCE devices of one network namespace, on the ends of a link: `nvme-rdma` connects from
//! the first namespace only.
//!
//! ```text
//!   10.8.0.1 kdapl_h on kdaplH ---veth--- kdaplT, kdapl_t 10.8.0.2
//!   host                                                    target
//! ```
//!
//! Rules of routing send packets between the two addresses over the link. The kernel would deliver
//! them locally otherwise.

use crate::machine::command;
use anyhow::Result;
use std::fs;
use std::net::IpAddr;

/// Address of the target.
pub const TARGET: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 8, 0, 2));

/// Options of a host that uses the other device.
pub const FROM_HOST: &str = ",host_traddr=10.8.0.1";

const ENDS: [(&str, &str, &str); 2] =
    [("kdaplH", "kdapl_h", "10.8.0.1"), ("kdaplT", "kdapl_t", "10.8.0.2")];

/// Rules, of which the first number is the place.
const RULES: [&str; 5] = [
    "10 iif kdaplH lookup local",
    "11 iif kdaplT lookup local",
    "20 from 10.8.0.1 to 10.8.0.2 lookup 101",
    "21 from 10.8.0.2 to 10.8.0.1 lookup 102",
    "100 lookup local",
];

/// The link, until dropped.
pub struct Link(());

impl Link {
    pub fn new() -> Result<Self> {
        // From here on, a failure removes all that was made.
        let link = Self(());
        command("ip link add kdaplH type veth peer name kdaplT")?;
        for (netdev, _, address) in ENDS {
            fs::write(format!("/proc/sys/net/ipv4/conf/{netdev}/accept_local"), "1")?;
            command(&format!("ip link set {netdev} mtu 4200"))?;
            command(&format!("ip addr add {address}/24 dev {netdev}"))?;
            command(&format!("ip link set {netdev} up"))?;
            command(&format!("tc qdisc add dev {netdev} root netem limit 100000"))?;
        }
        for rule in RULES {
            command(&format!("ip rule add pref {rule}"))?;
        }
        command("ip route add 10.8.0.2 dev kdaplH src 10.8.0.1 table 101")?;
        command("ip route add 10.8.0.1 dev kdaplT src 10.8.0.2 table 102")?;
        command("ip rule del pref 0")?;
        for (_, device, _) in ENDS {
            Self::add(device)?;
        }
        Ok(link)
    }

    /// Spoils the packets in both directions.
    pub fn spoil(&self, netem: &str) -> Result<()> {
        for (netdev, ..) in ENDS {
            command(&format!("tc qdisc change dev {netdev} root netem limit 100000 {netem}"))?;
        }
        Ok(())
    }

    fn add(device: &str) -> Result<()> {
        let netdev = ENDS.iter().find(|end| end.1 == device).map_or("", |end| end.0);
        command(&format!("rdma link add {device} type rxe netdev {netdev}"))
    }

    /// Removes a device, and makes it again.
    pub fn replace(&self, device: &str) -> Result<()> {
        command(&format!("rdma link del {device}"))?;
        Self::add(device)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Some of it may not exist. Ignore the errors.
        let _ = command("ip rule add pref 0 lookup local");
        for rule in RULES {
            let place = rule.split(' ').next().unwrap_or_default();
            let _ = command(&format!("ip rule del pref {place}"));
        }
        for (_, device, _) in ENDS {
            let _ = command(&format!("rdma link del {device}"));
        }
        let _ = command("ip link del kdaplH");
    }
}
