// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Rows of calls on adapters, memory, EVDs and CNOs.

use super::{rows, Row};
use crate::context::Context;
use crate::end::{every_privilege, End, Shape};
use crate::hosts::ASYNC_QLEN;
use crate::raw;
use anyhow::Result;
use libkdapl::raw::{call, Device};
use libkdapl::sys::{kdapl_device, kdapl_ia_open, kdapl_ia_stat, kdapl_port, KDAPL_ABI_VERSION};
use libkdapl::{Buffer, Close, Cno, Ep, EpConfig, Error, Evd, EvdFlags, Ia, Rmr, Srq, Type};
use std::sync::Arc;
use std::time::Duration;

pub const ROWS: &[Row] = rows! {
    DEVICE_GET: device, |device| {
        raw::call(&device.0, call::DEVICE_GET, &mut kdapl_device::default())
    };
    PORT_GET: device, |device| {
        raw::call(&device.0, call::PORT_GET, &mut kdapl_port { port: 1, ..Default::default() })
    };
    IA_STAT: open, |ia| {
        raw::call(ia.device(), call::IA_STAT, &mut kdapl_ia_stat::default())
    };
    IA_OPEN: device, |device| raw::call(&device.0, call::IA_OPEN, &mut device.1);
    IA_QUERY: open, |ia| ia.query();
    IA_CLOSE "graceful": open, |ia| ia.close(Close::Graceful);
    IA_CLOSE "abrupt": objects, |objects| objects.end.ia.close(Close::Abrupt);
    PZ_CREATE: open, |ia| ia.create_pz();
    PZ_FREE: with_pz, |(pz, _)| pz.free();
    LMR_CREATE: objects, |objects| {
        let Objects { end, buffer, .. } = objects;
        end.ia.register(&end.pz, buffer.clone(), libkdapl::Privileges::ALL)
    };
    LMR_FREE: objects, |objects| objects.end.lmr.free();
    LMR_QUERY: objects, |objects| objects.end.lmr.query();
    RMR_CREATE: objects, |objects| objects.end.ia.create_rmr(&objects.end.pz);
    RMR_FREE: objects, |objects| objects.rmr.free();
    RMR_QUERY: objects, |objects| objects.rmr.query();
    EVD_CREATE "of software": open, |ia| ia.create_evd(EvdFlags::SOFTWARE, 4);
    EVD_CREATE "of all streams": open, |ia| ia.create_evd(everything(), 500);
    EVD_FREE: objects, |objects| objects.evd.free();
    EVD_QUERY: objects, |objects| objects.evd.query();
    EVD_WAIT "for an event": posted, |objects| objects.evd.wait(None, 1);
    EVD_WAIT "with a time-out": objects, |objects| fails_as(objects.evd.wait(ONE_MILLISECOND, 1), Error::is_timeout);
    EVD_DEQUEUE: posted, |objects| objects.evd.dequeue();
    EVD_POST_SE: objects, |objects| objects.evd.post_se(7);
    EVD_MODIFY_CNO "to one": objects, |objects| objects.evd.modify_cno(Some(&objects.cno));
    EVD_MODIFY_CNO "to none": joined, |objects| objects.evd.modify_cno(None);
    EVD_ENABLE: disabled, |objects| objects.evd.enable();
    EVD_DISABLE: objects, |objects| objects.evd.disable();
    EVD_SET_UNWAITABLE: objects, |objects| objects.evd.set_unwaitable();
    EVD_CLEAR_UNWAITABLE: objects, |objects| objects.evd.clear_unwaitable();
    EVD_RESIZE "of software": posted, |objects| objects.evd.resize(1000);
    EVD_RESIZE "of DTOs": objects, |objects| objects.end.recv.resize(5000);
    EVD_FD: objects, |objects| objects.evd.file();
    SRQ_CREATE: objects, |objects| objects.end.ia.create_srq(&objects.end.pz, 300, 2);
    SRQ_FREE: with_srq, |(srq, _)| srq.free();
    SRQ_POST_RECV: with_srq, |(srq, objects)| srq.post_recv(&[objects.end.lmr.segment(0, 8)], 2);
    SRQ_QUERY: with_endpoint_of_srq, |(_, (srq, _))| srq.query();
    SRQ_RESIZE: with_endpoint_of_srq, |(_, (srq, _))| resized(srq.resize(900));
    SRQ_SET_LW: with_srq, |(srq, _)| srq.set_low_watermark(5);
    EP_CREATE "with an SRQ": with_srq, endpoint_of_srq;
    CNO_CREATE: open, |ia| ia.create_cno(None);
    CNO_FREE: objects, |objects| objects.cno.free();
    CNO_QUERY: objects, |objects| objects.cno.query();
    CNO_WAIT "for an event": triggered, |objects| objects.cno.wait(None);
    CNO_WAIT "with a time-out": objects, |objects| fails_as(objects.cno.wait(ONE_MILLISECOND), Error::is_empty);
    CNO_WAIT "for an agent": objects, |objects| {
        fails_as(objects.cno.take_for_agent(), Error::is_empty)
    };
    CNO_TRIGGER: objects, |objects| objects.cno.trigger();
    CNO_MODIFY_AGENT: objects, |objects| objects.cno.modify_agent(None);
    CNO_FD: objects, |objects| objects.cno.file();
};

