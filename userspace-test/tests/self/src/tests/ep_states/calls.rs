// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls that the table of states has a row for.

use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::tests::ep_stage::{another_connected, another_request, Stage};
use crate::tests::extensions;
use anyhow::Result;
use libkdapl::{Close, DtoOperation, Error, EvdFlags, Qos};

macro_rules! calls {
    ($($call:ident,)+) => {
        /// Call that concerns an endpoint.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Call {
            $($call,)+
        }

        /// All calls.
        pub const CALLS: &[Call] = &[$(Call::$call,)+];
    };
}

calls! {
    Connect,
    DupConnect,
    CommonConnect,
    Accept,
    Reject,
    DisconnectAbrupt,
    DisconnectGraceful,
    Reset,
    Ready,
    Modify,
    PostRecv,
    PostSend,
    PostWrite,
    PostRead,
    PostWriteImmed,
    PostFetchAdd,
    PostCmpSwap,
    RspCreate,
    // `dup_connect` of another endpoint, with this one as the pattern.
    BeDuplicated,
    Free,
}

/// Makes one call. Returns `None` if the call does not exist in this state.
pub fn carry_out(
    context: &Context,
    stage: &mut Stage,
    call: Call,
) -> Result<Option<Result<(), Error>>> {
    let segment = [stage.end.lmr.segment(0, 64)];
    let remote = stage.remote.unwrap_or(stage.end.lmr.remote_segment(0, 64));
    let (address, patience) = (stage.host.address, Some(context.patience()));
    let (ep, ia) = (stage.end.ep.clone(), stage.end.ia.clone());
    Ok(Some(match call {
        Call::Connect => {
            let listener = Listener::new(context, &ia)?;
            let outcome = ep.connect(address, listener.port, patience, &[]);
            stage.hold(listener);
            outcome
        }
        Call::DupConnect => {
            let other = another_connected(context, stage)?;
            ep.dup_connect(&other, patience, &[], Qos::BestEffort)
        }
        Call::BeDuplicated => {
            let other = End::new(&ia, Shape::default())?;
            let outcome = other.ep.dup_connect(&ep, patience, &[], Qos::BestEffort);
            stage.hold(other);
            outcome
        }
        Call::CommonConnect => {
            let listener = Listener::new(context, &ia)?;
            let outcome = ep.common_connect((address, listener.port as u16).into(), patience, &[]);
            stage.hold(listener);
            outcome
        }
        Call::Accept => {
            let mut cr = match stage.request.take() {
                Some(cr) => cr,
                None => another_request(context, stage)?.0,
            };
            let outcome = cr.accept(&ep, &[]);
            stage.hold.insert(0, Box::new(cr));
            outcome
        }
        Call::Reject => match &mut stage.request {
            Some(cr) => cr.reject(&[]),
            None => return Ok(None),
        },
        Call::DisconnectAbrupt => ep.disconnect(Close::Abrupt),
        Call::DisconnectGraceful => ep.disconnect(Close::Graceful),
        Call::Reset => ep.reset(),
        Call::Ready => ep.ready(),
        Call::Modify => ep.modify(stage.whole()).map(drop),
        Call::PostRecv => ep.post_recv(&segment, 77, Default::default()),
        Call::PostSend => ep.post_send(&segment, 77, Default::default()),
        Call::PostWrite => ep.post_rdma_write(&segment, remote, 77, Default::default()),
        Call::PostRead => ep.post_rdma_read(&segment, remote, 77, Default::default()),
        Call::PostWriteImmed | Call::PostFetchAdd | Call::PostCmpSwap => {
            let operation = match call {
                Call::PostWriteImmed => DtoOperation::RdmaWriteImmed,
                Call::PostFetchAdd => DtoOperation::FetchAdd,
                _ => DtoOperation::CmpSwap,
            };
            match extensions::one(&stage.end, operation, remote)? {
                Some(outcome) => outcome,
                None => return Ok(None),
            }
        }
        Call::RspCreate => {
            let evd = ia.create_evd(EvdFlags::CR, 4)?;
            let created = stage.host.inside(|| ia.create_rsp(context.port(), &evd, Some(&ep)))?;
            created.map(|rsp| stage.hold(rsp))
        }
        Call::Free => ep.free(),
    }))
}
