// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Endpoints (EPs).

mod attr;
mod connect;
mod modify;
mod post;
mod times;

pub use connect::{common_connect, connect, disconnect, dup_connect};
pub use modify::modify;
pub use post::{
    post_rdma_read, post_rdma_read_to_rmr, post_rdma_write, post_recv, post_send,
    post_send_with_invalidate,
};

use crate::abi::*;
use crate::cell::Cell;
use crate::cr::{padded, PrivateData};
use crate::entry::entry;
use crate::evd::Evd;
use crate::foreign::{self, put, put_if, wanted, Lent};
use crate::ia::Ia;
use crate::object::{find, find_or_null};
use crate::pz::Pz;
use crate::ret::{Result, Ret};
use crate::srq::Srq;
use libkdapl::sys::{
    kdapl_ep_query, kdapl_sockaddr, KDAPL_EP_FIELD_LOCAL_ADDRESS, KDAPL_EP_FIELD_REMOTE_ADDRESS,
};
use libkdapl::{ConnectionEvent, EpAttr, EpConfig, EpFields, Handle, Subtype};
use std::sync::{Arc, Mutex, PoisonError};

/// What the result of a query points to.
struct Answers {
    local: Lent<kdapl_sockaddr>,
    remote: Lent<kdapl_sockaddr>,
}

/// An Endpoint.
pub struct Ep {
    pub cell: &'static Cell,
    pub ia: Arc<Ia>,
    pub dat: libkdapl::Ep,
    answers: Mutex<Answers>,
    private_data: Lent<PrivateData>,
}

impl Ep {
    pub fn adopt(ia: &Arc<Ia>, dat: libkdapl::Ep) -> Result<Arc<Self>> {
        ia.adopt(dat.handle(), |cell| Self {
            cell,
            ia: ia.clone(),
            dat,
            answers: Mutex::new(Answers {
                local: Lent::new(kdapl_sockaddr::default()),
                remote: Lent::new(kdapl_sockaddr::default()),
            }),
            private_data: Lent::new(padded(&[])),
        })
    }

    /// Copies the private data of the peer's accept or reject to memory that stays valid as long as
    /// the Endpoint, for the program to read. Returns length and address.
    pub fn take_private_data(&self, event: ConnectionEvent) -> Result<(DAT_COUNT, DAT_PVOID)> {
        let whole = self.dat.private_data()?;
        let data = match event {
            ConnectionEvent::PeerRejected => self.ia.mapping().rejected(&whole),
            _ => &whole,
        };
        self.private_data.set(padded(data));
        Ok((data.len() as DAT_COUNT, self.private_data.address().cast()))
    }

    fn param(&self, fields: EpFields) -> Result<DAT_EP_PARAM> {
        let query = self.dat.query_fields(times::expand(fields))?;
        let kdapl_ep_query { local_address, remote_address, attr, .. } = query.raw;
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if fields.contains(EpFields(KDAPL_EP_FIELD_LOCAL_ADDRESS.into())) {
            answers.local.set(local_address);
        }
        if fields.contains(EpFields(KDAPL_EP_FIELD_REMOTE_ADDRESS.into())) {
            answers.remote.set(remote_address);
        }
        let mut ep_attr = attr::to_dat(&attr);
        if times::are_in(fields) {
            times::put(&attr, &mut ep_attr);
        }
        let handle = |key: u64| self.ia.handle_of(Handle(key));
        Ok(DAT_EP_PARAM {
            ia_handle: self.ia.handle(),
            ep_state: query.state.number(),
            comm: DAT_COMM::default(),
            local_ia_address_ptr: answers.local.address().cast(),
            local_port_qual: query.raw.local_port_qual,
            remote_ia_address_ptr: answers.remote.address().cast(),
            remote_port_qual: query.raw.remote_port_qual,
            pz_handle: handle(query.raw.pz),
            recv_evd_handle: handle(query.raw.recv_evd),
            request_evd_handle: handle(query.raw.request_evd),
            connect_evd_handle: handle(query.raw.connect_evd),
            srq_handle: handle(query.raw.srq),
            ep_attr,
        })
    }
}

/// Converts the attributes of a new Endpoint.
fn attributes(from: &DAT_EP_ATTR, argument: u16) -> Result<EpAttr> {
    let mut attr = attr::from_dat(from, argument)?;
    times::add(&mut attr, from, argument)?;
    Ok(attr)
}

pub extern "C" fn create(
    ia: DAT_IA_HANDLE,
    pz: DAT_PZ_HANDLE,
    recv: DAT_EVD_HANDLE,
    request: DAT_EVD_HANDLE,
    connect: DAT_EVD_HANDLE,
    attr: *const DAT_EP_ATTR,
    ep_handle: *mut DAT_EP_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        let ia = find::<Ia>(ia)?;
        wanted(ep_handle, 7)?;
        let pz = find_or_null::<Pz>(pz, Subtype::INVALID_HANDLE_PZ)?;
        let recv = find_or_null::<Evd>(recv, Subtype::INVALID_HANDLE_EVD_RECV)?;
        let request = find_or_null::<Evd>(request, Subtype::INVALID_HANDLE_EVD_REQUEST)?;
        let connect = find_or_null::<Evd>(connect, Subtype::INVALID_HANDLE_EVD_CONN)?;
        let attr = foreign::get_if(attr).map(|attr| attributes(&attr, 6)).transpose()?;
        let dat = ia.dat.create_ep_with(&EpConfig {
            pz: pz.as_ref().map(|pz| &pz.dat),
            recv: recv.as_ref().map(|evd| &evd.dat),
            request: request.as_ref().map(|evd| &evd.dat),
            connect: connect.as_ref().map(|evd| &evd.dat),
            srq: None,
            attr,
        })?;
        put(ep_handle, 7, Ep::adopt(&ia, dat)?.cell.handle())
    })
}

