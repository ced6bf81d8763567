// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An open file: one Interface Adapter.

use crate::{
    dat::{
        ia::{
            Consumer,
            Ia, //
        },
        Until, //
    },
    model::{
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        ep::Close,
    },
    sys::net::NetRef,
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// What an open file stands for.
#[pin_data]
pub(super) struct Client {
    /// `None` before `KDAPL_IA_OPEN` and after `KDAPL_IA_CLOSE`.
    #[pin]
    ia: Mutex<Option<Arc<Ia>>>,
}

impl Client {
    /// A file that was just opened.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self { ia <- new_mutex!(None, "Client::ia") })
    }

    /// Its adapter.
    pub(super) fn ia(&self) -> DatResult<Arc<Ia>> {
        let invalid = DatError::new(Kind::InvalidHandle, Subtype::InvalidHandleIa);
        self.ia.lock().clone().ok_or(invalid)
    }

    /// Opens the adapter.
    ///
    /// # Errors
    ///
    /// INVALID_STATE if there is one already.
    pub(super) fn open(&self, name: &[u8], async_evd_qlen: i32) -> DatResult<Arc<Ia>> {
        let in_use = DatError::new(Kind::InvalidState, Subtype::InvalidStateIaInUse);
        if self.ia.lock().is_some() {
            return Err(in_use);
        }
        let ia = Ia::open(Consumer::Process, name, async_evd_qlen, NetRef::current()?)?;
        let lost_race = {
            let mut slot = self.ia.lock();
            match &*slot {
                Some(_) => true,
                None => {
                    *slot = Some(ia.clone());
                    false
                }
            }
        };
        if lost_race {
            Ia::close(&ia, Close::Abrupt, Until::Done)?;
            return Err(in_use);
        }
        Ok(ia)
    }

    /// Closes the adapter.
    pub(super) fn close(&self, close: Close, until: Until) -> DatResult {
        let ia = self.ia()?;
        Ia::close(&ia, close, until)?;
        let mut slot = self.ia.lock();
        let closed = slot.take_if(|open| Arc::ptr_eq(open, &ia));
        drop(slot);
        drop(closed);
        Ok(())
    }
}
