// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DTOs: posting them, and waiting for what comes of them in the same call.

use super::{
    ep,
    evd,
    zero,
    Outcome, //
};
use crate::{
    chardev::client::Client,
    dat::{
        ep::{
            Ep,
            Operands,
            Post,
            Segment, //
        },
        evd::Evd, //
    },
    model::{
        code::{
            DatError,
            DatResult, //
        },
        event::Operation,
    },
    sys::uapi::{
        read_element,
        ShortArray, //
    },
};
use kdapl_bindings as uapi;
use kernel::sync::Arc;

/// Segments of the largest DTO.
const IOV_MAX: usize = uapi::KDAPL_IOV_MAX as usize;

pub(super) fn post(client: &Client, message: &mut uapi::kdapl_ep_post) -> Outcome {
    match ep::find(client, message.handle) {
        Ok(ep) => post_one(&ep, &message.dto),
        Err(error) => Ok(Err(error)),
    }
}

/// Posts one.
fn post_one(ep: &Ep, dto: &uapi::kdapl_dto) -> Outcome {
    let operation = match dto.operation {
        uapi::KDAPL_DTO_SEND => Operation::Send,
        uapi::KDAPL_DTO_RDMA_WRITE => Operation::RdmaWrite,
        uapi::KDAPL_DTO_RDMA_READ => Operation::RdmaRead,
        uapi::KDAPL_DTO_RECEIVE => Operation::Receive,
        uapi::KDAPL_IB_DTO_RDMA_WRITE_IMMED => Operation::RdmaWriteImmed,
        uapi::KDAPL_IB_DTO_FETCH_ADD => Operation::FetchAdd,
        uapi::KDAPL_IB_DTO_CMP_SWAP => Operation::CmpSwap,
        _ => return Ok(Err(DatError::invalid_parameter(1))),
    };
    if dto.iov_count > uapi::KDAPL_IOV_MAX {
        let argument = operation.arguments().segments;
        return Ok(Err(DatError::invalid_parameter(argument)));
    }
    let mut iov = ShortArray::<Segment, IOV_MAX>::new();
    Ok(ep.post(&Post {
        operation,
        flags: dto.flags,
        cookie: dto.cookie,
        local: iov.read(dto.iov, dto.iov_count)?,
        remote: dto.remote,
        operands: Operands {
            immed_data: dto.immed_data,
            compare_add: dto.compare_add,
            swap: dto.swap,
        },
    }))
}

/// The Endpoint and the EVD that are meant; nothing is posted before both are found.
fn parts(
    client: &Client,
    message: &uapi::kdapl_ep_submit,
) -> DatResult<(Arc<Ep>, Option<Arc<Evd>>)> {
    if message.count > uapi::KDAPL_SUBMIT_MAX {
        return Err(DatError::invalid_parameter(2));
    }
    let ia = client.ia()?;
    let ep = ia.objects().get(message.handle)?;
    let evd = match message.evd {
        0 => None,
        handle => Some(ia.objects().get(handle)?),
    };
    Ok((ep, evd))
}

pub(super) fn submit(client: &Client, message: &mut uapi::kdapl_ep_submit) -> Outcome {
    zero(message.pad)?;
    message.posted = 0;
    let (ep, evd) = match parts(client, message) {
        Ok(parts) => parts,
        Err(error) => return Ok(Err(error)),
    };
    while message.posted < message.count {
        let dto = read_element::<uapi::kdapl_dto>(message.dtos, message.posted);
        match dto.and_then(|dto| post_one(&ep, &dto)) {
            Ok(Ok(())) => message.posted = message.posted.wrapping_add(1),
            Ok(Err(error)) => return Ok(Err(error)),
            Err(bad) if message.posted == 0 => return Err(bad),
            // Those that were posted have to be told of, which an `errno` would not.
            Err(_) => return Ok(Err(DatError::invalid_parameter(2))),
        }
    }
    match evd {
        Some(evd) => evd::take_next(
            &evd,
            message.timeout_us,
            message.threshold,
            (&mut message.event, &mut message.nmore),
        ),
        None => Ok(Ok(())),
    }
}
