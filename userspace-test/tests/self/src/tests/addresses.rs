// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ports and addresses: names of IAs, secondary addresses, IPv6 and VLANs.

pub mod scene;

use self::scene::{both, list, network, open, ports, reach, unheard, Second, Vlan};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, refused_as, same};
use crate::harness::skip;
use crate::hosts::ASYNC_QLEN;
use crate::raw;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::{call, Device};
use libkdapl::sys::kdapl_port;
use libkdapl::{ConnectionEvent, Ia, PortAddress, Subtype, Type};

tests! {
    #![Address]
    ports_are_listed, 30, "The list of a device's ports has each address of its network device, and no other";
    names, 60, "An IA opens by device, port, network device or address, and has the address that the name means";
    unknown_places, 30, "A name with a port, network device or address that is not there is refused";
    every_address_is_reachable, 120, "A service point is reached at each address of its port, from a suitable address of the client";
    chosen_address_only, 60, "A service point of an IA that was opened at an address is reached at that address only";
    chosen_address_connects, 60, "A connect leaves from the address at which the IA was opened";
    qualifier_taken_at_one_address, 60, "A qualifier that is taken at one address of an IA is in use, and any other is chosen by the kernel";
    wide_qualifier_everywhere, 120, "A wide qualifier is reached at each address, and a request is handed off at its address only";
    csp_at_second_address, 60, "A CSP listens at a secondary address, and not at one that the IA's name excludes";
    address_comes_back, 120, "A secondary address that is removed and added again is reached again";
    vlan, 120, "A VLAN of the port's network device is listed, and reached at its addresses";
}

fn ports_are_listed(context: &Context) -> Result<()> {
    let host = &context.client;
    let ports = ports(host)?;
    let [port] = &ports[..] else { anyhow::bail!("not one port: {ports:?}") };
    same("number", port.number, 1)?;
    ensure!(port.active && port.max_message_size >= 4096, "{port:?}");
    same("network device", &port.netdev, &host.netdev)?;
    let before = &port.addresses;
    ensure!(before.iter().any(|at| at.address == host.address), "{before:?}");
    ensure!(before.iter().all(|at| at.netdev == host.netdev), "{before:?}");
    {
        let second = Second::new(context, host, &host.netdev, 1, 1)?;
        let more = list(host)?;
        same("addresses", more.len(), before.len() + 2)?;
        for (address, prefix) in second.addresses.into_iter().zip([24, 64]) {
            let netdev = host.netdev.clone();
            ensure!(more.contains(&PortAddress { address, prefix, netdev }), "{more:?}");
        }
    }
    context.until("the addresses are gone", || Ok(&list(host)? == before))?;
    let device = Device::open()?;
    for (device_index, port) in [(0, 0), (0, 2), (0, u32::MAX), (1000, 1), (u32::MAX, 1)] {
        let mut message = kdapl_port { device: device_index, port, ..Default::default() };
        let outcome = raw::call(&device, call::PORT_GET, &mut message);
        refused_as(outcome, Type::PROVIDER_NOT_FOUND, Subtype::NAME_NOT_REGISTERED)?;
    }
    Ok(())
}

fn names(context: &Context) -> Result<()> {
    let host = &context.client;
    let second = Second::new(context, host, &host.netdev, 1, 1)?;
    let [v4, v6] = second.addresses;
    let (device, netdev) = (&host.device, &host.netdev);
    // IPv4 comes first.
    let own = if host.address.is_ipv4() { host.address } else { v4 };
    let mut cases = vec![
        (device.clone(), own),
        (format!("{device}/1"), own),
        (netdev.clone(), own),
        (format!("{netdev}/1"), own),
        (format!("{device}@{netdev}"), own),
        (format!("{device}/1@{netdev}"), own),
        (host.address.to_string(), host.address),
    ];
    for address in [v4, v6] {
        cases.push((address.to_string(), address));
        cases.push((format!("{address}/1"), address));
        cases.push((format!("{device}@{address}"), address));
        cases.push((format!("{device}/1@{address}"), address));
        cases.push((format!("{netdev}@{address}"), address));
    }
    let link_local = list(host)?;
    for at in link_local.iter().filter(|at| at.to_string().contains('%')) {
        cases.push((at.to_string(), at.address));
        cases.push((format!("{device}@{at}"), at.address));
    }
    for (name, address) in cases {
        let query = open(host, &name)?.query()?;
        same(&name, query.address.map(|found| found.ip()), Some(address))?;
        same(&name, (&query.adapter_name, &query.netdev_name), (device, netdev))?;
        same(&name, query.port, 1)?;
    }
    Ok(())
}

