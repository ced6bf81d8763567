// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Data transfer operations (DTOs): posting them, and waiting for events in the same call.

use super::{
    deadline,
    ep,
    evd::{
        self,
        EventArray,
        TakenEvents, //
    },
    zero,
    CallFailure,
    CallResult,
    PROMISE, //
};
use crate::{
    chardev::client::Client,
    dat::{
        base::Segment,
        ep::{
            Ep,
            Operands,
            Post, //
        },
        evd::Evd,
        ia::Ia,
        prelude::*, //
    },
    model::event::Operation,
    rdma::qp::{
        MAX_CHAIN,
        MAX_CHAIN_SGE, //
    },
    sys::uapi::{
        Array,
        ShortArray, //
    },
};
use core::array;
use kdapl_bindings as uapi;

/// Maximum number of segments of a DTO.
pub(super) const IOV_MAX: usize = uapi::KDAPL_IOV_MAX as usize;

pub(super) fn post(client: &Client, message: &mut uapi::kdapl_ep_post) -> CallResult {
    let ep = ep::find(client, message.handle)?;
    if message.dto.operation == uapi::KDAPL_DTO_RECEIVE {
        // It takes no room of a promise.
        post_one(&ep, &message.dto)?;
    } else {
        posts_without_promise(&ep, || post_one(&ep, &message.dto))?;
    }
    note_request(client, &ep, &message.hdr);
    Ok(())
}

/// Makes a call that takes slots for requests of an Endpoint, and so room of a promise. The promise
/// is withdrawn before the call, and again after it: another thread may have got one meanwhile.
#[inline(always)]
pub(super) fn posts_without_promise<T>(ep: &Arc<Ep>, call: impl FnOnce() -> T) -> T {
    ep.post_mapped();
    let result = call();
    ep.post_mapped();
    result
}

/// Notes a request for a promise.
#[inline(always)]
fn note_request(client: &Client, ep: &Arc<Ep>, header: &uapi::kdapl_hdr) {
    if header.flags & PROMISE != 0 {
        client.promises().request(ep);
    }
}

/// Returns the operation of a DTO.
fn operation(dto: &uapi::kdapl_dto) -> CallResult<Operation> {
    zero(dto.reserved)?;
    match dto.operation {
        uapi::KDAPL_DTO_SEND => Ok(Operation::Send),
        uapi::KDAPL_DTO_SEND_WITH_INVALIDATE => Ok(Operation::SendWithInvalidate),
        uapi::KDAPL_DTO_RDMA_WRITE => Ok(Operation::RdmaWrite),
        uapi::KDAPL_DTO_RDMA_READ => Ok(Operation::RdmaRead),
        uapi::KDAPL_DTO_RDMA_READ_TO_RMR => Ok(Operation::RdmaReadToRmr),
        uapi::KDAPL_DTO_RECEIVE => Ok(Operation::Receive),
        uapi::KDAPL_IB_DTO_RDMA_WRITE_IMMED => Ok(Operation::RdmaWriteImmed),
        uapi::KDAPL_IB_DTO_FETCH_ADD => Ok(Operation::FetchAdd),
        uapi::KDAPL_IB_DTO_CMP_SWAP => Ok(Operation::CmpSwap),
        _ => Err(DatError::Invalid(Arg::Operation).into()),
    }
}

/// Copies in the segments of a DTO.
fn read_iov<'a, const N: usize>(
    iov: &'a mut ShortArray<Segment, N>,
    dto: &uapi::kdapl_dto,
) -> CallResult<&'a [Segment]> {
    match dto.iov_count {
        0 => Ok(&[]),
        count => Ok(iov.read(&Array::new(dto.iov, dto.iov_size)?, count)?),
    }
}

fn describe<'a>(dto: &uapi::kdapl_dto, operation: Operation, local: &'a [Segment]) -> Post<'a> {
    Post {
        operation,
        flags: dto.flags,
        cookie: dto.cookie,
        local,
        remote: dto.remote,
        operands: Operands {
            immed_data: dto.immed_data,
            compare_add: dto.compare_add,
            swap: dto.swap,
        },
    }
}

/// Posts one DTO.
fn post_one(ep: &Ep, dto: &uapi::kdapl_dto) -> CallResult {
    let operation = operation(dto)?;
    if dto.iov_count > uapi::KDAPL_IOV_MAX {
        return Err(CallFailure::Dto(
            operation,
            DatError::Invalid(Arg::SegmentCount),
        ));
    }
    let mut iov = ShortArray::<Segment, IOV_MAX>::new();
    let local = read_iov(&mut iov, dto)?;
    ep.post(&describe(dto, operation, local))
        .map_err(|error| CallFailure::Dto(operation, error))
}

/// EVD that a submit waits on, and the destination of its events.
pub(super) struct SubmitWait {
    pub(super) evd: Arc<Evd>,
    pub(super) events: EventArray,
}

