// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State of an open file: one Interface Adapter (IA).

use crate::{
    dat::{
        base::Until,
        ia::{
            Consumer,
            Ia, //
        },
        prelude::*, //
    },
    model::ep::Close,
    sys::net::NetRef, //
};
use kernel::{
    new_mutex,
    sync::Mutex, //
};

/// State of an open file of `/dev/kdapl`.
#[pin_data]
pub(super) struct Client {
    /// IA of the file. `None` before `KDAPL_IA_OPEN` and after `KDAPL_IA_CLOSE`.
    #[pin]
    ia: Mutex<Option<Arc<Ia>>>,
}

impl Client {
    /// Makes the state of a newly opened file.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self { ia <- new_mutex!(None, "Client::ia") })
    }

    /// Returns the IA of the file.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE (IA) if the file has no open IA.
    pub(super) fn ia(&self) -> DatResult<Arc<Ia>> {
        let invalid = DatError::new(Kind::InvalidHandle, Subtype::InvalidHandleIa);
        self.ia.lock().clone().ok_or(invalid)
    }

    /// Opens the IA of the file.
    ///
    /// # Errors
    ///
    /// INVALID_STATE if the file already has one; otherwise those of [`Ia::open`].
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
            ia.close(Close::Abrupt, Until::Done)?;
            return Err(in_use);
        }
        Ok(ia)
    }

    /// Closes the IA of the file.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE (IA) if the file has no open IA; otherwise those of [`Ia::close`].
    pub(super) fn close(&self, close: Close, until: Until) -> DatResult {
        let ia = self.ia()?;
        ia.close(close, until)?;
        let mut slot = self.ia.lock();
        let closed = slot.take_if(|open| Arc::ptr_eq(open, &ia));
        drop(slot);
        drop(closed);
        Ok(())
    }
}
