// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Connection Requests (CRs).

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::ep::Ep;
use crate::foreign::{self, put, Lent};
use crate::ia::Ia;
use crate::object::{find, find_or_null};
use crate::pz::fields;
use crate::ret::Result;
use libkdapl::sys::{kdapl_sockaddr, KDAPL_PRIVATE_DATA_MAX};
use libkdapl::{CrQuery, Handle, Subtype};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Buffer for private data of the maximum size.
pub type PrivateData = [u8; KDAPL_PRIVATE_DATA_MAX as usize];

/// Copies `data` to a buffer of the maximum size.
pub fn padded(data: &[u8]) -> PrivateData {
    let mut padded = [0; KDAPL_PRIVATE_DATA_MAX as usize];
    let length = data.len().min(padded.len());
    padded[..length].copy_from_slice(&data[..length]);
    padded
}

/// A connection request whose event the program has taken. If it is not answered, it is freed with
/// its adapter.
pub struct Cr {
    pub cell: &'static Cell,
    ia: Arc<Ia>,
    key: Handle,
    /// The kernel has created an Endpoint for the request.
    brings_ep: bool,
    dat: Mutex<libkdapl::Cr>,
    /// Address and private data of the peer. Queried only once, since the program may write to the
    /// memory that it was given.
    asked: Mutex<Option<CrQuery>>,
    address: Lent<kdapl_sockaddr>,
    data: Lent<PrivateData>,
}

impl Cr {
    /// Creates the handle of a request, and that of its Endpoint if the kernel has created one. It
    /// is asked for one only if `may_bring_ep`.
    pub fn adopt(ia: &Arc<Ia>, mut dat: libkdapl::Cr, may_bring_ep: bool) -> Result<Arc<Self>> {
        let ep = if may_bring_ep { dat.provided_ep()? } else { None };
        let brings_ep = ep.is_some();
        ep.map(|ep| Ep::adopt(ia, ep)).transpose()?;
        let key = dat.handle();
        ia.adopt(key, |cell| Self {
            cell,
            ia: ia.clone(),
            key,
            brings_ep,
            dat: Mutex::new(dat),
            asked: Mutex::default(),
            address: Lent::new(kdapl_sockaddr::default()),
            data: Lent::new(padded(&[])),
        })
    }

    fn dat(&self) -> MutexGuard<'_, libkdapl::Cr> {
        self.dat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rejects a request or hands it off. An Endpoint that came with it is freed as well.
    fn leave(&self, how: impl FnOnce(&mut libkdapl::Cr) -> libkdapl::Result<()>) -> Result<()> {
        let ep = self.brings_ep.then(|| self.dat().query()).transpose()?;
        how(&mut self.dat())?;
        if let Some(ep) = ep.and_then(|query| query.local_ep) {
            self.ia.forget(ep);
        }
        self.ia.forget(self.key);
        Ok(())
    }

    fn param(&self) -> Result<DAT_CR_PARAM> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let query = match &mut *asked {
            Some(query) => query,
            none => {
                let query = self.dat().query()?;
                self.address.set(query.remote.map_or_else(kdapl_sockaddr::default, Into::into));
                self.data.set(padded(&query.private_data));
                none.insert(query)
            }
        };
        Ok(DAT_CR_PARAM {
            remote_ia_address_ptr: self.address.address().cast(),
            remote_port_qual: query.remote_port_qual,
            private_data_size: query.private_data.len() as DAT_COUNT,
            private_data: self.data.address().cast(),
            local_ep_handle: query.local_ep.map_or(ptr::null_mut(), |ep| self.ia.handle_of(ep)),
        })
    }
}

pub extern "C" fn query(
    cr: DAT_CR_HANDLE,
    mask: DAT_CR_PARAM_MASK,
    param: *mut DAT_CR_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let cr = find::<Cr>(cr)?;
        fields(mask.into(), DAT_CR_FIELD_ALL.into())?;
        put(param, 3, cr.param()?)
    })
}

pub extern "C" fn accept(
    cr: DAT_CR_HANDLE,
    ep: DAT_EP_HANDLE,
    size: DAT_COUNT,
    data: DAT_PVOID,
) -> DAT_RETURN {
    entry(|| {
        let cr = find::<Cr>(cr)?;
        let ep = find_or_null::<Ep>(ep, Subtype::INVALID_HANDLE_EP)?;
        let data = foreign::bytes(data, size, (3, 4))?;
        cr.dat().accept(ep.as_ref().map(|ep| &ep.dat), &data)?;
        cr.ia.forget(cr.key);
        Ok(())
    })
}

pub extern "C" fn reject(cr: DAT_CR_HANDLE, size: DAT_COUNT, data: DAT_PVOID) -> DAT_RETURN {
    entry(|| {
        let cr = find::<Cr>(cr)?;
        let data = cr.ia.mapping().reject(&foreign::bytes(data, size, (2, 3))?);
        cr.leave(|dat| dat.reject(&data))
    })
}

pub extern "C" fn handoff(cr: DAT_CR_HANDLE, qualifier: DAT_CONN_QUAL) -> DAT_RETURN {
    entry(|| {
        let cr = find::<Cr>(cr)?;
        let qualifier = cr.ia.mapping().to_kernel(qualifier);
        cr.leave(|dat| dat.handoff(qualifier))
    })
}
