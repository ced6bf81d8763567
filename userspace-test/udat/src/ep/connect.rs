// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connecting and disconnecting an Endpoint.

use super::Ep;
use crate::abi::*;
use crate::entry::entry;
use crate::evd::duration;
use crate::foreign::{address, bytes};
use crate::object::{find, find_as};
use crate::ret::{Result, Ret};
use libkdapl::{Close, ConnectOptions, Multipath, Qos, Subtype};

fn quality(qos: DAT_QOS) -> Result<Qos> {
    Ok(match qos {
        DAT_QOS_BEST_EFFORT => Qos::BestEffort,
        DAT_QOS_HIGH_THROUGHPUT => Qos::HighThroughput,
        DAT_QOS_LOW_LATENCY => Qos::LowLatency,
        DAT_QOS_ECONOMY => Qos::Economy,
        DAT_QOS_PREMIUM => Qos::Premium,
        _ => return Err(Ret::UNSUPPORTED),
    })
}

fn paths(flags: DAT_CONNECT_FLAGS) -> Result<Multipath> {
    Ok(match flags {
        0 => Multipath::No,
        1 => Multipath::Requested,
        2 => Multipath::Required,
        _ => return Err(Ret::UNSUPPORTED),
    })
}

#[allow(clippy::too_many_arguments, reason = "the prototype is DAT's")]
pub extern "C" fn connect(
    ep: DAT_EP_HANDLE,
    remote: DAT_IA_ADDRESS_PTR,
    qualifier: DAT_CONN_QUAL,
    timeout: DAT_TIMEOUT,
    size: DAT_COUNT,
    data: DAT_PVOID,
    qos: DAT_QOS,
    flags: DAT_CONNECT_FLAGS,
) -> DAT_RETURN {
    entry(|| {
        let ep = find::<Ep>(ep)?;
        let private_data = bytes(data, size, (5, 6))?;
        let options = ConnectOptions {
            timeout: duration(timeout),
            private_data: &private_data,
            qos: quality(qos)?,
            multipath: paths(flags)?,
            ..Default::default()
        };
        let qualifier = ep.ia.mapping().to_kernel(qualifier);
        Ok(ep.dat.connect_with(address(remote)?, qualifier, &options)?)
    })
}

pub extern "C" fn dup_connect(
    ep: DAT_EP_HANDLE,
    other: DAT_EP_HANDLE,
    timeout: DAT_TIMEOUT,
    size: DAT_COUNT,
    data: DAT_PVOID,
    qos: DAT_QOS,
) -> DAT_RETURN {
    entry(|| {
        let ep = find::<Ep>(ep)?;
        let other = find_as::<Ep>(other, Subtype::INVALID_HANDLE2)?;
        let private_data = bytes(data, size, (4, 5))?;
        Ok(ep.dat.dup_connect(&other.dat, duration(timeout), &private_data, quality(qos)?)?)
    })
}

pub extern "C" fn common_connect(
    ep: DAT_EP_HANDLE,
    remote: DAT_IA_ADDRESS_PTR,
    timeout: DAT_TIMEOUT,
    size: DAT_COUNT,
    data: DAT_PVOID,
) -> DAT_RETURN {
    entry(|| {
        let ep = find::<Ep>(ep)?;
        let private_data = bytes(data, size, (4, 5))?;
        Ok(ep.dat.common_connect(address(remote)?, duration(timeout), &private_data)?)
    })
}

pub extern "C" fn disconnect(ep: DAT_EP_HANDLE, flags: DAT_CLOSE_FLAGS) -> DAT_RETURN {
    entry(|| {
        let ep = find::<Ep>(ep)?;
        Ok(ep.dat.disconnect(match flags {
            DAT_CLOSE_ABRUPT_FLAG => Close::Abrupt,
            DAT_CLOSE_GRACEFUL_FLAG => Close::Graceful,
            _ => return Err(Ret::argument(2)),
        })?)
    })
}
