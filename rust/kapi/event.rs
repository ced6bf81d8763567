// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Conversion of events to `DAT_EVENT`, the form in which kernel consumers receive them.

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
        direct_event::EventSink,
        event::{
            Event,
            Record, //
        },
    },
};
use kdapl_bindings as bindings;
use kernel::{
    ffi::c_void,
    sync::rcu, //
};

/// Converts a number to a C pointer that is never dereferenced.
fn pointer(value: u64) -> *mut c_void {
    core::ptr::without_provenance_mut(value as usize)
}

/// Returns the address and the size of the private data that the peer of an Endpoint (EP) sent with
/// its reply; null and 0 if there are none, or if the EP has been freed since.
fn peer_data(adapter: u32, ep: u64, size: u32) -> (*mut c_void, u32) {
    const NONE: (*mut c_void, u32) = (core::ptr::null_mut(), 0);
    if size == 0 {
        return NONE;
    }
    let guard = rcu::read_lock();
    let ep = Adapter::borrow_ia(&guard, adapter).and_then(|ia| ia.find::<Ep>(ep));
    ep.map_or(NONE, |ep| (ep.peer_data_at().cast_mut().cast(), size))
}

/// Returns the address of an adapter's IP address, valid while the adapter is open; null if it is
/// closed.
fn own_address(adapter: u32) -> *mut bindings::sockaddr {
    let guard = rcu::read_lock();
    Adapter::borrow_ia(&guard, adapter).map_or(core::ptr::null_mut(), |ia| {
        raw_address(&raw const ia.attr().address)
    })
}

/// Destination of an event for a kernel consumer.
///
/// The event of a data transfer operation (DTO) is written straight to the consumer's `DAT_EVENT`.
/// Other events are stored first and converted in [`Delivery::finish`], because the conversion
/// takes locks.
pub(super) struct Delivery<'a> {
    adapter: u32,
    taken: &'a Out<bindings::DAT_EVENT>,
    /// Event to be converted once the EVD's locks are released.
    record: Option<Record>,
}

impl<'a> Delivery<'a> {
    /// Makes a destination that writes to `taken`, for an event of the adapter with this number.
    pub(super) fn new(adapter: u32, taken: &'a Out<bindings::DAT_EVENT>) -> Self {
        Self {
            adapter,
            taken,
            record: None,
        }
    }

    /// Converts the stored event, if there is one. Called after an event was taken, without locks.
    pub(super) fn finish(&self) -> DatResult {
        match &self.record {
            None => Ok(()),
            Some(record) => deliver(self.adapter, record, |event| self.taken.put(event)),
        }
    }
}

impl EventSink for Delivery<'_> {
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

/// Converts a record that was taken from an EVD of the adapter with this number, and passes the
/// event to `take`. Called without locks.
pub(super) fn deliver(
    adapter: u32,
    record: &Record,
    take: impl FnOnce(bindings::DAT_EVENT),
) -> DatResult {
    let (event, evd) = Event::decode(record).ok_or(DatError::internal())?;
    take(made(adapter, evd, &event));
    Ok(())
}

/// Converts an event to its C form. Called without locks, except for a DTO event.
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
                // No message exceeds the limit of `u32`.
                transfered_length: u32::try_from(length).unwrap_or(u32::MAX),
                operation: operation.number(),
                rmr_context,
            },
        },
        event_extension_data: extension::event_data(operation, status, immed_data),
    }
}

/// Returns the event data of an event that is no DTO completion.
#[inline(never)]
fn other_data(adapter: u32, event: &Event) -> bindings::DAT_EVENT_DATA {
    let mut data = bindings::DAT_EVENT_DATA::default();
    match *event {
        Event::Dto { .. } => {}
        Event::RmrBind {
            rmr,
            cookie,
            status,
        } => {
            data.rmr_completion_event_data = bindings::DAT_RMR_BIND_COMPLETION_EVENT_DATA {
                rmr_handle: Adapter::raw_of(adapter, rmr),
                user_cookie: bindings::DAT_RMR_COOKIE { as_64: cookie },
                status: status.number(),
            };
        }
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
            let (private_data, size) = peer_data(adapter, ep, private_data_size);
            data.connect_event_data = bindings::DAT_CONNECTION_EVENT_DATA {
                ep_handle: Adapter::raw_of(adapter, ep),
                private_data_size: count(size),
                private_data,
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
