// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Event Dispatchers.

use super::{
    zero,
    Outcome, //
};
use crate::{
    chardev::client::Client,
    dat::evd::{
        deadline,
        Evd, //
    },
    model::{
        code::DatResult,
        event::Record,
        hand::Reach, //
    },
};
use kdapl_bindings as uapi;
use kernel::{
    prelude::*,
    sync::Arc, //
};

fn find(client: &Client, handle: u64) -> DatResult<Arc<Evd>> {
    client.ia()?.objects().get(handle)
}

pub(super) fn create(client: &Client, message: &mut uapi::kdapl_evd_create) -> Outcome {
    zero(message.pad)?;
    let created = client.ia().and_then(|ia| {
        let (qlen, cno, flags) = (message.qlen, message.cno, message.flags);
        Evd::create(&ia, qlen, cno, flags, message.vector)
    });
    Ok(created.map(|(handle, qlen)| {
        message.handle = handle;
        message.qlen = i32::try_from(qlen).unwrap_or(i32::MAX);
    }))
}

pub(super) fn free(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(client.ia().and_then(|ia| Evd::free(&ia, message.handle)))
}

pub(super) fn query(client: &Client, message: &mut uapi::kdapl_evd_query) -> Outcome {
    Ok(find(client, message.handle).map(|evd| {
        let param = evd.query();
        message.cno = param.cno;
        message.qlen = i32::try_from(param.qlen).unwrap_or(i32::MAX);
        message.state = param.state;
        message.flags = param.flags.bits();
        message.queued = param.queued;
        message.vector = param.vector;
        message.cqs = param.queues;
    }))
}

pub(super) fn modify_cno(client: &Client, message: &mut uapi::kdapl_evd_modify_cno) -> Outcome {
    Ok(client.ia().and_then(|ia| {
        let evd = ia.objects().get(message.handle)?;
        Evd::modify_cno(&evd, &ia, message.cno)
    }))
}

pub(super) fn enable(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(find(client, message.handle).map(|evd| Evd::enable(&evd, true)))
}

pub(super) fn disable(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(find(client, message.handle).map(|evd| Evd::enable(&evd, false)))
}

pub(super) fn set_unwaitable(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(find(client, message.handle).map(|evd| evd.set_unwaitable()))
}

pub(super) fn clear_unwaitable(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(find(client, message.handle).map(|evd| evd.clear_unwaitable()))
}

pub(super) fn resize(client: &Client, message: &mut uapi::kdapl_evd_resize) -> Outcome {
    zero(message.pad)?;
    let resized = client.ia().and_then(|ia| {
        let evd = ia.objects().get(message.handle)?;
        Evd::resize(&evd, &ia, message.qlen)
    });
    Ok(resized.map(|qlen| message.qlen = i32::try_from(qlen).unwrap_or(i32::MAX)))
}

/// Where a message takes an event, and the number of those behind it.
type Place<'a> = (&'a mut uapi::kdapl_event, &'a mut u32);

/// Puts what `take` takes into the message.
fn deliver(take: impl FnOnce(&mut Record) -> DatResult<u32>, (event, nmore): Place<'_>) -> Outcome {
    let mut record = Record::default();
    match take(&mut record) {
        Ok(left) => {
            *event = uapi::kdapl_event::read_from_bytes(record.as_bytes()).map_err(|_| EINVAL)?;
            *nmore = left;
            Ok(Ok(()))
        }
        Err(error) => Ok(Err(error)),
    }
}

/// Waits for the next event.
pub(super) fn take_next(
    evd: &Arc<Evd>,
    timeout_us: u32,
    threshold: i32,
    place: Place<'_>,
) -> Outcome {
    let deadline = deadline(timeout_us);
    deliver(
        |record| Evd::wait(evd, deadline, threshold, Reach::All, record),
        place,
    )
}

pub(super) fn wait(client: &Client, message: &mut uapi::kdapl_evd_wait) -> Outcome {
    zero(message.pad)?;
    // The time counts from here.
    let deadline = deadline(message.timeout_us);
    let (handle, threshold) = (message.handle, message.threshold);
    deliver(
        |record| {
            let evd = find(client, handle)?;
            Evd::wait(&evd, deadline, threshold, Reach::All, record)
        },
        (&mut message.event, &mut message.nmore),
    )
}

pub(super) fn dequeue(client: &Client, message: &mut uapi::kdapl_evd_wait) -> Outcome {
    zero(message.pad)?;
    let handle = message.handle;
    deliver(
        |record| Evd::dequeue(&find(client, handle)?, Reach::All, record),
        (&mut message.event, &mut message.nmore),
    )
}

pub(super) fn post_se(client: &Client, message: &mut uapi::kdapl_evd_post_se) -> Outcome {
    Ok(find(client, message.handle).and_then(|evd| evd.post_se(message.pointer)))
}
