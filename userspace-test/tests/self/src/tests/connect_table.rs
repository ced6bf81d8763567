// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Refusals of `dat_ep_connect` by the table that all interfaces share, `connect_refusals.h`.
//! Kernel consumers and uDAPL programs read the same file.

use super::address_loss::RemovedAddress;
use super::connect_routes::Route;
use super::ep_stage::{no_way, ROWS};
use super::kernel::run_with;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{refused_as, same};
use crate::harness::skip;
use crate::hosts::Host;
use crate::plain::Plain;
use crate::raw;
use crate::rust::model::ep::{AcceptFrom, Phase};
use crate::udapl::{possible, Program, Provider};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{EpState, Subtype, Type};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

tests! {
    #[Transport]
    arguments, 30, "Each connect with a wrong argument gets the code of the table that all consumers share";
    #[Transport]
    handles, 30, "Each connect with a wrong handle gets the code of the table that all consumers share";
    #[Hosts]
    states, 240, "Each connect in a wrong state gets the code of the table that all consumers share";
    #[Address, Transport]
    routes, 60, "Each connect without a way to the address gets the code of the table that all consumers share";
    #[Address, Transport]
    routes_of_kernel, 120, "In the kernel, each connect without a way to the address gets the code of the table";
    #[Address, Transport]
    routes_of_libkdat, 120, "libkdat: each connect without a way to the address gets the code of the table";
    accepting_in_kernel, 60, "In the kernel, a connect of an endpoint that accepts gets the code of the table";
    #[Udapl]
    routes_of_udapl, 120, "uDAPL: each connect without a way to the address gets the code of the table";
    #[Udapl]
    accepting_of_udapl, 60, "uDAPL: a connect of an Endpoint that accepts gets the code of the table";
}

const TABLE: &str = include_str!("../../../connect_refusals.h");

/// A row of the table.
struct Row {
    words: Vec<&'static str>,
    kind: Type,
    subtype: Subtype,
}

impl Row {
    fn number(&self, word: usize) -> Result<u64> {
        number(self.words.get(word).context("a short row")?)
    }

    fn refused(&self, outcome: libkdapl::Result<()>) -> Result<()> {
        refused_as(outcome, self.kind, self.subtype)
            .with_context(|| format!("row {}", self.words.join(", ")))
    }
}

fn number(text: &str) -> Result<u64> {
    Ok(match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16)?,
        None => text.parse()?,
    })
}

/// Returns the rows of one macro, which have `words` arguments before the code.
fn rows(name: &str, words: usize) -> Result<Vec<Row>> {
    let start = format!("{name}(");
    let mut rows = Vec::new();
    for row in TABLE.lines().filter_map(|line| line.strip_prefix(start.as_str())) {
        let (row, _) = row.split_once(')').context("a row without its end")?;
        let mut words_of_row: Vec<_> = row.split(',').map(str::trim).collect();
        let code = words_of_row.split_off(words);
        let [kind, subtype] = code[..] else { bail!("{row}: not a type and a subtype at the end") };
        let (kind, subtype) = (Type(number(kind)? as u16), Subtype(number(subtype)? as u16));
        rows.push(Row { words: words_of_row, kind, subtype });
    }
    ensure!(!rows.is_empty(), "the table has no {name}");
    Ok(rows)
}

/// Returns the address that an `ADDRESS` names.
fn named_address(word: &str, is_v4: bool) -> Result<IpAddr> {
    let start = format!("ADDRESS({word}, ");
    let row = TABLE.lines().find_map(|line| line.strip_prefix(start.as_str()));
    let row = row.with_context(|| format!("{word} is no address"))?;
    let text = row.split('"').nth(if is_v4 { 1 } else { 3 });
    Ok(text.context("a row without its addresses")?.parse()?)
}

