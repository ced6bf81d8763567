// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Rows of calls on endpoints, service points and requests.

use super::{rows, Row};
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::connection;
use anyhow::{bail, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, Cr, Csp, Dto, Ep, EpChange, EpConfig, Error, Evd,
    EvdFlags, Event, Privileges, PspOptions, Rmr, RmrBinding, Rsp, Segment, Subtype, Wait,
};
use std::net::{IpAddr, SocketAddr};

pub const ROWS: &[Row] = rows! {
    EP_CREATE "configured": alone, |end| {
        end.ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, None)
    };
    EP_CREATE "without EVDs": alone, |end| {
        end.ia.create_ep_with(&EpConfig { pz: Some(&end.pz), ..Default::default() })
    };
    EP_CREATE "unconfigured": alone, |end| end.ia.create_ep_with(&EpConfig::default());
    EP_FREE: alone, |end| end.ep.free();
    EP_QUERY: alone, |end| end.ep.query();
    EP_GET_STATUS: alone, |end| end.ep.status();
    EP_SET_WATERMARK: connected, |pair| pair.client.ep.set_watermarks(Some(3), None);
    EP_RECV_QUERY: connected, |pair| pair.client.ep.recv_query();
    EP_MODIFY "of its queue pair": alone, |end| {
        end.ep.modify(EpChange::new().max_recv_dtos(200).max_request_dtos(100))
    };
    EP_MODIFY "of its EVDs": alone, |end| {
        end.ep.modify(EpChange::new().recv(&end.request).request(&end.recv))
    };
    EP_RESET: disconnected, |end| end.ep.reset();
    EP_CONNECT: caller, |caller| caller.connect(caller.listener.port), reaches;
    EP_CONNECT "to a wide qualifier": caller, |caller| caller.connect(caller.wide.port), reaches;
    EP_COMMON_CONNECT: caller, |caller| caller.common_connect(), reaches;
    EP_DUP_CONNECT: other_caller, |(caller, pair)| {
        caller.dup_connect(&pair.client.ep, None, b"again", libkdapl::Qos::BestEffort)
    };
    EP_READY: connected, |pair| pair.client.ep.ready();
    EP_DISCONNECT "abrupt": connected, |pair| pair.client.ep.disconnect(Close::Abrupt);
    EP_DISCONNECT "graceful": connected, |pair| pair.client.ep.disconnect(Close::Graceful);
    EP_PRIVATE_DATA: connected, |pair| pair.client.ep.private_data();
    EP_POST "of a receive": alone, |end| {
        end.ep.post_recv(&[end.lmr.segment(0, 64)], 1, NO_FLAGS)
    };
    EP_POST "of a send": connected, |pair| {
        pair.client.ep.post_send(&[pair.client.lmr.segment(0, 64)], 1, NO_FLAGS)
    };
    EP_POST "of many segments": alone, |end| end.ep.post_recv(&segments(end), 1, NO_FLAGS);
    EP_POST "of a write": connected, |pair| {
        let remote = pair.server.lmr.remote_segment(0, 64);
        pair.client.ep.post_rdma_write(&[pair.client.lmr.segment(0, 64)], remote, 1, NO_FLAGS)
    };
    EP_POST "of a read": connected, |pair| {
        let remote = pair.server.lmr.remote_segment(0, 64);
        pair.client.ep.post_rdma_read(&[pair.client.lmr.segment(0, 64)], remote, 1, NO_FLAGS)
    };
    EP_POST "of a send that invalidates": connected, |pair| {
        let segment = [pair.client.lmr.segment(0, 64)];
        pair.client.ep.post_send_with_invalidate(&segment, 1, 1, NO_FLAGS)
    };
    EP_POST "of a read into an RMR": with_bound_rmr, |(local, (_rmr, pair))| {
        let remote = pair.server.lmr.remote_segment(0, 64);
        pair.client.ep.post_rdma_read_to_rmr(*local, remote, 1, NO_FLAGS)
    };
    RMR_BIND "to a part": with_rmr, |(rmr, pair)| {
        let end = &pair.client;
        let segment = end.lmr.segment(100, 10_000);
        let both = Privileges::REMOTE_READ | Privileges::REMOTE_WRITE;
        let part = RmrBinding { lmr: &end.lmr, segment, privileges: both };
        rmr.bind(&end.ep, &part, 1, NO_FLAGS)
    };
    RMR_BIND "to none": with_rmr, |(rmr, pair)| rmr.unbind(&pair.client.ep, 1, NO_FLAGS);
    EP_SUBMIT: connected, submit;
    PSP_CREATE "at a port": service, |service| {
        service.end.ia.create_psp(service.port, &service.evd)
    };
    PSP_CREATE "at any port": service, |service| {
        service.end.ia.create_psp_with(&service.evd, &PspOptions::default())
    };
    PSP_CREATE "wide": service, |service| {
        service.end.ia.create_psp(WIDE_QUALIFIER + service.port, &service.evd)
    };
    PSP_FREE: listening, |(listener, _)| listener.psp.free();
    PSP_QUERY: listening, |(listener, _)| listener.psp.query();
    RSP_CREATE: service, |service| {
        service.end.ia.create_rsp(service.port, &service.evd, Some(&service.end.ep))
    };
    RSP_CREATE "without an endpoint": service, |service| {
        service.end.ia.create_rsp(WIDE_QUALIFIER + service.port, &service.evd, None)
    };
    RSP_FREE: reserved, |(rsp, _)| rsp.free();
    RSP_QUERY: reserved, |(rsp, _)| rsp.query();
    CSP_CREATE: service, |service| service.end.ia.create_csp(None, &service.evd);
    CSP_FREE: common, |(csp, _)| csp.free();
    CSP_QUERY: common, |(csp, _)| csp.query();
    CR_QUERY: asked, |asked| asked.cr.query();
    CR_ACCEPT: asked, |asked| asked.cr.accept(&asked.server.ep, b"yes"), answered;
    CR_REJECT: asked, |asked| asked.cr.reject(b"no"), rejected;
    CR_HANDOFF: asked, |asked| asked.cr.handoff(asked.other.port), handed_off;
};

