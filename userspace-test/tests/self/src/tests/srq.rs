// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Shared receive queues (SRQs): their life, their refusals, and their counters.

use super::tests;
use crate::context::Context;
use crate::end::every_privilege;
use crate::expect::{refused, refused_as, same};
use anyhow::Result;
use libkdapl::{
    Buffer, CompletionFlags, EpChange, EpConfig, EvdFlags, Ia, Lmr, Privileges, Pz, Srq, Subtype,
    Type,
};

tests! {
    #[Transport]
    life, 20, "An SRQ is created, takes receives, and is freed with receives in it";
    attributes, 20, "An SRQ has the attributes that were asked for, and no impossible ones";
    #[Transport]
    posts_refused, 20, "An SRQ refuses receives that its zone or its size do not allow";
    in_use, 20, "An SRQ cannot be freed while an endpoint uses it, and its zone while it exists";
    endpoints_refused, 20, "An endpoint of an SRQ has its zone, and takes no receives of its own";
    #[Transport]
    resizes, 20, "An SRQ is shortened as far as its receives allow";
}

/// An SRQ with memory for its receives.
struct Queue {
    srq: Srq,
    lmr: Lmr,
    pz: Pz,
    ia: Ia,
}

impl Queue {
    fn new(context: &Context, receives: u32, segments: u32) -> Result<Self> {
        let ia = context.open()?;
        let pz = ia.create_pz()?;
        let srq = ia.create_srq(&pz, receives, segments)?;
        let lmr = ia.register(&pz, Buffer::new(4096)?, every_privilege(&ia)?)?;
        Ok(Self { srq, lmr, pz, ia })
    }

    fn post(&self, count: u64) -> Result<()> {
        for cookie in 0..count {
            self.srq.post_recv(&[self.lmr.segment(0, 64)], cookie)?;
        }
        Ok(())
    }

    /// Checks the numbers of available and of outstanding receives.
    fn has(&self, available: u32, outstanding: u32) -> Result<()> {
        let query = self.srq.query()?;
        same("available", query.available, available)?;
        same("outstanding", query.outstanding, outstanding)
    }
}

