// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Names of adapters, and the choice of port and address.

use crate::rust::model::adapter_name::{
    is_link_local,
    match_text,
    own_address,
    source_address,
    AdapterName,
    Choice,
    LocalAddress,
    Match,
    SubjectKind, //
};
use proptest::prelude::*;
use std::net::IpAddr;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Creates an address of network device 2, or of one above it with another number.
fn at(text: &str, ifindex: u32) -> LocalAddress {
    let (address, prefix) = text.split_once('/').expect("a prefix");
    LocalAddress {
        ip: ip(address),
        ifindex,
        prefix: prefix.parse().expect("a number"),
        is_upper: ifindex != 2,
    }
}

fn parse(text: &str) -> Option<AdapterName<'_>> {
    AdapterName::parse(text.as_bytes())
}

#[test]
fn a_name_has_subject_port_and_location() {
    for (text, subject, port, location) in [
        ("rxe0", "rxe0", None, None),
        ("mlx5_0/2", "mlx5_0", Some(2), None),
        ("mlx5_0/2@eth0.100", "mlx5_0", Some(2), Some("eth0.100")),
        ("rxe0@10.7.0.1", "rxe0", None, Some("10.7.0.1")),
        ("fe80::1%eth0", "fe80::1%eth0", None, None),
        ("rxe0@fe80::1%eth0", "rxe0", None, Some("fe80::1%eth0")),
        ("a/b/3", "a/b", Some(3), None),
        ("a@b@c", "a@b", None, Some("c")),
        ("rxe0/0", "rxe0", Some(0), None),
        ("rxe0/4294967295", "rxe0", Some(u32::MAX), None),
    ] {
        let name = parse(text).expect(text);
        assert_eq!(name.subject, subject.as_bytes(), "{text}");
        assert_eq!(name.port, port, "{text}");
        assert_eq!(name.location, location.map(str::as_bytes), "{text}");
    }
}

