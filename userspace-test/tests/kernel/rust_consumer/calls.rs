// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on memory, posts and Shared Receive Queues, by one thread.

use crate::{
    conn_qual,
    connect_here,
    ensure,
    open,
    streams,
    PATIENCE_US, //
};
use kdat::{
    Access,
    Buffer,
    Completion,
    Connection,
    Dto,
    Ep,
    Evd,
    Evds,
    Event,
    Ia,
    Pz,
    Refused,
    Remote, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// Takes the next completion.
pub(crate) fn completion(evd: &Evd) -> Result<Completion> {
    match evd.wait(Some(PATIENCE_US))? {
        Event::Dto(dto) if dto.is_success() => Ok(dto),
        Event::Dto(dto) => {
            pr_err!("{:?} {} has failed: {}\n", dto.operation, dto.context, dto.status);
            Err(EIO)
        }
        _ => Err(EIO),
    }
}

/// Connects the first Endpoint to the second.
pub(crate) fn connect(ia: &Ia, evds: [&Evd; 2], eps: [&Ep; 2]) -> Result {
    let psp = ia.listen(conn_qual(), evds[1])?;
    connect_here(eps[0], b"hello")?;
    let Event::Request(request) = evds[1].wait(Some(PATIENCE_US))? else {
        return Err(EIO);
    };
    let mut data = [0; 5];
    ensure(request.private_data(&mut data)? >= 5 && data == *b"hello", "the request has data")?;
    request.accept(eps[1], b"welcome")?;
    for evd in evds {
        let Event::Connection(_, Connection::Established) = evd.wait(Some(PATIENCE_US))? else {
            return Err(EIO);
        };
    }
    let mut data = [0; 7];
    ensure(eps[0].private_data(&mut data)? >= 7 && data == *b"welcome", "the accept has data")?;
    drop(psp);
    Ok(())
}

/// Two Endpoints without handlers, which are connected.
pub(crate) fn pair(ia: &Ia, pz: &Pz, evds: [&Evd; 2]) -> Result<[Ep; 2]> {
    let eps = [pz.create_ep(evds[0].into(), None)?, pz.create_ep(evds[1].into(), None)?];
    connect(ia, evds, [&eps[0], &eps[1]])?;
    Ok(eps)
}

/// A message of several buffers arrives in several others, and each returns with its context. Posts
/// that are refused return their buffers.
pub(crate) fn segments(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?];
    let eps = pair(&ia, &pz, [&evds[0], &evds[1]])?;
    let into = Dto::receive(pz.buffer(3)?).with(pz.buffer(8)?, 8)?;
    eps[1].post(into.context(7))?;
    let (mut one, mut two) = (pz.buffer(4)?, pz.buffer(6)?);
    one.copy_from_slice(b"abcd");
    two.copy_from_slice(b"efghij");
    eps[0].post(Dto::send(one, 4).with(two, 5)?.context(8))?;
    let sent = completion(&evds[0])?;
    ensure(sent.context == 8 && sent.more.len() == 1, "the send returns two buffers")?;
    let got = completion(&evds[1])?;
    let (first, rest) = (got.buffer.ok_or(EIO)?, got.more.first().ok_or(EIO)?);
    ensure(got.context == 7 && got.length == 9, "the receive has nine bytes")?;
    ensure(first[..] == *b"abc" && rest[..6] == *b"defghi", "the bytes are in order")?;
    refusals(&ia, &pz, &eps[0], first)
}