fn life(context: &Context) -> Result<()> {
    let queue = Queue::new(context, 10, 1)?;
    queue.has(0, 0)?;
    queue.post(3)?;
    queue.has(3, 3)?;
    queue.srq.free()?;
    refused_as(queue.srq.query(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_SRQ)?;
    refused_as(queue.srq.free(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_SRQ)?;
    queue.lmr.free()?;
    Ok(queue.pz.free()?)
}

fn attributes(context: &Context) -> Result<()> {
    let queue = Queue::new(context, 10, 3)?;
    let query = queue.srq.query()?;
    same("IA", query.ia, queue.ia.handle().0)?;
    same("PZ", query.pz, queue.pz.handle().0)?;
    same("receives", query.max_recv_dtos, 10)?;
    same("segments", query.max_recv_iov, 3)?;
    same("low watermark", query.low_watermark, 0)?;
    let limits = queue.ia.query()?.raw;
    let (dtos, iov) = (limits.max_recv_per_srq, limits.max_iov_segments_per_srq);
    queue.ia.create_srq(&queue.pz, dtos, iov)?;
    for (dtos, iov) in [(0, 1), (1, 0), (dtos + 1, 1), (1, iov + 1), (u32::MAX, u32::MAX)] {
        let created = queue.ia.create_srq(&queue.pz, dtos, iov);
        refused_as(created, Type::INVALID_PARAMETER, Subtype::INVALID_ARG3)?;
    }
    Ok(())
}

fn posts_refused(context: &Context) -> Result<()> {
    let queue = Queue::new(context, 4, 2)?;
    let segment = queue.lmr.segment(0, 8);
    let three = queue.srq.post_recv(&[segment; 3], 0);
    refused_as(three, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    let beyond = queue.srq.post_recv(&[queue.lmr.segment(4090, 8)], 0);
    refused_as(beyond, Type::PROTECTION_VIOLATION, Subtype::PROTECTION_WRITE)?;
    let other = queue.ia.create_pz()?;
    let foreign = queue.ia.register(&other, Buffer::new(64)?, Privileges::ALL)?;
    let foreign = queue.srq.post_recv(&[foreign.segment(0, 8)], 0);
    refused_as(foreign, Type::PROTECTION_VIOLATION, Subtype::PROTECTION_WRITE)?;
    let constant = queue.ia.register(&queue.pz, Buffer::new(64)?, Privileges::LOCAL_READ)?;
    let constant = queue.srq.post_recv(&[constant.segment(0, 8)], 0);
    refused_as(constant, Type::PRIVILEGES_VIOLATION, Subtype::PRIVILEGES_WRITE)?;
    queue.has(0, 0)?;
    queue.post(4)?;
    let fifth = queue.srq.post_recv(&[], 0);
    refused_as(fifth, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_SRQ)?;
    queue.has(4, 4)
}

fn in_use(context: &Context) -> Result<()> {
    let queue = Queue::new(context, 4, 1)?;
    refused_as(queue.pz.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_PZ_IN_USE)?;
    let evd = queue.ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, 16)?;
    let config = EpConfig {
        pz: Some(&queue.pz),
        recv: Some(&evd),
        request: Some(&evd),
        connect: Some(&evd),
        srq: Some(&queue.srq),
        attr: None,
    };
    let eps = [queue.ia.create_ep_with(&config)?, queue.ia.create_ep_with(&config)?];
    for ep in eps {
        same("SRQ", ep.query()?.raw.srq, queue.srq.handle().0)?;
        let freed = queue.srq.free();
        refused_as(freed, Type::INVALID_STATE, Subtype::INVALID_STATE_SRQ_IN_USE)?;
        ep.free()?;
    }
    Ok(queue.srq.free()?)
}

fn endpoints_refused(context: &Context) -> Result<()> {
    let queue = Queue::new(context, 4, 1)?;
    let evd = queue.ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, 16)?;
    let other = queue.ia.create_pz()?;
    let config = EpConfig {
        pz: Some(&other),
        recv: Some(&evd),
        request: Some(&evd),
        connect: Some(&evd),
        srq: Some(&queue.srq),
        attr: None,
    };
    let created = queue.ia.create_ep_with(&config);
    refused_as(created, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    let ep = queue.ia.create_ep_with(&EpConfig { pz: Some(&queue.pz), ..config })?;
    let posted = ep.post_recv(&[], 0, CompletionFlags::default());
    refused(posted, Type::INVALID_STATE)?;
    let changed = ep.modify(EpChange::new().pz(&other));
    refused_as(changed, Type::INVALID_PARAMETER, Subtype::INVALID_ARG3)?;
    ep.modify(EpChange::new().max_request_dtos(5).max_recv_dtos(7))?;
    let unconfigured = queue.ia.create_ep_with(&EpConfig { pz: None, ..config })?;
    let changed = unconfigured.modify(EpChange::new().pz(&other));
    refused_as(changed, Type::INVALID_PARAMETER, Subtype::INVALID_ARG3)?;
    unconfigured.modify(EpChange::new().pz(&queue.pz))?;
    let foreign = context.open()?;
    let pz = foreign.create_pz()?;
    let srq = foreign.create_srq(&pz, 4, 1)?;
    let created = queue.ia.create_ep_with(&EpConfig { srq: Some(&srq), ..config });
    refused_as(created, Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_SRQ)
}

fn resizes(context: &Context) -> Result<()> {
    let queue = Queue::new(context, 16, 1)?;
    queue.post(6)?;
    refused_as(queue.srq.resize(0), Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    let most = queue.ia.query()?.raw.max_recv_per_srq;
    refused_as(queue.srq.resize(most + 1), Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    refused(queue.srq.resize(5), Type::INVALID_STATE)?;
    queue.srq.resize(8)?;
    same("receives", queue.srq.query()?.max_recv_dtos, 8)?;
    queue.srq.set_low_watermark(7)?;
    refused(queue.srq.resize(6), Type::INVALID_STATE)?;
    let high = queue.srq.set_low_watermark(9);
    refused_as(high, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    queue.srq.set_low_watermark(0)?;
    queue.srq.resize(6)?;
    refused(queue.srq.post_recv(&[], 0), Type::INSUFFICIENT_RESOURCES)?;
    queue.srq.resize(16)?;
    queue.post(10)?;
    queue.has(16, 16)?;
    match queue.srq.resize(100) {
        Ok(()) => queue.post(84),
        // The driver of software iWARP cannot lengthen a queue.
        unsupported => refused(unsupported, Type::MODEL_NOT_SUPPORTED),
    }
}
