// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Shared Receive Queues (SRQs).

use super::{
    dto::IOV_MAX,
    zero,
    CallResult, //
};
use crate::{
    chardev::client::Client,
    dat::{
        base::Segment,
        prelude::*,
        srq::{
            Receive,
            Srq,
            SrqAttr, //
        },
    },
    sys::uapi::{
        Array,
        ShortArray, //
    },
};
use kdapl_bindings as uapi;

fn find(client: &Client, handle: u64) -> DatResult<Arc<Srq>> {
    client.get(handle)
}

pub(super) fn create(client: &Client, message: &mut uapi::kdapl_srq_create) -> CallResult {
    zero(message.pad)?;
    let ia = client.ia()?;
    if message.low_watermark != 0 {
        return Err(DatError::Invalid(Arg::Attr).into());
    }
    let attr = SrqAttr {
        max_recv_dtos: message.max_recv_dtos,
        max_recv_iov: message.max_recv_iov,
    };
    message.handle = ia.create_srq(message.pz, attr)?;
    Ok(())
}

pub(super) fn free(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(client.ia()?.free::<Srq>(message.handle)?)
}

pub(super) fn post_recv(client: &Client, message: &mut uapi::kdapl_srq_post) -> CallResult {
    let srq = find(client, message.handle)?;
    if message.iov_count > uapi::KDAPL_IOV_MAX {
        return Err(DatError::Invalid(Arg::SegmentCount).into());
    }
    let mut iov = ShortArray::<Segment, IOV_MAX>::new();
    let local = match message.iov_count {
        0 => &[],
        count => iov.read(&Array::new(message.iov, message.iov_size)?, count)?,
    };
    Ok(srq.post(&Receive {
        cookie: message.cookie,
        local,
    })?)
}

pub(super) fn query(client: &Client, message: &mut uapi::kdapl_srq_query) -> CallResult {
    let param = find(client, message.handle)?.query()?;
    *message = uapi::kdapl_srq_query {
        hdr: message.hdr,
        handle: message.handle,
        ia: param.ia,
        pz: param.pz,
        state: uapi::KDAPL_SRQ_OPERATIONAL,
        max_recv_dtos: param.attr.max_recv_dtos,
        max_recv_iov: param.attr.max_recv_iov,
        low_watermark: param.low_watermark,
        available: param.available,
        outstanding: param.outstanding,
    };
    Ok(())
}

pub(super) fn resize(client: &Client, message: &mut uapi::kdapl_srq_number) -> CallResult {
    zero(message.pad)?;
    let ia = client.ia()?;
    let srq = ia.get::<Srq>(message.handle)?;
    Ok(ia.resize_srq(&srq, message.number)?)
}

pub(super) fn set_low_watermark(
    client: &Client,
    message: &mut uapi::kdapl_srq_number,
) -> CallResult {
    zero(message.pad)?;
    Ok(find(client, message.handle)?.set_low_watermark(message.number)?)
}
