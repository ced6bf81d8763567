// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Consumer Notification Objects, service points of each kind, queries, and the ready gate.

use crate::{
    address,
    calls::completion,
    conn_qual,
    connect_here,
    ensure,
    open,
    streams,
    PATIENCE_US, //
};
use core::net::SocketAddr;
use kdat::{
    Close,
    Connection,
    Cr,
    Dto,
    Ep,
    EpState,
    Evd,
    Evds,
    Event,
    Origin,
    Pz,
    Streams, //
};
use kernel::prelude::*;

/// Takes the next event, which must be this one of an Endpoint.
fn connection(evd: &Evd, ep: &Ep, expected: Connection) -> Result {
    match evd.wait(Some(PATIENCE_US))? {
        Event::Connection(id, got) => {
            ensure(got == expected && id == ep.id(), "the event is the expected one")
        }
        _ => Err(EIO),
    }
}

/// Takes the next event, which must be a request.
fn request(evd: &Evd) -> Result<Cr> {
    match evd.wait(Some(PATIENCE_US))? {
        Event::Request(request) => Ok(request),
        _ => Err(EIO),
    }
}

fn state(ep: &Ep, expected: EpState) -> Result {
    ensure(ep.status()?.state == expected, "the state is the expected one")
}

/// A CNO tells which dispatcher has an event.
pub(crate) fn notified(_: u32) -> Result {
    let ia = open()?;
    let (one, two) = (ia.create_evd(Streams::SOFTWARE, 8)?, ia.create_evd(Streams::SOFTWARE, 8)?);
    let cno = ia.create_cno()?;
    one.set_cno(Some(&cno))?;
    two.set_cno(Some(&cno))?;
    ensure(cno.poll()?.is_none(), "there is no trigger yet")?;
    for evd in [&two, &one] {
        evd.post(5)?;
        ensure(cno.wait(Some(PATIENCE_US))? == Some(evd.id()), "the trigger names its dispatcher")?;
        ensure(matches!(evd.dequeue()?, Event::Software(5)), "the event is there")?;
    }
    cno.trigger()?;
    ensure(cno.wait(Some(PATIENCE_US))?.is_none(), "a trigger without a dispatcher names none")?;
    two.set_cno(None)?;
    two.post(6)?;
    ensure(cno.poll()?.is_none(), "a dispatcher without a CNO triggers none")?;
    one.set_cno(None)?;
    let before = one.qlen()?;
    one.resize(before + 1)?;
    ensure(one.qlen()? > before, "the queue is longer")
}

/// Two unconnected Endpoints.
fn endpoints(pz: &Pz, evds: [&Evd; 2]) -> Result<[Ep; 2]> {
    let make = |evd| pz.create_ep(Evds::from(evd), None);
    Ok([make(evds[0])?, make(evds[1])?])
}

/// Accepts the request of the first Endpoint with the second.
fn accepted(eps: &[Ep; 2], evds: [&Evd; 2]) -> Result {
    request(evds[1])?.accept(&eps[1], &[])?;
    for (ep, evd) in eps.iter().zip(evds) {
        connection(evd, ep, Connection::Established)?;
        state(ep, EpState::Connected)?;
    }
    Ok(())
}

/// An RSP, a CSP and a PSP at a free qualifier take a request each.
pub(crate) fn points(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let (one, two) = (ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?);
    let evds = [&one, &two];
    let eps = endpoints(&pz, evds)?;
    let rsp = ia.reserve(conn_qual(), &eps[1], &two)?;
    state(&eps[1], EpState::Reserved)?;
    connect_here(&eps[0], &[])?;
    accepted(&eps, evds)?;
    drop(rsp);
    let [local, remote] = eps[0].addresses()?;
    let here = Some(address());
    ensure(local.map(|local| local.ip()) == here, "the local address is the adapter's")?;
    ensure(remote.map(|remote| remote.ip()) == here, "so is that of the peer")?;
    ensure(eps[0].attr()?.max_recv_dtos > 0, "the Endpoint has receives")?;

    let others = endpoints(&pz, evds)?;
    let csp = ia.listen_at(&SocketAddr::new(address(), 0).into(), &two)?;
    let at = csp.address()?;
    ensure(at.ip() == address() && at.port() != 0, "the CSP has a port")?;
    others[0].common_connect(&at.into(), PATIENCE_US, &[])?;
    accepted(&others, evds)?;
    drop(csp);

    let more = endpoints(&pz, evds)?;
    let (_psp, free) = ia.listen_any(&two)?;
    more[0].connect(&address().into(), free, PATIENCE_US, &[])?;
    accepted(&more, evds)
}

