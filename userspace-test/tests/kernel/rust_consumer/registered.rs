// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory that requests register and invalidate.

use crate::{
    calls::{
        completion,
        pair, //
    },
    ensure,
    is_iwarp,
    open,
    scattered::{
        Pages,
        LISTS, //
    },
    streams,
    PATIENCE_US, //
};
use kdat::{
    Access,
    Completion,
    Connection,
    Dto,
    Ep,
    Evd,
    Event,
    Fmr,
    Operation,
    Pz,
    Remote, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::atomic::Relaxed, //
};

/// Offset of the first byte in its page.
const OFFSET: usize = 512;

/// Length of three pages from there.
const LENGTH: usize = 3 * PAGE_SIZE - OFFSET;

/// The peer writes to the first and the last byte.
fn write_ends(pz: &Pz, ep: &Ep, evd: &Evd, remote: Remote) -> Result {
    for offset in [0, LENGTH - 1] {
        let mut data = pz.buffer(1)?;
        data.fill(7);
        let address = remote.address + offset as u64;
        ep.post(Dto::write(data, 1, Remote { address, length: 1, ..remote }))?;
        completion(evd)?;
    }
    Ok(())
}

/// Registers memory, and returns how the peer has to name it.
fn register(fmr: &mut Fmr<Pages>, ep: &Ep) -> Result<Remote> {
    let registered = fmr.register(Pages::new(3, OFFSET)?, Access::Write, ep);
    Ok(registered.map_err(|(error, _)| error)?)
}

/// Ends a registration by a request.
fn invalidated(fmr: &Fmr<Pages>, ep: &Ep, evd: &Evd, context: u64) -> Result<Completion> {
    fmr.invalidate(ep, context)?;
    let ended = completion(evd)?;
    ensure(ended.operation == Operation::Invalidate, "the event is of the invalidation")?;
    ensure(ended.context == context, "the event has the context")?;
    Ok(ended)
}

/// Sends a message to the peer, which arrives after the registration was carried out.
fn tell(pz: &Pz, eps: [&Ep; 2], evds: [&Evd; 2]) -> Result {
    eps[1].post(Dto::receive(pz.buffer(4)?))?;
    eps[0].post(Dto::send(pz.buffer(4)?, 4))?;
    completion(evds[0])?;
    completion(evds[1])?;
    Ok(())
}

/// The peer ends a registration of the first Endpoint by a message.
fn invalidated_by_peer(
    pz: &Pz,
    eps: [&Ep; 2],
    evds: [&Evd; 2],
    remote: Remote,
) -> Result<Completion> {
    eps[0].post(Dto::receive(pz.buffer(4)?))?;
    eps[1].post(Dto::send(pz.buffer(4)?, 4).invalidating(remote.context))?;
    completion(evds[1])?;
    let ended = completion(evds[0])?;
    ensure(ended.invalidated == remote.context, "the receive names the context")?;
    Ok(ended)
}

/// A peer writes to registered memory. It is returned by the event of the invalidation, of this end
/// or of the peer, and by none of an earlier registration.
pub(crate) fn registered_memory(_: u32) -> Result {
    let ia = open()?;
    ensure(ia.limits()?.region as usize >= LENGTH, "the device has regions")?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?];
    let eps = pair(&ia, &pz, [&evds[0], &evds[1]])?;
    let mut fmr = pz.allocate_fmr(3)?;
    let mut earlier = None;
    for context in 0..3 {
        let remote = register(&mut fmr, &eps[0])?;
        ensure(remote.length as usize == LENGTH, "the length is that of the list")?;
        ensure(register(&mut fmr, &eps[0]).is_err(), "there is one registration at a time")?;
        tell(&pz, [&eps[0], &eps[1]], [&evds[0], &evds[1]])?;
        write_ends(&pz, &eps[1], &evds[1], remote)?;
        if let Some(earlier) = &earlier {
            ensure(fmr.ended(earlier).is_none(), "an earlier event returns nothing")?;
        }
        let ended = if context == 1 {
            invalidated_by_peer(&pz, [&eps[0], &eps[1]], [&evds[0], &evds[1]], remote)?
        } else {
            invalidated(&fmr, &eps[0], &evds[0], context)?
        };
        let memory = fmr.ended(&ended).ok_or(EIO)?;
        let bytes = [0, 1, LENGTH - 2, LENGTH - 1].map(|offset| memory.byte(offset));
        ensure(bytes == [Ok(7), Ok(0), Ok(0), Ok(7)], "the ends were written")?;
        ensure(!fmr.is_registered() && fmr.ended(&ended).is_none(), "the memory is returned once")?;
        earlier = Some(ended);
    }
    ensure(LISTS.load(Relaxed) == 0, "no memory is left")
}