/// Posts that are refused return their buffers.
fn refusals(ia: &Ia, pz: &Pz, ep: &Ep, buffer: Buffer) -> Result {
    let kind = |refused: &Refused| refused.error.kind();
    let remote = Remote { address: 0, length: 4, context: 0 };
    let Err(refused) = ep.post(Dto::send(buffer, 4)) else {
        return Err(EIO);
    };
    ensure(kind(&refused) == kdat::kind::LENGTH_ERROR, "three bytes are not four")?;
    // Only a send writes memory of its own before.
    let Err(refused) = ep.post(Dto::receive(refused.buffer.ok_or(EIO)?).after_writing_to(remote))
    else {
        return Err(EIO);
    };
    ensure(kind(&refused) == kdat::kind::INVALID_PARAMETER, "a receive writes no memory")?;
    let evd = ia.create_evd(streams(), 64)?;
    let idle = pz.create_ep(Evds::from(&evd), None)?;
    let Err(refused) = idle.post(Dto::send(refused.buffer.ok_or(EIO)?, 3)) else {
        return Err(EIO);
    };
    ensure(kind(&refused) == kdat::kind::INVALID_STATE, "the Endpoint is not connected")?;
    ensure(refused.buffer.is_some_and(|buffer| buffer[..] == *b"abc"), "the buffer is back")?;
    // The third of four has more segments than the Endpoint.
    let mut list = KVec::new();
    for place in 0..4 {
        let mut dto = Dto::send(pz.buffer(1)?, 1);
        for _ in 0..if place == 2 { 5 } else { 0 } {
            dto = dto.with(pz.buffer(1)?, 1)?;
        }
        list.push(dto, GFP_KERNEL)?;
    }
    ensure(ep.post_list(&mut list).is_err(), "the third is refused")?;
    ensure(list.len() == 2, "two were posted")
}

/// A part of memory is open to the peer while it is bound, and no other part is.
pub(crate) fn bound_memory(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?];
    let eps = pair(&ia, &pz, [&evds[0], &evds[1]])?;
    let shared = pz.share(PAGE_SIZE, Access::Bind)?;
    let mut rmr = pz.create_rmr()?;
    let remote = rmr.bind(&shared, (64, 16), Access::Write, &eps[0], 5)?;
    let Event::Bind { context: 5, status: 0 } = evds[0].wait(Some(PATIENCE_US))? else {
        return Err(EIO);
    };
    let mut data = pz.buffer(16)?;
    data.fill(9);
    eps[1].post(Dto::write(data, 16, remote))?;
    let data = completion(&evds[1])?.buffer.ok_or(EIO)?;
    let mut bytes = [0; 128];
    shared.read(0, &mut bytes)?;
    ensure(
        bytes[64..80] == [9; 16] && bytes[63] == 0 && bytes[80] == 0,
        "the part has the peer's bytes",
    )?;
    ensure(shared.read(PAGE_SIZE - 127, &mut bytes).is_err(), "reads end")?;
    shared.write(64, &[1; 16])?;
    rmr.unbind(&eps[0], 6)?;
    let Event::Bind { context: 6, .. } = evds[0].wait(Some(PATIENCE_US))? else {
        return Err(EIO);
    };
    eps[1].post(Dto::write(data, 16, remote))?;
    // Over iWARP the write itself succeeds, as the peer does not acknowledge it.
    let Event::Dto(dto) = evds[1].wait(Some(PATIENCE_US))? else {
        return Err(EIO);
    };
    ensure(dto.buffer.is_some(), "the write returns its buffer")?;
    let Event::Connection(_, Connection::Broken | Connection::Disconnected) =
        evds[1].wait(Some(PATIENCE_US))?
    else {
        return Err(EIO);
    };
    shared.read(64, &mut bytes[..16])?;
    ensure(bytes[..16] == [1; 16], "the bytes stay")
}

/// Two Endpoints take receives of one queue, whose other buffers are freed with it.
pub(crate) fn shared_receives(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?];
    let srq = pz.create_srq(16, 1)?;
    for context in 0..6 {
        srq.post(pz.buffer(8)?, context)?;
    }
    let mut takers = KVec::new();
    for number in 0..2 {
        let sender = pz.create_ep(Evds::from(&evds[0]), None)?;
        let taker = pz.create_ep_with_srq(Evds::from(&evds[1]), &srq, None)?;
        connect(&ia, [&evds[0], &evds[1]], [&sender, &taker])?;
        let mut message = pz.buffer(8)?;
        message.fill(number);
        sender.post(Dto::send(message, 8))?;
        completion(&evds[0])?;
        let got = completion(&evds[1])?;
        ensure(got.ep == taker.id(), "the event names its Endpoint")?;
        ensure(got.context == number.into(), "receives are in order")?;
        ensure(
            got.buffer.is_some_and(|buffer| buffer[..] == [number; 8]),
            "the message is in the buffer",
        )?;
        takers.push((sender, taker), GFP_KERNEL)?;
    }
    Ok(())
}