fn unknown_places(context: &Context) -> Result<()> {
    let host = &context.client;
    let (device, netdev) = (&host.device, &host.netdev);
    let refused = |name: &str, kind, subtype| {
        let outcome = host.inside(|| Ia::open(name, ASYNC_QLEN))?;
        refused_as(outcome, kind, subtype).with_context(|| format!("'{name}'"))
    };
    for name in [
        format!("{device}/0"),
        format!("{device}/2"),
        format!("{netdev}/2"),
        format!("{device}/"),
        format!("{device}/x"),
        format!("{device}@"),
        format!("@{netdev}"),
        "10.8.77.1".into(),
        "fd0a:8:77::1".into(),
        "lo".into(),
        "127.0.0.1".into(),
        format!("{}/2", host.address),
    ] {
        refused(&name, Type::PROVIDER_NOT_FOUND, Subtype::NAME_NOT_REGISTERED)?;
    }
    for place in ["10.8.77.1", "lo", "127.0.0.1", "nosuch0", "fe80::1%lo"] {
        let name = format!("{device}@{place}");
        refused(&name, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_UNSUPPORTED)?;
    }
    Ok(())
}

fn every_address_is_reachable(context: &Context) -> Result<()> {
    let both = both(context)?;
    let (client, server) = context.open_both()?;
    let listener = Listener::new(context, &server)?;
    let addresses = list(&context.server)?;
    ensure!(addresses.len() >= 3, "{addresses:?}");
    for at in addresses.iter().filter(|at| !at.to_string().contains('%')) {
        let from = reach(context, &client, &listener, &server, at.address)
            .with_context(|| at.to_string())?;
        let own = list(&context.client)?;
        let from = own.iter().find(|own| own.address == from).context("not the client's")?;
        println!("{from} -> {at}");
        ensure!(
            network(from.address, from.prefix) == network(at.address, at.prefix),
            "another network"
        );
    }
    drop(both);
    Ok(())
}

fn chosen_address_only(context: &Context) -> Result<()> {
    let both = both(context)?;
    let [v4, v6] = both.server.addresses;
    let client = context.open()?;
    for (chosen, other) in [(v4, v6), (v6, v4)] {
        let server = open(&context.server, &format!("{}@{chosen}", context.server.device))?;
        let listener = Listener::new(context, &server)?;
        for elsewhere in [other, context.server.address] {
            unheard(context, &client, listener.port, elsewhere)
                .with_context(|| format!("{elsewhere} of {chosen}"))?;
        }
        reach(context, &client, &listener, &server, chosen)?;
    }
    Ok(())
}

fn chosen_address_connects(context: &Context) -> Result<()> {
    let both = both(context)?;
    let server = context.open_server()?;
    let listener = Listener::new(context, &server)?;
    let own = match &both.client {
        Some(client) => client.addresses,
        None => both.server.addresses,
    };
    for (from, to) in own.into_iter().zip(both.server.addresses) {
        let client = open(&context.client, &from.to_string())?;
        same("local address", reach(context, &client, &listener, &server, to)?, from)?;
        // The address has one family.
        let end = End::new(&client, Shape::default())?;
        for other in both.server.addresses.iter().filter(|other| other.is_ipv4() != to.is_ipv4()) {
            let outcome = end.ep.connect(*other, listener.port, Some(context.patience()), &[]);
            refused_as(outcome, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_UNSUPPORTED)?;
        }
    }
    Ok(())
}

fn qualifier_taken_at_one_address(context: &Context) -> Result<()> {
    let both = both(context)?;
    let [v4, v6] = both.server.addresses;
    let everywhere = context.open_server()?;
    let (one, two) =
        (open(&context.server, &v4.to_string())?, open(&context.server, &v6.to_string())?);
    let first = Listener::new(context, &one)?;
    let evd = everywhere.create_evd(libkdapl::EvdFlags::CR, 4)?;
    let in_use = |outcome| refused_as(outcome, Type::CONN_QUAL_IN_USE, Subtype::NO_SUBTYPE);
    in_use(everywhere.create_psp(first.port, &evd).map(drop))?;
    // Another address has the qualifier free.
    let second = Listener::on(&two, first.port)?;
    drop(first);
    in_use(everywhere.create_psp(second.port, &evd).map(drop))?;
    drop(second.psp.clone());
    second.psp.free()?;
    let psp = everywhere.create_psp(second.port, &evd)?;
    in_use(one.create_psp(second.port, &second_evd(&one)?).map(drop))?;
    psp.free()?;
    let any = everywhere.create_psp_with(&evd, &Default::default())?;
    in_use(one.create_psp(any.query()?.conn_qual, &second_evd(&one)?).map(drop))
}

