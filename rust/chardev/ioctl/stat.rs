// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Statistics of the open Interface Adapters (IAs).

use super::CallResult;
use crate::{
    chardev::client::Client,
    dat::prelude::*,
    sys::adapters, //
};
use kdapl_bindings as uapi;

pub(super) fn ia_stat(_: &Client, message: &mut uapi::kdapl_ia_stat) -> CallResult {
    let found = adapters::next_visible(message.serial);
    let (serial, stat) = found.ok_or(DatError::new(
        Kind::ProviderNotFound,
        Subtype::NameNotRegistered,
    ))?;
    let (objects, connections, traffic) = (stat.objects, stat.connections, stat.traffic);
    *message = uapi::kdapl_ia_stat {
        hdr: message.hdr,
        serial,
        age_ns: stat.age_ns,
        requests: traffic.requests.dtos,
        request_bytes: traffic.requests.bytes,
        receives: traffic.receives.dtos,
        receive_bytes: traffic.receives.bytes,
        failures: traffic.failures,
        connections_established: connections.established,
        connections_broken: connections.broken,
        events_queued: stat.events,
        memory: stat.memory,
        pid: stat.owner.pid,
        uid: stat.owner.uid,
        is_kernel: stat.owner.is_kernel.into(),
        connections: connections.current,
        requests_outstanding: stat.requests,
        receives_outstanding: stat.receives,
        waiters: stat.waiters,
        pzs: objects.pzs,
        lmrs: objects.lmrs,
        rmrs: objects.rmrs,
        cnos: objects.cnos,
        evds: objects.evds,
        eps: objects.eps,
        srqs: objects.srqs,
        psps: objects.psps,
        rsps: objects.rsps,
        csps: objects.csps,
        crs: objects.crs,
        name: stat.owner.name,
        adapter_name: stat.adapter_name,
    };
    Ok(())
}