const ONE_MILLISECOND: Option<Duration> = Some(Duration::from_millis(1));

fn everything() -> EvdFlags {
    EvdFlags::SOFTWARE | EvdFlags::CR | EvdFlags::DTO | EvdFlags::CONNECTION
}

/// Opens a device file without an adapter, and prepares the message that opens the client's.
fn device(context: &Context) -> Result<(Device, kdapl_ia_open)> {
    let mut message = kdapl_ia_open {
        abi_version: KDAPL_ABI_VERSION,
        async_evd_qlen: ASYNC_QLEN,
        ..Default::default()
    };
    let name = context.client.device.as_bytes();
    message.name[..name.len()].copy_from_slice(name);
    Ok((Device::open()?, message))
}

fn open(context: &Context) -> Result<Ia> {
    context.open()
}

fn with_pz(context: &Context) -> Result<(libkdapl::Pz, Ia)> {
    let ia = context.open()?;
    Ok((ia.create_pz()?, ia))
}

/// Objects without a connection.
struct Objects {
    evd: Evd,
    cno: Cno,
    buffer: Arc<Buffer>,
    rmr: Rmr,
    end: End,
}

fn objects(context: &Context) -> Result<Objects> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    every_privilege(&ia)?;
    end.receive(0, 64, 1)?;
    let buffer = Arc::new(Buffer::new(300 << 10)?);
    Ok(Objects {
        evd: ia.create_evd(EvdFlags::SOFTWARE, 8)?,
        cno: ia.create_cno(None)?,
        buffer,
        rmr: ia.create_rmr(&end.pz)?,
        end,
    })
}

/// Creates the objects, and an SRQ with a receive.
fn with_srq(context: &Context) -> Result<(Srq, Objects)> {
    let objects = objects(context)?;
    let srq = objects.end.ia.create_srq(&objects.end.pz, 8, 1)?;
    srq.post_recv(&[objects.end.lmr.segment(0, 8)], 1)?;
    Ok((srq, objects))
}

fn endpoint_of_srq((srq, objects): &mut (Srq, Objects)) -> Result<Ep, Error> {
    let end = &objects.end;
    end.ia.create_ep_with(&EpConfig {
        pz: Some(&end.pz),
        recv: Some(&end.recv),
        request: Some(&end.request),
        connect: Some(&end.connect),
        srq: Some(srq),
        attr: None,
    })
}

fn with_endpoint_of_srq(context: &Context) -> Result<(Ep, (Srq, Objects))> {
    let mut objects = with_srq(context)?;
    Ok((endpoint_of_srq(&mut objects)?, objects))
}

/// Accepts the result of a driver that cannot resize.
fn resized(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.kind() == Some(Type::MODEL_NOT_SUPPORTED) => Ok(()),
        other => other,
    }
}

/// Creates the objects, and posts two events.
fn posted(context: &Context) -> Result<Objects> {
    let objects = objects(context)?;
    objects.evd.post_se(1)?;
    objects.evd.post_se(2)?;
    Ok(objects)
}

/// Links the EVD to the CNO.
fn joined(context: &Context) -> Result<Objects> {
    let objects = objects(context)?;
    objects.evd.modify_cno(Some(&objects.cno))?;
    Ok(objects)
}

/// Lets the CNO have a trigger.
fn triggered(context: &Context) -> Result<Objects> {
    let objects = joined(context)?;
    objects.evd.post_se(1)?;
    Ok(objects)
}

fn disabled(context: &Context) -> Result<Objects> {
    let objects = posted(context)?;
    objects.evd.disable()?;
    Ok(objects)
}

/// Accepts the result of a wait without an event, which is this error.
fn fails_as<T>(outcome: Result<T, Error>, is_expected: fn(&Error) -> bool) -> Result<(), Error> {
    match outcome {
        Err(error) if is_expected(&error) => Ok(()),
        other => other.map(drop),
    }
}