const NO_FLAGS: CompletionFlags = CompletionFlags(0);
/// Minimum of the qualifiers that are no ports.
const WIDE_QUALIFIER: u64 = 1 << 33;

fn alone(context: &Context) -> Result<End> {
    End::new(&context.open()?, Shape::default())
}

fn segments(end: &End) -> Vec<Segment> {
    (0..4).map(|i| end.lmr.segment(i * 64, 64)).collect()
}

fn disconnected(context: &Context) -> Result<End> {
    let end = alone(context)?;
    end.receive(0, 64, 1)?;
    end.ep.disconnect(Close::Abrupt)?;
    Ok(end)
}

/// Creates a connected pair, and an RMR at the client.
fn with_rmr(context: &Context) -> Result<(Rmr, Pair)> {
    let pair = connected(context)?;
    Ok((pair.client.ia.create_rmr(&pair.client.pz)?, pair))
}

fn with_bound_rmr(context: &Context) -> Result<(Segment, (Rmr, Pair))> {
    let (rmr, pair) = with_rmr(context)?;
    let end = &pair.client;
    let segment = end.lmr.segment(0, 64);
    let part = RmrBinding { lmr: &end.lmr, segment, privileges: Privileges::REMOTE_WRITE };
    let bound = rmr.bind(&end.ep, &part, 1, NO_FLAGS)?;
    context.next(&end.request)?;
    Ok((bound, (rmr, pair)))
}

fn connected(context: &Context) -> Result<Pair> {
    let pair = Pair::new(context, Shape::default())?;
    for end in [&pair.client, &pair.server] {
        (0..4).try_for_each(|cookie| end.receive(0, 4096, cookie))?;
    }
    Ok(pair)
}

fn other_caller(context: &Context) -> Result<(Ep, Pair)> {
    let pair = connected(context)?;
    Ok((pair.client.another_ep()?, pair))
}

/// Posts two DTOs, and waits for the completion of one.
fn submit(pair: &mut Pair) -> Result<(), Error> {
    let end = &pair.client;
    let (into, from) = ([end.lmr.segment(1024, 64)], [end.lmr.segment(0, 64)]);
    let dtos = [Dto::recv(&into, 7, NO_FLAGS), Dto::send(&from, 8, NO_FLAGS)];
    let wait = Wait { evd: &end.request, timeout: None, threshold: 1 };
    match end.ep.submit(&dtos, Some(wait)).event.map(drop) {
        // If the second DTO cannot be read, the code is INVALID_PARAMETER: an errno would hide the
        // first one, which is posted. The sweep expects EFAULT.
        Err(error) if error.subtype() == Some(Subtype::INVALID_ARG2) => {
            let source = std::io::Error::from_raw_os_error(libc::EFAULT);
            Err(Error::Transport { call: "submit", source })
        }
        other => other,
    }
}

