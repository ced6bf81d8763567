// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Conversion of events to DAT's structures.

use crate::abi::*;
use crate::cr::{Cr, PrivateData};
use crate::ep::Ep;
use crate::evd::Evd;
use crate::extension;
use crate::foreign;
use crate::ret::{Result, Ret};
use crate::service;
use libkdapl::sys::KDAPL_PRIVATE_DATA_MAX;
use libkdapl::{ConnectionEvent, DtoEvent, Event, Handle};
use std::ptr;

/// Private data of an event that has none. Programs read them without a look at their size:
/// Debian's provider always has an address, too.
static NOTHING: PrivateData = [0; KDAPL_PRIVATE_DATA_MAX as usize];

/// Converts an event that was taken from `evd`.
pub fn of(evd: &Evd, event: Event) -> Result<DAT_EVENT> {
    let mut extension_data = [0; 8];
    let (number, data) = match event {
        Event::Dto(dto) if dto.operation.is_extension() => {
            extension_data = extension::event_data(&dto);
            (DAT_IB_DTO_EVENT, dto_data(evd, &dto))
        }
        Event::Dto(dto) => (DAT_DTO_COMPLETION_EVENT, dto_data(evd, &dto)),
        Event::ConnectionRequest { cr, service_point, conn_qual, .. } => {
            (DAT_CONNECTION_REQUEST_EVENT, request_data(evd, cr, service_point, conn_qual)?)
        }
        Event::Connection { event, ep, private_data_size } => {
            (event.number(), connection_data(evd, event, ep, private_data_size))
        }
        Event::RmrBind { rmr, cookie, status } => (
            DAT_RMR_BIND_COMPLETION_EVENT,
            DAT_EVENT_DATA {
                rmr_completion_event_data: DAT_RMR_BIND_COMPLETION_EVENT_DATA {
                    rmr_handle: evd.ia.handle_of(rmr),
                    user_cookie: DAT_CONTEXT { as_64: cookie },
                    status: status.number(),
                },
            },
        ),
        Event::Async { event, object, reason } => (event.number(), async_data(evd, object, reason)),
        Event::Software { pointer } => (
            DAT_SOFTWARE_EVENT,
            DAT_EVENT_DATA {
                software_event_data: DAT_SOFTWARE_EVENT_DATA {
                    pointer: pointer as usize as DAT_PVOID,
                },
            },
        ),
        Event::Unknown { number } => (number, DAT_EVENT_DATA::default()),
    };
    Ok(DAT_EVENT {
        event_number: number,
        evd_handle: evd.cell.handle(),
        event_data: data,
        event_extension_data: extension_data,
    })
}

fn dto_data(evd: &Evd, dto: &DtoEvent) -> DAT_EVENT_DATA {
    DAT_EVENT_DATA {
        dto_completion_event_data: DAT_DTO_COMPLETION_EVENT_DATA {
            ep_handle: evd.ia.handle_of(dto.ep),
            user_cookie: DAT_CONTEXT { as_64: dto.cookie },
            status: dto.status.number(),
            // No DTO exceeds the range of the field.
            transfered_length: dto.length as DAT_SEG_LENGTH,
            operation: dto.operation.number(),
            rmr_context: dto.rmr_context,
        },
    }
}

/// Converts a connection request and creates a handle for it. The program has to answer the
/// request.
fn request_data(
    evd: &Evd,
    cr: libkdapl::Cr,
    service_point: Handle,
    conn_qual: u64,
) -> Result<DAT_EVENT_DATA> {
    let sp = service::of_request(&evd.ia, service_point, conn_qual);
    let cr = Cr::adopt(&evd.ia, cr, sp.may_bring_ep)?;
    Ok(DAT_EVENT_DATA {
        cr_arrival_event_data: DAT_CR_ARRIVAL_EVENT_DATA {
            sp_handle: DAT_SP_HANDLE { psp_handle: sp.handle },
            local_ia_address_ptr: evd.ia.address(),
            conn_qual: sp.qualifier,
            cr_handle: cr.cell.handle(),
            truncate_flag: DAT_FALSE,
        },
    })
}

fn connection_data(evd: &Evd, event: ConnectionEvent, key: Handle, size: u32) -> DAT_EVENT_DATA {
    let ep = evd.ia.object_of::<Ep>(key).filter(|_| size != 0);
    // The event has been taken, so it is delivered without private data if they cannot be read:
    // another thread may have freed the Endpoint.
    let private = ep.and_then(|ep| ep.take_private_data(event).ok());
    let (length, address) = private.unwrap_or((0, ptr::from_ref(&NOTHING).cast_mut().cast()));
    DAT_EVENT_DATA {
        connect_event_data: DAT_CONNECTION_EVENT_DATA {
            ep_handle: evd.ia.handle_of(key),
            private_data_size: length,
            private_data: address,
        },
    }
}

fn async_data(evd: &Evd, object: Handle, reason: u32) -> DAT_EVENT_DATA {
    DAT_EVENT_DATA {
        asynch_error_event_data: DAT_ASYNCH_ERROR_EVENT_DATA {
            dat_handle: evd.ia.handle_of(object),
            reason: reason as DAT_COUNT,
        },
    }
}

/// Returns the pointer in a software event of the program.
pub fn software(event: &DAT_EVENT) -> Result<u64> {
    if event.event_number != DAT_SOFTWARE_EVENT {
        return Err(Ret::argument(2));
    }
    Ok(foreign::software_pointer(event))
}
