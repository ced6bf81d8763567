// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Posts DTOs and waits in one call.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, dto, empty, errno, refused, refused_as, same};
use crate::raw;
use crate::threads::Worker;
use anyhow::{ensure, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{
    CompletionFlags, Dto, DtoOperation, DtoStatus, Error, EvdFlags, Segment, Submitted, Subtype,
    Type, Wait,
};
use std::time::Duration;

tests! {
    round_trip, 20, "A submit posts all its DTOs and returns the event that it waits for";
    posts_only, 20, "A submit without an EVD does not wait";
    refused_dto, 20, "A submit posts no DTO after a refused one, and does not wait";
    bad_addresses, 20, "A submit reports the number of posted DTOs if a later one cannot be read";
    bad_arguments, 20, "A submit to a missing EP or EVD, or with too many DTOs, posts nothing";
    failing_wait, 30, "A submit whose wait fails reports that all DTOs were posted";
}

const NO_FLAGS: CompletionFlags = CompletionFlags(0);

fn pair(context: &Context) -> Result<Pair> {
    let pair = Pair::new(context, Shape::default())?;
    (0..8).try_for_each(|i| pair.server.receive(i * 64, 64, i as u64))?;
    Ok(pair)
}

fn for_ever(evd: &libkdapl::Evd) -> Option<Wait<'_>> {
    Some(Wait { evd, timeout: None, threshold: 1 })
}

fn round_trip(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    client.scramble(context);
    let (into, from) = ([client.lmr.segment(1024, 64)], [client.lmr.segment(0, 64)]);
    let dtos = [Dto::recv(&into, 7, NO_FLAGS), Dto::send(&from, 8, NO_FLAGS)];
    let Submitted { posted, event } = client.ep.submit(&dtos, for_ever(&client.request));
    same("posted", posted, 2)?;
    let Some((event, left)) = event? else { anyhow::bail!("there is no event") };
    done(&event, DtoOperation::Send, 64, 8)?;
    same("left", left, 0)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 64, 0)?;
    server.send(0, 64, 1)?;
    done(&context.next(&client.recv)?, DtoOperation::Receive, 64, 7)?;
    let bytes = |offset| client.lmr.buffer().to_vec(offset, 64);
    ensure!(bytes(0) == bytes(1024), "the reply differs from the message");
    Ok(())
}

fn posts_only(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let from = [client.lmr.segment(0, 64)];
    let dtos: Vec<_> = (0..8).map(|cookie| Dto::send(&from, cookie, NO_FLAGS)).collect();
    let Submitted { posted, event } = client.ep.submit(&dtos, None);
    ensure!(posted == 8 && event?.is_none(), "{posted} posted");
    for cookie in 0..8 {
        done(&context.next(&client.request)?, DtoOperation::Send, 64, cookie)?;
    }
    let Submitted { posted, event } = client.ep.submit(&[], None);
    ensure!(posted == 0 && event?.is_none(), "{posted} posted of zero");
    Ok(())
}

fn refused_dto(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let right = [client.lmr.segment(0, 64)];
    let wrong = [Segment { context: !right[0].context, ..right[0] }];
    let dtos = [
        Dto::send(&right, 1, NO_FLAGS),
        Dto::send(&wrong, 2, NO_FLAGS),
        Dto::send(&right, 3, NO_FLAGS),
    ];
    // The wait would not end.
    let Submitted { posted, event } = client.ep.submit(&dtos, for_ever(&client.recv));
    same("posted", posted, 1)?;
    refused(event, Type::PROTECTION_VIOLATION)?;
    done(&context.next(&client.request)?, DtoOperation::Send, 64, 1)?;
    ensure!(client.ep.status()?.request_idle, "the third DTO was posted");
    empty(&client.request)
}

