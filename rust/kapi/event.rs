// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Events as consumers in the kernel get them.

use super::{
    export::{
        count,
        raw_address, //
    },
    registry::Adapter, //
};
use crate::{
    dat::ep::Ep,
    model::{
        code::{
            DatError,
            DatResult, //
        },
        event::{
            Event,
            Record, //
        },
    },
};
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

/// A number in the guise of a pointer.
fn pointer(value: u64) -> *mut c_void {
    core::ptr::without_provenance_mut(value as usize)
}

/// Where what a peer sent with its answer lies.
fn peer_data(adapter: &Adapter, ep: u64, size: u32) -> *mut c_void {
    if size == 0 {
        return core::ptr::null_mut();
    }
    let ep = adapter.ia.objects().get::<Ep>(ep);
    ep.map_or(core::ptr::null_mut(), |ep| {
        ep.peer_data_at().cast_mut().cast()
    })
}

/// The event of a record that was taken from an EVD of this adapter.
pub(super) fn event(adapter: &Adapter, record: &Record) -> DatResult<bindings::DAT_EVENT> {
    let (event, evd) = Event::decode(record).ok_or(DatError::internal())?;
    let mut data = bindings::DAT_EVENT_DATA::default();
    match event {
        Event::Dto {
            ep,
            cookie,
            status,
            operation,
            length,
            rmr_context,
        } => {
            data.dto_completion_event_data = bindings::DAT_DTO_COMPLETION_EVENT_DATA {
                ep_handle: adapter.raw(ep),
                user_cookie: bindings::DAT_DTO_COOKIE { as_64: cookie },
                status: status.number(),
                // No message is longer.
                transfered_length: u32::try_from(length).unwrap_or(u32::MAX),
                operation: operation.number(),
                rmr_context,
            };
        }
        Event::Request {
            cr, psp, conn_qual, ..
        } => {
            data.cr_arrival_event_data = bindings::DAT_CR_ARRIVAL_EVENT_DATA {
                sp_handle: adapter.raw(psp),
                local_ia_address_ptr: raw_address(&raw const adapter.ia.attr().address),
                conn_qual,
                cr_handle: adapter.raw(cr),
                truncate_flag: 0,
            };
        }
        Event::Connection {
            ep,
            private_data_size,
            ..
        } => {
            data.connect_event_data = bindings::DAT_CONNECTION_EVENT_DATA {
                ep_handle: adapter.raw(ep),
                private_data_size: count(private_data_size),
                private_data: peer_data(adapter, ep, private_data_size),
            };
        }
        Event::Async { object, reason, .. } => {
            data.asynch_error_event_data = bindings::DAT_ASYNCH_ERROR_EVENT_DATA {
                dat_handle: adapter.raw(object),
                reason: count(reason),
            };
        }
        Event::Software { pointer: value } => {
            data.software_event_data = bindings::DAT_SOFTWARE_EVENT_DATA {
                pointer: pointer(value),
            };
        }
    }
    Ok(bindings::DAT_EVENT {
        event_number: event.number(),
        evd_handle: adapter.raw(evd),
        event_data: data,
    })
}