/// The peer ends a registration, and so does this end before it knows. Only the first event returns
/// the memory: the second does not return that of the next registration.
pub(crate) fn late_invalidation(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?];
    let [first, second] = pair(&ia, &pz, [&evds[0], &evds[1]])?;
    let mut fmr = pz.allocate_fmr(3)?;
    let remote = register(&mut fmr, &first)?;
    tell(&pz, [&first, &second], [&evds[0], &evds[1]])?;
    first.post(Dto::receive(pz.buffer(4)?))?;
    // The peer has no receive for this message, which delays the invalidation.
    first.post(Dto::send(pz.buffer(4)?, 4))?;
    fmr.invalidate(&first, 9)?;
    second.post(Dto::send(pz.buffer(4)?, 4).invalidating(remote.context))?;
    completion(&evds[1])?;
    second.post(Dto::receive(pz.buffer(4)?))?;
    completion(&evds[1])?;
    let by_peer = completion(&evds[0])?;
    ensure(by_peer.invalidated == remote.context, "the receive names the context")?;
    drop(fmr.ended(&by_peer).ok_or(EIO)?);
    completion(&evds[0])?;
    // Until this event is queued, no memory can be registered.
    let by_this_end = completion(&evds[0])?;
    ensure(by_this_end.context == 9, "the event is of the invalidation")?;
    register(&mut fmr, &first)?;
    ensure(fmr.ended(&by_this_end).is_none(), "a late event returns nothing")
}

/// A registration is dropped while the peer may write, before its Endpoint and after it. The next
/// write of the peer fails.
pub(crate) fn dropped_registration(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?];
    let [first, second] = pair(&ia, &pz, [&evds[0], &evds[1]])?;
    let (mut one, mut two) = (pz.allocate_fmr(3)?, pz.allocate_fmr(3)?);
    let remote = register(&mut one, &first)?;
    register(&mut two, &first)?;
    tell(&pz, [&first, &second], [&evds[0], &evds[1]])?;
    write_ends(&pz, &second, &evds[1], remote)?;
    drop(one);
    ensure(LISTS.load(Relaxed) == 1, "the memory is dropped with the registration")?;
    second.post(Dto::write(pz.buffer(1)?, 1, Remote { length: 1, ..remote }))?;
    let Event::Dto(refused) = evds[1].wait(Some(PATIENCE_US))? else {
        return Err(EIO);
    };
    // Over iWARP the write is complete when TCP has it.
    ensure(is_iwarp() || !refused.is_success(), "the context is not valid any more")?;
    let Event::Connection(_, Connection::Broken | Connection::Disconnected) =
        evds[1].wait(Some(PATIENCE_US))?
    else {
        pr_err!("false: the connection is over\n");
        return Err(EIO);
    };
    drop(first);
    drop(two);
    ensure(LISTS.load(Relaxed) == 0, "no memory is left")
}

/// The driver does not destroy a region. Its memory is never dropped, also after the close.
pub(crate) fn lost_memory(_: u32) -> Result {
    let lists = LISTS.load(Relaxed);
    let ia = open()?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?];
    let [first, second] = pair(&ia, &pz, [&evds[0], &evds[1]])?;
    let mut fmr = pz.allocate_fmr(3)?;
    register(&mut fmr, &first)?;
    tell(&pz, [&first, &second], [&evds[0], &evds[1]])?;
    drop(fmr);
    drop((first, second, evds, pz, ia));
    ensure(LISTS.load(Relaxed) == lists + 1, "the memory stays")
}