#[allow(clippy::too_many_arguments, reason = "the prototype is DAT's")]
pub extern "C" fn create_with_srq(
    ia: DAT_IA_HANDLE,
    pz: DAT_PZ_HANDLE,
    recv: DAT_EVD_HANDLE,
    request: DAT_EVD_HANDLE,
    connect: DAT_EVD_HANDLE,
    srq: DAT_SRQ_HANDLE,
    attr: *const DAT_EP_ATTR,
    ep_handle: *mut DAT_EP_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        let ia = find::<Ia>(ia)?;
        wanted(ep_handle, 8)?;
        let pz = find_or_null::<Pz>(pz, Subtype::INVALID_HANDLE_PZ)?;
        let recv = find_or_null::<Evd>(recv, Subtype::INVALID_HANDLE_EVD_RECV)?;
        let request = find_or_null::<Evd>(request, Subtype::INVALID_HANDLE_EVD_REQUEST)?;
        let connect = find_or_null::<Evd>(connect, Subtype::INVALID_HANDLE_EVD_CONN)?;
        let srq = find::<Srq>(srq)?;
        let attr = foreign::get_if(attr).map(|attr| attributes(&attr, 7)).transpose()?;
        let dat = ia.dat.create_ep_with(&EpConfig {
            pz: pz.as_ref().map(|pz| &pz.dat),
            recv: recv.as_ref().map(|evd| &evd.dat),
            request: request.as_ref().map(|evd| &evd.dat),
            connect: connect.as_ref().map(|evd| &evd.dat),
            srq: Some(&srq.dat),
            attr,
        })?;
        put(ep_handle, 8, Ep::adopt(&ia, dat)?.cell.handle())
    })
}

pub extern "C" fn query(
    ep: DAT_EP_HANDLE,
    mask: DAT_EP_PARAM_MASK,
    param: *mut DAT_EP_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let ep = find::<Ep>(ep)?;
        wanted(param, 3)?;
        let mask = u32::try_from(mask).map_err(|_| Ret::argument(2))?;
        put(param, 3, ep.param(EpFields(mask.into()))?)
    })
}

pub extern "C" fn get_status(
    ep: DAT_EP_HANDLE,
    state: *mut DAT_EP_STATE,
    recv_idle: *mut DAT_BOOLEAN,
    request_idle: *mut DAT_BOOLEAN,
) -> DAT_RETURN {
    entry(|| {
        let status = find::<Ep>(ep)?.dat.status()?;
        put_if(state, status.state.number());
        put_if(recv_idle, status.recv_idle.into());
        put_if(request_idle, status.request_idle.into());
        Ok(())
    })
}

pub extern "C" fn reset(ep: DAT_EP_HANDLE) -> DAT_RETURN {
    entry(|| Ok(find::<Ep>(ep)?.dat.reset()?))
}

pub extern "C" fn free(ep: DAT_EP_HANDLE) -> DAT_RETURN {
    entry(|| {
        let ep = find::<Ep>(ep)?;
        ep.dat.free()?;
        ep.ia.forget(ep.dat.handle());
        Ok(())
    })
}

pub extern "C" fn recv_query(
    ep: DAT_EP_HANDLE,
    allocated: *mut DAT_COUNT,
    span: *mut DAT_COUNT,
) -> DAT_RETURN {
    entry(|| {
        let (buffers, messages) = find::<Ep>(ep)?.dat.recv_query()?;
        let count = |number: u32| DAT_COUNT::try_from(number).unwrap_or(DAT_COUNT::MAX);
        put_if(allocated, count(buffers));
        put_if(span, count(messages));
        Ok(())
    })
}

/// `DAT_WATERMARK_INFINITE`, which no header of Debian's `libdapl-dev` defines.
const WATERMARK_INFINITE: DAT_COUNT = -1;

/// Converts a watermark; `argument` is its position in the call.
fn mark(number: DAT_COUNT, argument: u16) -> Result<Option<u32>> {
    match number {
        WATERMARK_INFINITE => Ok(None),
        _ => u32::try_from(number).map(Some).map_err(|_| Ret::argument(argument)),
    }
}

pub extern "C" fn set_watermark(ep: DAT_EP_HANDLE, soft: DAT_COUNT, hard: DAT_COUNT) -> DAT_RETURN {
    entry(|| {
        let (ep, soft, hard) = (find::<Ep>(ep)?, mark(soft, 2)?, mark(hard, 3)?);
        Ok(ep.dat.set_watermarks(soft, hard)?)
    })
}