#[test]
fn other_texts_are_no_names() {
    for text in [
        "",
        "/1",
        "@eth0",
        "rxe0/",
        "rxe0/x",
        "rxe0/-1",
        "rxe0/+1",
        "rxe0/4294967296",
        "rxe0@",
        "rxe0/1@",
        "../rxe0",
        "rxe0/ 1",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn a_location_is_a_network_device_or_an_address() {
    for (text, netdev, address, expected) in [
        ("eth0", "eth0", "10.7.0.1", Some(Match::NetDevice)),
        ("eth0", "eth1", "10.7.0.1", None),
        ("eth", "eth0", "10.7.0.1", None),
        ("10.7.0.1", "eth0", "10.7.0.1", Some(Match::Address)),
        ("10.7.0.1", "eth0", "10.7.0.2", None),
        ("10.7.0.1%eth0", "eth0", "10.7.0.1", None),
        ("fd00::0:1", "eth0", "fd00::1", Some(Match::Address)),
        ("fe80::1%eth0", "eth0", "fe80::1", Some(Match::Address)),
        ("fe80::1%eth1", "eth0", "fe80::1", None),
        ("fe80::1", "eth0", "fe80::1", Some(Match::Address)),
        ("::ffff:10.7.0.1", "eth0", "10.7.0.1", None),
        ("10.7.0.1/24", "eth0", "10.7.0.1", None),
        ("%eth0", "eth0", "10.7.0.1", None),
        ("", "eth0", "10.7.0.1", None),
    ] {
        let found = match_text(text.as_bytes(), netdev.as_bytes(), ip(address));
        assert_eq!(found, expected, "{text} for {address} of {netdev}");
    }
    assert_eq!(match_text(b"\xff", b"eth0", ip("10.7.0.1")), None);
}

#[test]
fn a_name_leaves_port_network_device_or_address() {
    use SubjectKind::{Device, Place};
    let address = at("10.7.0.1/24", 3);
    let choice = |text, subject| {
        parse(text)
            .expect(text)
            .choice(subject, b"eth0.5", &address)
    };
    assert_eq!(choice("rxe0", Device), Some(Choice::Port));
    assert_eq!(choice("rxe0@eth0.5", Device), Some(Choice::NetDevice(3)));
    assert_eq!(choice("rxe0@10.7.0.1", Device), Some(Choice::Address));
    assert_eq!(choice("rxe0@eth0", Device), None);
    assert_eq!(choice("rxe0", Place), None);
    assert_eq!(choice("eth0.5", Place), Some(Choice::NetDevice(3)));
    assert_eq!(choice("10.7.0.1", Place), Some(Choice::Address));
    assert_eq!(choice("eth0.5@10.7.0.1", Place), Some(Choice::Address));
    assert_eq!(choice("10.7.0.1@eth0.5", Place), Some(Choice::Address));
    assert_eq!(choice("eth0.5@10.7.0.2", Place), None);
    assert_eq!(choice("eth0@10.7.0.1", Place), None);
}

#[test]
fn a_choice_includes_the_network_devices_that_it_leaves() {
    assert!(Choice::Port.includes(2) && Choice::Port.includes(9));
    assert!(Choice::NetDevice(2).includes(2) && !Choice::NetDevice(2).includes(9));
    assert!(!Choice::Address.includes(2));
}

#[test]
fn a_port_in_the_name_excludes_the_others() {
    let name = parse("mlx5_0/2").expect("a name");
    assert_eq!(
        [1, 2, 3].map(|port| name.allows_port(port)),
        [false, true, false]
    );
    let name = parse("mlx5_0").expect("a name");
    assert!((0..4).all(|port| name.allows_port(port)));
}

fn own(addresses: &[LocalAddress]) -> Option<usize> {
    own_address(addresses.iter().copied())
}

#[test]
fn the_own_address_is_of_the_port_and_global() {
    let link_local = at("fe80::1/64", 2);
    let (v4, second) = (at("10.7.0.1/24", 2), at("10.8.0.1/24", 2));
    let v6 = at("fd00::1/64", 2);
    let (vlan, vlan6) = (at("10.9.0.1/24", 5), at("fe80::1/64", 5));
    assert_eq!(own(&[]), None);
    assert_eq!(own(&[vlan6, vlan, link_local, v6, second, v4]), Some(4));
    assert_eq!(own(&[vlan, link_local, v6]), Some(2));
    assert_eq!(own(&[vlan, link_local]), Some(1));
    assert_eq!(own(&[vlan6, vlan]), Some(1));
}

fn source(addresses: &[LocalAddress], remote: &str, scope: u32) -> Option<usize> {
    source_address(addresses.iter().copied(), ip(remote), scope)
}

#[test]
fn a_connection_leaves_from_the_network_of_the_peer() {
    let table = [
        at("10.7.0.1/24", 2),
        at("10.8.0.1/16", 2),
        at("10.8.3.1/24", 5),
        at("fe80::1/64", 2),
        at("fe80::1/64", 5),
        at("fd00::1/64", 2),
        at("fd00:0:0:5::1/64", 5),
    ];
    for (remote, scope, expected) in [
        ("10.7.0.9", 0, Some(0)),
        ("10.8.0.9", 0, Some(1)),
        ("10.8.3.9", 0, Some(2)),
        ("10.8.3.1", 0, Some(2)),
        ("192.0.2.1", 0, Some(0)),
        ("fd00::9", 0, Some(5)),
        ("fd00:0:0:5::9", 0, Some(6)),
        ("2001:db8::1", 0, Some(5)),
        ("fe80::9", 2, Some(3)),
        ("fe80::9", 5, Some(4)),
        ("fe80::9", 7, None),
        ("fe80::9", 0, None),
    ] {
        assert_eq!(source(&table, remote, scope), expected, "{remote} {scope}");
    }
    // No global address of the family: a link-local one leads nowhere else.
    let without = [table[0], table[3]];
    assert_eq!(source(&without, "fd00::9", 0), None);
    assert_eq!(source(&without, "::1", 0), None);
    assert_eq!(source(&without[1..], "10.7.0.9", 0), None);
    assert_eq!(source(&[], "10.7.0.9", 0), None);
}

#[test]
fn only_fe80_is_link_local() {
    for (text, expected) in [
        ("fe80::1", true),
        ("febf::1", true),
        ("fec0::1", false),
        ("fe00::1", false),
        ("169.254.0.1", false),
    ] {
        assert_eq!(is_link_local(ip(text)), expected, "{text}");
    }
}

fn any_address() -> impl Strategy<Value = LocalAddress> {
    let ip = prop_oneof![
        (0..3_u8, 0..3_u8).prop_map(|(net, host)| IpAddr::from([10, net, 0, host])),
        (0..3_u16, 0..3_u16, any::<bool>()).prop_map(|(net, host, local)| {
            let head = if local { 0xfe80 } else { 0xfd00 };
            IpAddr::from([head, 0, 0, net, 0, 0, 0, host])
        }),
    ];
    (ip, 2..4_u32, prop_oneof![Just(16_u32), Just(24), Just(32)]).prop_map(
        |(ip, ifindex, prefix)| LocalAddress {
            ip,
            ifindex,
            prefix: if ip.is_ipv4() { prefix } else { prefix * 2 },
            is_upper: ifindex != 2,
        },
    )
}

proptest! {
    /// The source is of the peer's family and kind, and none is in a network that fits better.
    #[test]
    fn the_source_reaches_the_peer(
        table in prop::collection::vec(any_address(), 0..8),
        peer in any_address(),
    ) {
        let usable = |address: &LocalAddress| {
            address.ip.is_ipv4() == peer.ip.is_ipv4()
                && is_link_local(address.ip) == is_link_local(peer.ip)
                && (!is_link_local(peer.ip) || address.ifindex == peer.ifindex)
        };
        let bits = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => u128::from(u32::from(ip)) << 96,
            IpAddr::V6(ip) => u128::from(ip),
        };
        let network = |address: &LocalAddress| {
            let shift = 128 - address.prefix;
            let same = bits(address.ip) >> shift == bits(peer.ip) >> shift;
            if same { address.prefix } else { 0 }
        };
        let found = source_address(table.iter().copied(), peer.ip, peer.ifindex);
        prop_assert_eq!(found.is_some(), table.iter().any(usable));
        if let Some(found) = found {
            prop_assert!(usable(&table[found]));
            let best = table.iter().filter(|address| usable(address)).map(network).max();
            prop_assert_eq!(Some(network(&table[found])), best);
        }
    }

    #[test]
    fn a_name_is_put_together_again(subject in "[a-z0-9_.:]{1,20}", port in prop::option::of(any::<u32>()),
                                    location in prop::option::of("[a-z0-9_.:%]{1,20}")) {
        let mut text = subject.clone();
        if let Some(port) = port {
            text += &format!("/{port}");
        }
        if let Some(location) = &location {
            text += &format!("@{location}");
        }
        let name = AdapterName::parse(text.as_bytes()).expect("a name");
        prop_assert_eq!(name.subject, subject.as_bytes());
        prop_assert_eq!(name.port, port);
        prop_assert_eq!(name.location, location.as_deref().map(str::as_bytes));
    }
}