/// Events wait until an Endpoint with a closed gate is ready.
pub(crate) fn gated(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let (one, two) = (ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?);
    let eps = endpoints(&pz, [&one, &two])?;
    let _psp = ia.listen(conn_qual(), &two)?;
    ensure(eps[0].ready().is_err(), "an unconnected Endpoint is not ready")?;
    eps[1].post(Dto::receive(pz.buffer(4)?))?;
    eps[0].connect_gated(&address().into(), conn_qual(), PATIENCE_US, &[])?;
    request(&two)?.accept_gated(&eps[1], &[])?;
    ensure(one.wait(Some(50_000)).is_err(), "the first side waits")?;
    eps[0].ready()?;
    connection(&one, &eps[0], Connection::Established)?;
    let mut message = pz.buffer(4)?;
    message.copy_from_slice(b"gate");
    eps[0].post(Dto::send(message, 4))?;
    completion(&one)?;
    ensure(two.wait(Some(50_000)).is_err(), "the second side waits")?;
    state(&eps[1], EpState::CompletionPending)?;
    eps[1].ready()?;
    connection(&two, &eps[1], Connection::Established)?;
    let got = completion(&two)?.buffer.ok_or(EIO)?;
    ensure(got[..] == *b"gate", "the message follows")?;
    eps[1].ready()?;
    eps[0].disconnect(Close::Graceful)?;
    connection(&one, &eps[0], Connection::Disconnected)?;
    ensure(eps[0].ready().is_err(), "a disconnected Endpoint is not ready")
}

/// A request goes from one service point to another, and to no process.
pub(crate) fn handed_off(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let (one, two) = (ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?);
    let evds = [&one, &two];
    let _psp = ia.listen(conn_qual(), &two)?;
    let other = conn_qual() + (1 << 40);
    let _other = ia.listen_for(other, &two, Origin::NetworkAndProcesses)?;
    let eps = endpoints(&pz, evds)?;
    connect_here(&eps[0], &[])?;
    request(&two)?.hand_off(other)?;
    let handed = request(&two)?;
    ensure(handed.conn_qual() == other, "the request is at the other service point")?;
    handed.accept(&eps[1], &[])?;
    for (ep, evd) in eps.iter().zip(evds) {
        connection(evd, ep, Connection::Established)?;
    }
    // No adapter was opened by this user.
    let late = endpoints(&pz, evds)?;
    connect_here(&late[0], &[])?;
    let refused = request(&two)?.hand_off_to_user(other, 54_321);
    let is_violation = |error: kdat::Error| error.kind() == kdat::kind::PRIVILEGES_VIOLATION;
    ensure(refused.is_err_and(is_violation), "the other user does not listen")
}

/// Frees that are refused leave their object, which is freed once, when it is not in use.
pub(crate) fn freed(_: u32) -> Result {
    let is = |ended: kdat::Result, kind: u32| ended.is_err_and(|error| error.kind() == kind);
    let ia = open()?;
    let pz = ia.create_pz()?;
    let evd = ia.create_evd(streams(), 64)?;
    let ep = pz.create_ep(Evds::from(&evd), None)?;
    ep.post(Dto::receive(pz.buffer(4)?))?;
    let rsp = ia.reserve(conn_qual(), &ep, &evd)?;
    ensure(is(ep.free(), kdat::kind::INVALID_STATE), "the RSP uses the Endpoint")?;
    state(&ep, EpState::Reserved)?;
    ensure(is(evd.free(), kdat::kind::INVALID_STATE), "the Endpoint uses the dispatcher")?;
    drop(rsp);
    ensure(is(evd.free(), kdat::kind::INVALID_STATE), "the Endpoint still does")?;
    ep.free()?;
    ensure(is(ep.free(), kdat::kind::INVALID_HANDLE), "the Endpoint is freed once")?;
    let Err(late) = ep.post(Dto::receive(pz.buffer(4)?)) else {
        return ensure(false, "a freed Endpoint takes no receive");
    };
    ensure(late.buffer.is_some(), "the buffer is back")?;
    evd.free()?;
    ensure(is(evd.free(), kdat::kind::INVALID_HANDLE), "the dispatcher is freed once")?;
    let of_adapter = ia.async_evd().clone();
    ensure(is(of_adapter.free(), kdat::kind::INVALID_STATE), "the adapter has its dispatcher")?;
    drop(ia);
    ensure(is(of_adapter.free(), kdat::kind::INVALID_HANDLE), "the adapter is closed")
}
