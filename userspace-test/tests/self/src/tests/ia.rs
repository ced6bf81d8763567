// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Opens, queries and closes interface adapters (IA).

use super::tests;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{errno, refused, refused_as, same};
use crate::hosts::ASYNC_QLEN;
use crate::machine;
use crate::raw;
use anyhow::{ensure, Result};
use libkdapl::raw::{call, Device};
use libkdapl::sys::*;
use libkdapl::{Close, EvdFlags, Ia, Subtype, Type};

tests! {
    #[Address]
    devices_are_listed, 10, "The device list names each device, its network device and its address";
    opens_by_both_names, 10, "An IA opens by the name of its RDMA device and by the name of its network device";
    unknown_names, 10, "An IA open with an unknown, empty or unterminated name finds no device";
    query_returns_all, 10, "An IA query returns names, address, transport and usable limits";
    bad_async_length, 10, "An IA does not open with a zero, negative or huge length of its asynchronous EVD";
    calls_before_open_are_refused, 10, "Before an IA is open, every call except open and list is refused";
    second_open, 10, "A second open of an IA on the same file is refused and changes nothing";
    graceful_close, 10, "A graceful close is refused while objects exist, and succeeds after the last is freed";
    abrupt_close, 10, "An abrupt close frees all objects, and the file can open an IA again";
    exit_closes, 10, "Closing the file frees all objects";
    many_ias, 20, "Many IAs are open at the same time, and are independent";
    pz_create_and_free, 10, "A PZ is created and freed once; a second free is refused";
}

fn devices_are_listed(context: &Context) -> Result<()> {
    let devices = libkdapl::devices()?;
    let ours = devices.iter().find(|d| d.name == context.client.device);
    let ours = ours.ok_or_else(|| anyhow::anyhow!("{} is not listed", context.client.device))?;
    ensure!(!ours.netdev.is_empty(), "no network device");
    same("address", ours.address, Some(context.client.address))?;
    same("ABI version", ours.abi_version, KDAPL_ABI_VERSION)?;
    ensure!(ours.node_guid != 0, "no GUID");
    ensure!(ours.port_active, "port is down");
    for index in [devices.len() as u32, 1000, u32::MAX] {
        let mut message = kdapl_device { index, ..Default::default() };
        let outcome = raw::call(&Device::open()?, call::DEVICE_GET, &mut message);
        refused(outcome, Type::PROVIDER_NOT_FOUND)?;
    }
    Ok(())
}

fn opens_by_both_names(context: &Context) -> Result<()> {
    for name in [&context.client.device, &context.client.netdev] {
        let ia = Ia::open(name, 1)?;
        let query = ia.query()?;
        same("adapter", query.adapter_name, context.client.device.clone())?;
        same("network device", query.netdev_name, context.client.netdev.clone())?;
        same("address", query.address.map(|a| a.ip()), Some(context.client.address))?;
        same("asynchronous EVD", query.async_evd, ia.async_evd().handle())?;
        ia.close(Close::Graceful)?;
    }
    Ok(())
}

fn unknown_names(context: &Context) -> Result<()> {
    let endless = "x".repeat(KDAPL_NAME_MAX as usize);
    let nearly = "x".repeat(KDAPL_NAME_MAX as usize - 1);
    for name in ["nosuch0", "", "lo", "rxe0 ", "../rxe0", &nearly] {
        refused(Ia::open(name, ASYNC_QLEN), Type::PROVIDER_NOT_FOUND)?;
    }
    let with_nul = format!("{}\0junk", context.client.device);
    for name in ["40", &with_nul] {
        let outcome = Ia::open(name, ASYNC_QLEN);
        refused_as(outcome, Type::PROVIDER_NOT_FOUND, Subtype::NAME_NOT_REGISTERED)?;
    }
    // A name without its NUL is an invalid message.
    errno(Ia::open(&endless, ASYNC_QLEN), libc::EINVAL)
}

fn query_returns_all(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let raw = ia.query()?.raw;
    ensure!(raw.max_eps > 0 && raw.max_evds > 0 && raw.max_pzs > 0 && raw.max_lmrs > 0, "{raw:?}");
    ensure!(raw.max_dto_per_ep >= 16 && raw.max_evd_qlen >= 16, "{raw:?}");
    ensure!(raw.max_iov_segments_per_dto >= 1, "{raw:?}");
    ensure!(raw.max_iov_segments_per_dto <= KDAPL_IOV_MAX, "{raw:?}");
    ensure!(raw.max_iov_segments_per_rdma_read >= 1, "{raw:?}");
    ensure!(raw.max_iov_segments_per_rdma_write >= 1, "{raw:?}");
    ensure!(raw.max_message_size >= 4096 && raw.max_rdma_size >= 4096, "{raw:?}");
    ensure!(raw.max_lmr_size >= 1 << 20, "{raw:?}");
    for max in
        [raw.max_private_data_connect, raw.max_private_data_accept, raw.max_private_data_reject]
    {
        ensure!((40..=KDAPL_PRIVATE_DATA_MAX).contains(&max), "{raw:?}");
    }
    Ok(())
}