fn bad_addresses(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let segment = client.lmr.segment(0, 64);
    let right = kdapl_dto {
        iov: std::ptr::from_ref(&segment) as u64,
        iov_count: 1,
        iov_size: size_of::<kdapl_triplet>() as u32,
        ..Default::default()
    };
    let submit = |dtos: u64, count: u32| {
        let (handle, dto_size) = (client.ep.handle().0, size_of::<kdapl_dto>() as u32);
        let mut message = kdapl_ep_submit { handle, dtos, count, dto_size, ..Default::default() };
        let outcome = raw::call(client.ia.device(), call::EP_SUBMIT, &mut message);
        (message.posted, outcome)
    };
    for address in [raw::BAD_ADDRESS, 0, u64::MAX - 7, 1 << 63] {
        let (posted, outcome) = submit(address, 1);
        same("posted from an unmapped address", posted, 0)?;
        errno(outcome, libc::EFAULT)?;
        for second in [
            kdapl_dto { iov: address, ..right },
            kdapl_dto { flags: 0x80, ..right },
            kdapl_dto { operation: 99, ..right },
            kdapl_dto { reserved: 1, ..right },
        ] {
            let (posted, outcome) = submit([right, second].as_ptr() as u64, 2);
            same("posted", posted, 1)?;
            refused(outcome, Type::INVALID_PARAMETER)?;
            done(&context.next(&client.request)?, DtoOperation::Send, 64, 0)?;
            let arrived = context.next(&pair.server.recv)?;
            dto(&arrived, DtoOperation::Receive, DtoStatus::Success)?;
            pair.server.receive(0, 64, 0)?;
        }
    }
    Ok(())
}

fn bad_arguments(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let from = [client.lmr.segment(0, 64)];
    let dto = Dto::send(&from, 1, NO_FLAGS);
    let nothing = |submitted: Submitted| -> Result<Error> {
        same("posted", submitted.posted, 0)?;
        match submitted.event {
            Ok(event) => anyhow::bail!("{event:?}"),
            Err(error) => Ok(error),
        }
    };
    let evd = client.ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    evd.free()?;
    let error = nothing(client.ep.submit(&[dto], for_ever(&evd)))?;
    refused::<()>(Err(error), Type::INVALID_HANDLE)?;
    let ep = client.another_ep()?;
    ep.free()?;
    let error = nothing(ep.submit(&[dto], for_ever(&client.request)))?;
    refused_as::<()>(Err(error), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EP)?;
    let many = vec![dto; KDAPL_SUBMIT_MAX as usize + 1];
    let error = nothing(client.ep.submit(&many, None))?;
    refused_as::<()>(Err(error), Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    ensure!(client.ep.status()?.request_idle, "a DTO was posted");
    Ok(())
}

fn failing_wait(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let from = [client.lmr.segment(0, 64)];
    let submit = |wait: Wait<'_>| -> Result<Error> {
        let Submitted { posted, event } =
            client.ep.submit(&[Dto::send(&from, 5, NO_FLAGS)], Some(wait));
        same("posted", posted, 1)?;
        done(&context.next(&client.request)?, DtoOperation::Send, 64, 5)?;
        match event {
            Ok(event) => anyhow::bail!("{event:?}"),
            Err(error) => Ok(error),
        }
    };
    let evd = &client.recv;
    let brief = Some(Duration::from_millis(1));
    let error = submit(Wait { evd, timeout: brief, threshold: 1 })?;
    ensure!(error.is_timeout(), "{error}");
    let error = submit(Wait { evd, timeout: None, threshold: 0 })?;
    refused::<()>(Err(error), Type::INVALID_PARAMETER)?;
    let other = evd.clone();
    let waiter = Worker::start(move || other.wait(None, 1))?;
    waiter.asleep(context)?;
    let error = submit(Wait { evd, timeout: None, threshold: 1 })?;
    refused_as::<()>(Err(error), Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_WAITER)?;
    evd.set_unwaitable()?;
    refused(waiter.join()?, Type::INVALID_STATE)?;
    let error = submit(Wait { evd, timeout: None, threshold: 1 })?;
    refused_as::<()>(Err(error), Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_UNWAITABLE)
}
