// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Events as consumers in the kernel get them.

use super::{
    export::{
        count,
        raw_address,
        Out, //
    },
    extension,
    registry::Adapter, //
};
use crate::{
    dat::{
        ep::Ep,
        prelude::*, //
    },
    model::{
        event::{
            Event,
            Record, //
        },
        hand::Sink, //
    },
};
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

/// A number in the guise of a pointer.
fn pointer(value: u64) -> *mut c_void {
    core::ptr::without_provenance_mut(value as usize)
}

/// Where what a peer sent with its answer lies.
fn peer_data(adapter: u32, ep: u64, size: u32) -> *mut c_void {
    if size == 0 {
        return core::ptr::null_mut();
    }
    let ep = Adapter::numbered(adapter).and_then(|this| this.ia.get::<Ep>(ep).ok());
    ep.map_or(core::ptr::null_mut(), |ep| {
        ep.peer_data_at().cast_mut().cast()
    })
}

/// Where the address of an adapter lies, for as long as it is open.
fn own_address(adapter: u32) -> *mut bindings::sockaddr {
    Adapter::numbered(adapter).map_or(core::ptr::null_mut(), |this| {
        raw_address(&raw const this.ia.attr().address)
    })
}

/// Where a consumer of the adapter with this number gets an event: that of a DTO is made there, and nowhere else
/// before.
pub(super) struct Delivery<'a> {
    adapter: u32,
    taken: &'a Out<bindings::DAT_EVENT>,
    /// An event that is to be made once there are no locks.
    record: Option<Record>,
}

impl<'a> Delivery<'a> {
    /// To `taken`.
    pub(super) fn new(adapter: u32, taken: &'a Out<bindings::DAT_EVENT>) -> Self {
        Self {
            adapter,
            taken,
            record: None,
        }
    }

    /// The event was taken: sees that it is there.
    #[inline]
    pub(super) fn finish(self) -> DatResult {
        match &self.record {
            None => Ok(()),
            Some(record) => deliver(self.adapter, record, |event| self.taken.put(event)),
        }
    }
}

impl Sink for Delivery<'_> {
    fn put(&mut self, evd: u64, event: &Event) {
        if let Event::Dto { .. } = event {
            self.taken.put(made(self.adapter, evd, event));
        } else {
            self.record = Some(event.encode(evd));
        }
    }

    fn put_record(&mut self, record: &Record) {
        self.record = Some(*record);
    }
}

/// Gives the event of a record, which was taken from an EVD of the adapter with this number, to `take`. Without
/// locks.
pub(super) fn deliver(
    adapter: u32,
    record: &Record,
    take: impl FnOnce(bindings::DAT_EVENT),
) -> DatResult {
    let (event, evd) = Event::decode(record).ok_or(DatError::internal())?;
    take(made(adapter, evd, &event));
    Ok(())
}

/// An event as consumers get it. Without locks, if it is not that of a DTO.
#[inline(always)]
fn made(adapter: u32, evd: u64, event: &Event) -> bindings::DAT_EVENT {
    let evd_handle = Adapter::raw_of(adapter, evd);
    let Event::Dto {
        ep,
        cookie,
        status,
        operation,
        length,
        rmr_context,
        immed_data,
    } = *event
    else {
        return bindings::DAT_EVENT {
            event_number: event.number(),
            evd_handle,
            event_data: other_data(adapter, event),
            event_extension_data: [0; 8],
        };
    };
    bindings::DAT_EVENT {
        event_number: event.number(),
        evd_handle,
        event_data: bindings::DAT_EVENT_DATA {
            dto_completion_event_data: bindings::DAT_DTO_COMPLETION_EVENT_DATA {
                ep_handle: Adapter::raw_of(adapter, ep),
                user_cookie: bindings::DAT_DTO_COOKIE { as_64: cookie },
                status: status.number(),
                // No message is longer.
                transfered_length: u32::try_from(length).unwrap_or(u32::MAX),
                operation: operation.number(),
                rmr_context,
            },
        },
        event_extension_data: extension::event_data(operation, status, immed_data),
    }
}

/// What the events have that tell of no DTO.
#[inline(never)]
fn other_data(adapter: u32, event: &Event) -> bindings::DAT_EVENT_DATA {
    let mut data = bindings::DAT_EVENT_DATA::default();
    match *event {
        Event::Dto { .. } => {}
        Event::Request {
            cr, psp, conn_qual, ..
        } => {
            data.cr_arrival_event_data = bindings::DAT_CR_ARRIVAL_EVENT_DATA {
                sp_handle: Adapter::raw_of(adapter, psp),
                local_ia_address_ptr: own_address(adapter),
                conn_qual,
                cr_handle: Adapter::raw_of(adapter, cr),
                truncate_flag: 0,
            };
        }
        Event::Connection {
            ep,
            private_data_size,
            ..
        } => {
            data.connect_event_data = bindings::DAT_CONNECTION_EVENT_DATA {
                ep_handle: Adapter::raw_of(adapter, ep),
                private_data_size: count(private_data_size),
                private_data: peer_data(adapter, ep, private_data_size),
            };
        }
        Event::Async { object, reason, .. } => {
            data.asynch_error_event_data = bindings::DAT_ASYNCH_ERROR_EVENT_DATA {
                dat_handle: Adapter::raw_of(adapter, object),
                reason: count(reason),
            };
        }
        Event::Software { pointer: value } => {
            data.software_event_data = bindings::DAT_SOFTWARE_EVENT_DATA {
                pointer: pointer(value),
            };
        }
    }
    data
}