fn bad_async_length(context: &Context) -> Result<()> {
    for qlen in [0, -1, i32::MIN, i32::MAX] {
        let opened = Ia::open(&context.client.device, qlen);
        refused_as(opened, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    }
    Ok(())
}

fn calls_before_open_are_refused(_: &Context) -> Result<()> {
    let device = Device::open()?;
    let ia = Subtype::INVALID_HANDLE_IA;
    let mut query = kdapl_ia_query::default();
    refused_as(raw::call(&device, call::IA_QUERY, &mut query), Type::INVALID_HANDLE, ia)?;
    let mut close = kdapl_ia_close::default();
    refused_as(raw::call(&device, call::IA_CLOSE, &mut close), Type::INVALID_HANDLE, ia)?;
    let mut handle = kdapl_handle::default();
    refused_as(raw::call(&device, call::PZ_CREATE, &mut handle), Type::INVALID_HANDLE, ia)?;
    let mut evd = kdapl_evd_create { qlen: 4, flags: KDAPL_EVD_DTO, ..Default::default() };
    refused_as(raw::call(&device, call::EVD_CREATE, &mut evd), Type::INVALID_HANDLE, ia)?;
    for free in [call::PZ_FREE, call::EVD_FREE, call::EP_FREE, call::PSP_FREE, call::LMR_FREE] {
        refused(raw::call(&device, free, &mut handle), Type::INVALID_HANDLE)?;
    }
    let mut wait = kdapl_evd_wait { threshold: 1, ..Default::default() };
    refused(raw::call(&device, call::EVD_WAIT, &mut wait), Type::INVALID_HANDLE)?;
    refused(raw::call(&device, call::EVD_DEQUEUE, &mut wait), Type::INVALID_HANDLE)
}

fn second_open(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    let mut open =
        kdapl_ia_open { abi_version: KDAPL_ABI_VERSION, async_evd_qlen: 4, ..Default::default() };
    open.name[..context.client.device.len()].copy_from_slice(context.client.device.as_bytes());
    let outcome = raw::call(ia.device(), call::IA_OPEN, &mut open);
    ensure!(matches!(outcome, Err(libkdapl::Error::Dat(_))), "the second open: {outcome:?}");
    pz.free()?;
    Ok(ia.close(Close::Graceful)?)
}

fn graceful_close(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let in_use = |ia: &Ia| {
        refused_as(ia.close(Close::Graceful), Type::INVALID_STATE, Subtype::INVALID_STATE_IA_IN_USE)
    };
    let pz = ia.create_pz()?;
    in_use(&ia)?;
    pz.free()?;
    let evd = ia.create_evd(EvdFlags::CR, 4)?;
    in_use(&ia)?;
    let psp = ia.create_psp(context.port(), &evd)?;
    in_use(&ia)?;
    psp.free()?;
    evd.free()?;
    let end = End::new(&ia, Shape::default())?;
    in_use(&ia)?;
    drop(end);
    ia.close(Close::Graceful)?;
    refused(ia.query(), Type::INVALID_HANDLE)
}

fn abrupt_close(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    end.receive(0, 64, 1)?;
    ia.close(Close::Abrupt)?;
    machine::no_objects_left(context.settings.scale)?;
    refused(end.ep.query(), Type::INVALID_HANDLE)?;
    refused(end.recv.dequeue(), Type::INVALID_HANDLE)?;
    refused(ia.create_pz(), Type::INVALID_HANDLE)?;
    // The file is again as it was after open(2).
    let mut open =
        kdapl_ia_open { abi_version: KDAPL_ABI_VERSION, async_evd_qlen: 4, ..Default::default() };
    open.name[..context.client.device.len()].copy_from_slice(context.client.device.as_bytes());
    raw::call(ia.device(), call::IA_OPEN, &mut open)?;
    // Handles of the first IA are invalid in the second.
    refused(end.ep.query(), Type::INVALID_HANDLE)?;
    refused(end.pz.free(), Type::INVALID_HANDLE)?;
    ia.query()?;
    Ok(())
}

fn exit_closes(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    ensure!(
        machine::count_of("ep")? == 1,
        "the endpoint is not counted: {:?}",
        machine::objects()?
    );
    // Skips the destructors: the kernel must free everything.
    // SAFETY: the descriptor is closed without the library, whose next use of it fails.
    unsafe { libc::close(std::os::fd::AsRawFd::as_raw_fd(&**ia.device())) };
    std::mem::forget((ia, end));
    machine::no_objects_left(context.settings.scale)
}

fn many_ias(context: &Context) -> Result<()> {
    let ias =
        (0..context.count(64).min(256)).map(|_| context.open()).collect::<Result<Vec<_>>>()?;
    let zones = ias.iter().map(Ia::create_pz).collect::<Result<Vec<_>, _>>()?;
    for (ia, pz) in ias.iter().zip(&zones) {
        ia.query()?;
        pz.free()?;
        ia.close(Close::Graceful)?;
    }
    Ok(())
}

fn pz_create_and_free(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    pz.free()?;
    refused_as(pz.free(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_PZ)?;
    let end = End::new(&ia, Shape::default())?;
    let in_use = Subtype::INVALID_STATE_PZ_IN_USE;
    refused_as(end.pz.free(), Type::INVALID_STATE, in_use)?;
    end.ep.free()?;
    refused_as(end.pz.free(), Type::INVALID_STATE, in_use)?;
    end.lmr.free()?;
    Ok(end.pz.free()?)
}