/// Returns the IA and the Endpoint (EP) of a submit.
///
/// # Errors
///
/// INVALID_PARAMETER (DTOs) for too many DTOs; INVALID_HANDLE.
fn find(client: &Client, message: &uapi::kdapl_ep_submit) -> DatResult<(Arc<Ia>, Arc<Ep>)> {
    if message.count > uapi::KDAPL_SUBMIT_MAX {
        return Err(DatError::Invalid(Arg::Dtos));
    }
    let ia = client.ia()?;
    let ep = ia.get(message.handle)?;
    Ok((ia, ep))
}

/// Returns the EVD of a submit and the destination of its events; `None` if it only posts.
fn find_wait(ia: &Ia, message: &uapi::kdapl_ep_submit) -> CallResult<Option<SubmitWait>> {
    if message.evd == 0 {
        return Ok(None);
    }
    let evd = ia.get(message.evd)?;
    let events = EventArray::new(message.events, message.max_events, message.event_size)?;
    Ok(Some(SubmitWait { evd, events }))
}

/// Posts the next DTOs of a list together, as far as they are short and well-formed. Returns their
/// number, and the failure of the one that was refused.
fn post_some(ep: &Ep, dtos: &Array<uapi::kdapl_dto>, next: u32, end: u32) -> (u32, CallResult) {
    let mut room = ShortArray::<uapi::kdapl_dto, MAX_CHAIN>::new();
    let count = end.wrapping_sub(next).min(MAX_CHAIN as u32);
    let Ok(dtos) = dtos.from(next).and_then(|next| room.read(&next, count)) else {
        return (0, Ok(()));
    };
    let mut iovs =
        array::from_fn::<_, MAX_CHAIN, _>(|_| ShortArray::<Segment, MAX_CHAIN_SGE>::new());
    let mut posts = [Post::NOTHING; MAX_CHAIN];
    let mut count = 0_usize;
    for ((dto, iov), post) in dtos.iter().zip(&mut iovs).zip(&mut posts) {
        let (Ok(operation), Ok(local)) = (operation(dto), read_iov(iov, dto)) else {
            break;
        };
        *post = describe(dto, operation, local);
        count = count.wrapping_add(1);
    }
    let posts = posts.get(..count).unwrap_or_default();
    let (posted, result) = ep.post_list(posts);
    let result = match (result, posts.get(posted)) {
        (Err(error), Some(refused)) => Err(CallFailure::Dto(refused.operation, error)),
        _ => Ok(()),
    };
    (u32::try_from(posted).unwrap_or(u32::MAX), result)
}

/// Posts the DTOs of a message, up to the first that is refused. Counts them in `message.posted`.
fn post_all(ep: &Ep, message: &mut uapi::kdapl_ep_submit) -> CallResult {
    if message.count == 0 {
        return Ok(());
    }
    let dtos = Array::<uapi::kdapl_dto>::new(message.dtos, message.dto_size)?;
    while message.posted < message.count {
        if message.count.wrapping_sub(message.posted) > 1 {
            let (posted, result) = post_some(ep, &dtos, message.posted, message.count);
            message.posted = message.posted.wrapping_add(posted);
            result?;
            if posted != 0 {
                continue;
            }
        }
        let dto = dtos.read(message.posted).map_err(CallFailure::from);
        match dto.and_then(|dto| post_one(ep, &dto)) {
            Ok(()) => message.posted = message.posted.wrapping_add(1),
            // An `errno` would hide the number of posted DTOs.
            Err(CallFailure::Message(_)) if message.posted != 0 => {
                return Err(DatError::Invalid(Arg::Dtos).into())
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// Posts the DTOs of a submit. Returns the EVD to wait on, if there is one.
pub(super) fn begin_submit(
    client: &Client,
    message: &mut uapi::kdapl_ep_submit,
) -> CallResult<Option<SubmitWait>> {
    (message.posted, message.taken, message.nmore) = (0, 0, 0);
    // Resolve both handles before posting: a refused message must not post any DTO.
    let (ia, ep) = find(client, message)?;
    let wait = find_wait(&ia, message)?;
    // Do not hold the IA during the wait, so that it can be closed.
    drop(ia);
    posts_without_promise(&ep, || post_all(&ep, message))?;
    note_request(client, &ep, &message.hdr);
    Ok(wait)
}

pub(super) fn submit(client: &Client, message: &mut uapi::kdapl_ep_submit) -> CallResult {
    let Some(SubmitWait { evd, events }) = begin_submit(client, message)? else {
        return Ok(());
    };
    let deadline = deadline(&message.hdr, message.timeout_ns);
    let TakenEvents { taken, nmore } = evd::take_next(&evd, deadline, message.threshold, &events)?;
    (message.taken, message.nmore) = (taken, nmore);
    evd::renew_promises(client);
    Ok(())
}
