// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts in contexts that cannot sleep, and of as many DTOs as Endpoints may have.

use crate::{
    calls::{
        completion,
        pair, //
    },
    contexts::{
        in_context,
        CONTEXTS, //
    },
    ensure,
    is_iwarp,
    open,
    scattered::Pages,
    streams, //
};
use kdat::{
    Access,
    Buffer,
    Close,
    Dto,
    Ep,
    EpAttr,
    Evd,
    Evds,
    Fmr,
    Operation,
    Pz,
    Remote,
    Srq, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// DTOs of a list, more than kDAPL gives to the device at once.
const LIST: usize = 10;

/// Bytes of a message.
const MESSAGE: usize = 4;

/// Endpoints, and what is posted in each context.
struct Posts {
    eps: [Ep; 2],
    srq: Srq,
    buffers: KVec<Buffer>,
    receives: KVec<Dto>,
    sends: KVec<Dto>,
    fmr: Fmr<Pages>,
    pages: Option<Pages>,
    /// Memory for RDMA writes and reads.
    remote: Option<Remote>,
}

impl Posts {
    /// Makes all that is posted.
    fn prepare(&mut self, pz: &Pz) -> Result {
        self.buffers = pz.buffers(5, MESSAGE)?;
        for (receive, send) in
            pz.buffers(LIST, MESSAGE)?.into_iter().zip(pz.buffers(LIST, MESSAGE)?)
        {
            self.receives.push(Dto::receive(receive), GFP_KERNEL)?;
            self.sends.push(Dto::send(send, MESSAGE), GFP_KERNEL)?;
        }
        self.pages = Some(Pages::new(3, 512)?);
        Ok(())
    }

    /// Posts a receive and a send, lists of both, a receive of the SRQ, an RDMA write and a read,
    /// and the requests that register memory and invalidate it.
    fn post(&mut self) -> kdat::Result {
        let [first, second] = &self.eps;
        let mut buffer = || self.buffers.pop().ok_or(refused());
        second.post(Dto::receive(buffer()?).context(1))?;
        first.post(Dto::send(buffer()?, MESSAGE).context(2))?;
        second.post_list(&mut self.receives)?;
        first.post_list(&mut self.sends)?;
        self.srq.post(buffer()?, 3)?;
        if let Some(remote) = self.remote {
            first.post(Dto::write(buffer()?, MESSAGE, remote).context(4))?;
            first.post(Dto::read(buffer()?, MESSAGE, remote).context(5))?;
        }
        let pages = self.pages.take().ok_or(refused())?;
        let registered = self.fmr.register(pages, Access::Write, first);
        registered.map_err(|(error, _)| error)?;
        self.fmr.invalidate(first, 6)
    }

    /// Takes the completions.
    fn completed(&mut self, evds: [&Evd; 2], round: u32) -> Result {
        for _ in 0..1 + LIST {
            let received = completion(evds[1])?;
            ensure(received.operation == Operation::Receive, "a receive has completed")?;
            ensure(received.buffer.is_some(), "the receive returns its buffer")?;
        }
        let transfers = if self.remote.is_some() { 2 } else { 0 };
        for _ in 0..1 + LIST + transfers {
            ensure(completion(evds[0])?.buffer.is_some(), "the request returns its buffer")?;
        }
        let ended = completion(evds[0])?;
        ensure(ended.context == 6, "the invalidation is the last")?;
        ensure(self.fmr.ended(&ended).is_some(), "the memory is back")?;
        ensure(self.srq.outstanding()? == round + 1, "the SRQ has one receive more")
    }
}

/// Receives of an Endpoint, more than the adapter has slots to spare.
const RECEIVES: u32 = 700;

/// An Endpoint has slots for all its receives, each time, and none for more. Its free returns
/// them for the next one, and another Endpoint of the adapter has its own.
pub(crate) fn full_queues(_: u32) -> Result {
    let ia = open()?;
    let (pz, evd) = (ia.create_pz()?, ia.create_evd(streams(), 64)?);
    let attr = EpAttr { max_recv_dtos: RECEIVES as i32, ..EpAttr::default() };
    let mut kept = KVec::new();
    for round in 0..10 {
        let ep = pz.create_ep(Evds::from(&evd), Some(&attr))?;
        let granted = ep.attr()?.max_recv_dtos as usize;
        ensure(granted >= RECEIVES as usize, "the Endpoint has as many receives")?;
        for buffer in pz.buffers(granted, MESSAGE)? {
            ep.post(Dto::receive(buffer))?;
        }
        let Err(more) = ep.post(Dto::receive(pz.buffer(MESSAGE)?)) else {
            return ensure(false, "no more receives are posted");
        };
        ensure(more.buffer.is_some(), "the refused receive returns its buffer")?;
        if round < 2 {
            kept.push(ep, GFP_KERNEL)?;
        }
    }
    Ok(())
}

/// Returns an error that no call returns.
fn refused() -> kdat::Error {
    kernel::alloc::AllocError.into()
}

/// Each kind of post is made under a spinlock, by an RCU reader, with interrupts off, and in
/// interrupts.
pub(crate) fn posts(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?];
    let shared = match is_iwarp() {
        true => None,
        false => Some(pz.share(PAGE_SIZE, Access::ReadWrite)?),
    };
    let mut posts = Posts {
        eps: pair(&ia, &pz, [&evds[0], &evds[1]])?,
        srq: pz.create_srq(16, 1)?,
        buffers: KVec::new(),
        receives: KVec::new(),
        sends: KVec::new(),
        fmr: pz.allocate_fmr(3)?,
        pages: None,
        remote: shared.as_ref().map(|shared| Remote { length: MESSAGE as u32, ..shared.remote() }),
    };
    for context in 0..CONTEXTS {
        posts.prepare(&pz)?;
        let mut outcome = Ok(());
        in_context(context, || outcome = posts.post());
        outcome.inspect_err(|error| pr_err!("in the context {context}: {error}\n"))?;
        posts.completed([&evds[0], &evds[1]], context)?;
    }
    Ok(())
}

/// Resets of an Endpoint. Its completion queue has room for the receives of all of them.
const RESETS: usize = 10;

/// Receives of that Endpoint, for most of which its Event Dispatcher has no room.
const UNHEARD: i32 = 200;

/// After each reset an Endpoint has slots for all its receives again, also if the events of the
/// receives before had no room.
pub(crate) fn resets(_: u32) -> Result {
    let ia = open()?;
    let (pz, evd) = (ia.create_pz()?, ia.create_evd(streams(), 32)?);
    let attr = EpAttr { max_recv_dtos: UNHEARD, ..EpAttr::default() };
    let ep = pz.create_ep(Evds::from(&evd), Some(&attr))?;
    let granted = ep.attr()?.max_recv_dtos as usize;
    for _ in 0..RESETS {
        for buffer in pz.buffers(granted, MESSAGE)? {
            ep.post(Dto::receive(buffer))?;
        }
        ep.disconnect(Close::Abrupt)?;
        ep.reset()?;
        while evd.dequeue().is_ok() {}
    }
    Ok(())
}