/// Objects for a service point.
struct ServicePointParts {
    evd: Evd,
    port: u64,
    end: End,
}

fn service(context: &Context) -> Result<ServicePointParts> {
    let end = End::new(&context.open_server()?, Shape::default())?;
    Ok(ServicePointParts { evd: end.ia.create_evd(EvdFlags::CR, 8)?, port: context.port(), end })
}

fn listening(context: &Context) -> Result<(Listener, ServicePointParts)> {
    let service = service(context)?;
    Ok((Listener::new(context, &service.end.ia)?, service))
}

fn reserved(context: &Context) -> Result<(Rsp, ServicePointParts)> {
    let service = service(context)?;
    let rsp = service.end.ia.create_rsp(service.port, &service.evd, Some(&service.end.ep))?;
    Ok((rsp, service))
}

fn common(context: &Context) -> Result<(Csp, ServicePointParts)> {
    let service = service(context)?;
    Ok((service.end.ia.create_csp(None, &service.evd)?, service))
}

/// An endpoint that connects, and the listeners.
struct Caller {
    address: IpAddr,
    listener: Listener,
    wide: Listener,
    csp: (Csp, Evd),
    end: End,
}

fn caller(context: &Context) -> Result<Caller> {
    let server = context.open_server()?;
    let evd = server.create_evd(EvdFlags::CR, 8)?;
    Ok(Caller {
        address: context.server_address(),
        listener: Listener::new(context, &server)?,
        wide: Listener::on(&server, WIDE_QUALIFIER + context.port())?,
        csp: (server.create_csp(None, &evd)?, evd),
        end: alone(context)?,
    })
}

impl Caller {
    fn connect(&self, port: u64) -> Result<(), Error> {
        self.end.ep.connect(self.address, port, None, b"hello")
    }

    fn common_connect(&self) -> Result<(), Error> {
        let port = self.csp.0.address().map_or(0, |address| address.port());
        self.end.ep.common_connect(SocketAddr::new(self.address, port), None, b"hello")
    }
}

/// Waits for the request. If there was a failure, an event may arrive instead.
fn reaches(context: &Context, caller: &mut Caller, _: (), failed: bool) -> Result<()> {
    let queues = [&caller.listener.evd, &caller.wide.evd, &caller.csp.1];
    context.until("the request arrives", || {
        for evd in queues {
            if evd.query()?.queued > 0 {
                return Ok(true);
            }
        }
        Ok(failed && caller.end.connect.query()?.queued > 0)
    })
}

/// A request that waits for an answer.
struct PendingRequest {
    cr: Cr,
    other: Listener,
    _listener: Listener,
    client: End,
    server: End,
}

fn asked(context: &Context) -> Result<PendingRequest> {
    let (client, server) = context.open_both()?;
    let (listener, other) = (Listener::new(context, &server)?, Listener::new(context, &server)?);
    let client = End::new(&client, Shape::default())?;
    let server = End::new(&server, Shape::default())?;
    let patience = Some(context.patience());
    client.ep.connect(context.server_address(), listener.port, patience, b"hello")?;
    Ok(PendingRequest {
        cr: listener.request(context)?,
        other,
        _listener: listener,
        client,
        server,
    })
}

/// Waits for the connection. If there was a failure, it may be an event of failure.
fn answered(context: &Context, asked: &mut PendingRequest, _: (), failed: bool) -> Result<()> {
    let event = context.next(&asked.server.connect)?;
    if failed && connection(&event, ConnectionEvent::AcceptCompletionError).is_ok() {
        return Ok(());
    }
    connection(&event, ConnectionEvent::Established)?;
    connection(&context.next(&asked.client.connect)?, ConnectionEvent::Established)
}

fn rejected(context: &Context, asked: &mut PendingRequest, _: (), failed: bool) -> Result<()> {
    if failed {
        // Without memory, the peer may not be notified: its own time-out ends the attempt.
        return Ok(());
    }
    connection(&context.next(&asked.client.connect)?, ConnectionEvent::PeerRejected)
}

fn handed_off(context: &Context, asked: &mut PendingRequest, _: (), _: bool) -> Result<()> {
    match context.next(&asked.other.evd)? {
        Event::ConnectionRequest { .. } => Ok(()),
        event => bail!("expected a connection request, got {event}"),
    }
}