fn second_evd(ia: &Ia) -> Result<libkdapl::Evd> {
    Ok(ia.create_evd(libkdapl::EvdFlags::CR, 4)?)
}

fn wide_qualifier_everywhere(context: &Context) -> Result<()> {
    let both = both(context)?;
    let [v4, v6] = both.server.addresses;
    let (client, server) = context.open_both()?;
    let wide = 0x1_0000_0000 + context.port();
    let listener = Listener::on(&server, wide)?;
    for address in [v4, v6, context.server.address] {
        reach(context, &client, &listener, &server, address)
            .with_context(|| address.to_string())?;
    }
    // A service point at one address gets requests for that address only.
    let chosen = open(&context.server, &v4.to_string())?;
    let target = Listener::on(&chosen, wide + 1)?;
    for (address, is_there) in [(v6, false), (v4, true)] {
        let end = End::new(&client, Shape::default())?;
        end.ep.connect(address, wide, Some(context.patience()), &[])?;
        let mut request = listener.request(context)?;
        let outcome = request.handoff(target.port);
        if is_there {
            outcome?;
            let peer = End::new(&chosen, Shape::default())?;
            target.request(context)?.accept(&peer.ep, &[])?;
            connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        } else {
            refused_as(outcome, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
            request.reject(&[])?;
        }
    }
    Ok(())
}

fn csp_at_second_address(context: &Context) -> Result<()> {
    let both = both(context)?;
    let [v4, v6] = both.server.addresses;
    let server = context.open_server()?;
    let evd = second_evd(&server)?;
    for address in [v4, v6] {
        let csp = server.create_csp(Some((address, 0).into()), &evd)?;
        same("address", csp.query()?.address.map(|at| at.ip()), Some(address))?;
    }
    let chosen = open(&context.server, &v4.to_string())?;
    let evd = second_evd(&chosen)?;
    for excluded in [v6, context.server.address] {
        let outcome = chosen.create_csp(Some((excluded, 0).into()), &evd);
        refused_as(outcome.map(drop), Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_UNSUPPORTED)?;
    }
    chosen.create_csp(Some((v4, 0).into()), &evd)?;
    Ok(())
}

fn address_comes_back(context: &Context) -> Result<()> {
    let both = both(context)?;
    let (client, server) = context.open_both()?;
    let listener = Listener::new(context, &server)?;
    for address in both.server.addresses {
        reach(context, &client, &listener, &server, address)?;
    }
    both.server.change("del")?;
    context.until("the addresses are gone", || {
        let listed = list(&context.server)?;
        Ok(!listed.iter().any(|at| both.server.addresses.contains(&at.address)))
    })?;
    // A new service point does without them.
    let other = Listener::new(context, &server)?;
    reach(context, &client, &other, &server, context.server.address)?;
    both.server.change("add")?;
    context.until("the addresses are back", || {
        let listed = list(&context.server)?;
        Ok(both.server.addresses.iter().all(|back| listed.iter().any(|at| at.address == *back)))
    })?;
    for address in both.server.addresses {
        reach(context, &client, &listener, &server, address)
            .with_context(|| format!("{address} is back"))?;
    }
    Ok(())
}

fn vlan(context: &Context) -> Result<()> {
    let (client, server) = (&context.client, &context.server);
    let Some(there) = Vlan::new(server)? else {
        return skip("this kernel has no VLANs (CONFIG_VLAN_8021Q)");
    };
    let is_one = client.namespace() == server.namespace();
    let here = if is_one { None } else { Vlan::new(client)? };
    let second = Second::new(context, server, &there.1, 2, 1)?;
    let _own = match &here {
        Some(here) => Some(Second::new(context, client, &here.1, 2, 2)?),
        None => None,
    };
    let listed = list(server)?;
    for address in second.addresses {
        let at = listed.iter().find(|at| at.address == address).context("not listed")?;
        same("network device", &at.netdev, &there.1)?;
    }
    let (ia, everywhere) = context.open_both()?;
    let listener = Listener::new(context, &everywhere)?;
    for address in second.addresses.into_iter().chain([server.address]) {
        reach(context, &ia, &listener, &everywhere, address)
            .with_context(|| address.to_string())?;
    }
    drop(listener);
    // By the name of the VLAN, the addresses of the VLAN only.
    let chosen = open(server, &there.1)?;
    let query = chosen.query()?;
    same("network device", &query.netdev_name, &there.1)?;
    same("address", query.address.map(|at| at.ip()), Some(second.addresses[0]))?;
    let listener = Listener::new(context, &chosen)?;
    for address in second.addresses {
        reach(context, &ia, &listener, &chosen, address)?;
    }
    unheard(context, &ia, listener.port, server.address)
}