/// Returns the address that the word of a row stands for.
fn address(context: &Context, word: &str) -> Result<kdapl_sockaddr> {
    let right: kdapl_sockaddr = context.server_address().into();
    let family = match (word, context.server_address().is_ipv4()) {
        ("RIGHT", _) => return Ok(right),
        ("NONE", _) => return Ok(kdapl_sockaddr::default()),
        ("OTHER", true) => libc::AF_INET6,
        ("OTHER", false) => libc::AF_INET,
        ("UNKNOWN", _) => libc::AF_UNIX,
        (other, is_v4) => return Ok(named_address(other, is_v4)?.into()),
    };
    let mut other = kdapl_sockaddr::default();
    other.sa[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    Ok(other)
}

fn arguments(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let data = [0_u8; 600];
    for row in rows("REFUSAL", 6)? {
        let mut message = kdapl_ep_connect {
            handle: end.ep.handle().0,
            remote_address: address(context, row.words[0])?,
            conn_qual: row.number(1)?,
            timeout_ns: row.number(2)? * 1000,
            private_data: data.as_ptr() as u64,
            private_data_size: row.number(3)? as u32,
            qos: row.number(4)? as u32,
            flags: row.number(5)? as u32,
            ..Default::default()
        };
        row.refused(raw::call(end.ia.device(), call::EP_CONNECT, &mut message))?;
        same("state", end.ep.status()?.state, EpState::Unconnected)?;
    }
    Ok(())
}

fn handles(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let listener = Listener::new(context, &end.ia)?;
    let freed = end.another_ep()?;
    freed.free()?;
    for row in rows("HANDLE", 1)? {
        let handle = match row.words[0] {
            "NONE" => 0,
            "FREED" => freed.handle().0,
            "PZ" => end.pz.handle().0,
            "EVD" => end.recv.handle().0,
            "LMR" => end.lmr.handle().0,
            "PSP" => listener.psp.handle().0,
            "INVENTED" => u64::MAX,
            other => bail!("{other} is no handle"),
        };
        let mut message = kdapl_ep_connect {
            handle,
            remote_address: context.server_address().into(),
            conn_qual: context.port(),
            timeout_ns: 1_000_000_000,
            ..Default::default()
        };
        row.refused(raw::call(end.ia.device(), call::EP_CONNECT, &mut message))?;
    }
    Ok(())
}

/// Tries every way to every state.
fn states(context: &Context) -> Result<()> {
    let rows = rows("STATE", 1)?;
    let mut tried = HashSet::new();
    for stage in &ROWS {
        let state = stage.name.split(',').next().unwrap_or_default();
        if state == "UNCONNECTED" {
            continue;
        }
        let row = rows.iter().find(|row| row.words[0] == state);
        let row = row.with_context(|| format!("the table has no state {state}"))?;
        tried.insert(state);
        if no_way(context, stage.phase).is_some() {
            continue;
        }
        let end = (stage.way)(context)?;
        let before = end.state()?;
        let patience = Some(context.patience());
        row.refused(end.end.ep.connect(end.host.address, context.port(), patience, &[]))?;
        same("state", end.state()?, before).context(stage.name)?;
    }
    same("states of the table", rows.iter().map(|row| row.words[0]).collect(), tried)
}

/// A way to a peer that was removed. It is restored when dropped.
enum Removed<'a> {
    Address { _gone: RemovedAddress<'a> },
    Route { _route: Route<'a> },
    Never,
}

/// Returns the address that has no way in this row, and the way to remove it.
fn unreachable(context: &Context, row: &Row) -> Result<Option<IpAddr>> {
    Ok(match row.words[0] {
        "GONE" => Some(context.client.nobody()),
        // The kernel takes such an address to be on the link.
        _ if context.client.address.is_ipv4() => None,
        _ => Some(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5).into()),
    })
}

fn remove<'a>(host: &'a Host, row: &Row, to: IpAddr) -> Result<Removed<'a>> {
    Ok(match row.words[0] {
        "GONE" => Removed::Address { _gone: RemovedAddress::new(host)? },
        "ABSENT" => Removed::Never,
        kind => Removed::Route { _route: Route::new(host, kind, to)? },
    })
}

/// Tries each row whose way can be removed here.
fn each_route(context: &Context, try_row: impl Fn(&Row, IpAddr) -> Result<()>) -> Result<()> {
    for row in rows("ROUTE", 1)? {
        if let Some(to) = unreachable(context, &row)? {
            try_row(&row, to).with_context(|| format!("row {}", row.words[0]))?;
        }
    }
    Ok(())
}

fn routes(context: &Context) -> Result<()> {
    each_route(context, |row, to| {
        let end = End::new(&context.open()?, Shape::default())?;
        let _removed = remove(&context.client, row, to)?;
        row.refused(end.ep.connect(to, context.port(), Some(context.patience()), &[]))?;
        same("state", end.ep.status()?.state, EpState::Unconnected)
    })
}

fn routes_of_kernel(context: &Context) -> Result<()> {
    each_route(context, |row, to| {
        let parameters = format!("way={} peer={to}", row.words[0]);
        let mut removed = Removed::Never;
        run_with(context, "connect_route", &parameters, |loaded| {
            removed = remove(&context.client, row, to)?;
            loaded.set("stage", 2)
        })
    })
}

fn routes_over(context: &Context, provider: Provider) -> Result<()> {
    let adapter = provider.adapter(&context.client);
    each_route(context, |row, to| {
        let line = format!("udapl-consumer route {adapter} {} {to}", row.words[0]);
        let mut program = Program::start(&context.client, provider, &line)?;
        program.says(context, "ready")?;
        let _removed = remove(&context.client, row, to)?;
        program.resume()?;
        program.succeeds(context.patience() * 2)
    })
}

fn routes_of_libkdat(context: &Context) -> Result<()> {
    routes_over(context, Provider::Libkdat)
}

fn routes_of_udapl(context: &Context) -> Result<()> {
    possible(context)?;
    routes_over(context, Provider::Ours)
}

/// Starts a client that never confirms.
fn silent_client(context: &Context, port: u64) -> Result<Plain> {
    Plain::connect(context, port, &["--never-confirm"])
}

fn can_accept(context: &Context) -> Result<()> {
    match no_way(context, Phase::Accepting(AcceptFrom::Unconnected)) {
        Some(why) => skip(why),
        None => Ok(()),
    }
}

fn accepting_in_kernel(context: &Context) -> Result<()> {
    can_accept(context)?;
    let port = context.port();
    let mut client = None;
    run_with(context, "connect_while_accepting", &format!("port={port}"), |_| {
        client = Some(silent_client(context, port)?);
        Ok(())
    })
}

fn accepting_of_udapl(context: &Context) -> Result<()> {
    possible(context)?;
    let provider = Provider::Ours;
    let line = format!("udapl-consumer accepting {}", provider.adapter(&context.server));
    let mut program = Program::start(&context.server, provider, &line)?;
    program.says(context, ".\n")?;
    let output = program.output();
    let port = output.trim().trim_end_matches('.').strip_prefix("listening at ");
    let _client = silent_client(context, port.context("no port")?.parse()?)?;
    program.succeeds(context.patience() * 2)
}
