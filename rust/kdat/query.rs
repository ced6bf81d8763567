// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Queries of Endpoints and Event Dispatchers.

use crate::{
    address,
    bindings,
    ep::{
        Ep,
        EpAttr, //
    },
    error::{
        to_result,
        Error,
        Result, //
    },
    evd::Evd, //
};
use core::net::SocketAddr;
use kernel::prelude::*;

macro_rules! states {
    ($($(#[$meta:meta])* $name:ident = $raw:ident;)+) => {
        /// State of an Endpoint.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum EpState {
            $($(#[$meta])* $name,)+
        }

        impl EpState {
            fn new(raw: u32) -> Option<Self> {
                match raw {
                    $(bindings::$raw => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

states! {
    /// It may connect or accept.
    Unconnected = DAT_EP_STATE_UNCONNECTED;
    /// A Reserved Service Point has it.
    Reserved = DAT_EP_STATE_RESERVED;
    /// The request for it has arrived.
    PassiveConnectionPending = DAT_EP_STATE_PASSIVE_CONNECTION_PENDING;
    /// It connects.
    ActiveConnectionPending = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
    /// It has accepted.
    CompletionPending = DAT_EP_STATE_COMPLETION_PENDING;
    /// It is connected.
    Connected = DAT_EP_STATE_CONNECTED;
    /// Its connection is ending.
    DisconnectPending = DAT_EP_STATE_DISCONNECT_PENDING;
    /// Its connection has ended.
    Disconnected = DAT_EP_STATE_DISCONNECTED;
}

/// Status of an Endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpStatus {
    /// State.
    pub state: EpState,
    /// No receive is outstanding.
    pub receives_idle: bool,
    /// No other DTO is outstanding.
    pub requests_idle: bool,
}

impl Ep {
    /// Returns the status: `dat_ep_get_status`.
    pub fn status(&self) -> Result<EpStatus> {
        let (mut state, mut receives, mut requests) = (0, 0, 0);
        // SAFETY: The pointers are valid for writes.
        to_result(unsafe {
            bindings::dat_ep_get_status(
                self.handle().raw(),
                &raw mut state,
                &raw mut receives,
                &raw mut requests,
            )
        })?;
        Ok(EpStatus {
            state: EpState::new(state).ok_or(Error::new(bindings::DAT_INTERNAL_ERROR, 0))?,
            receives_idle: receives != 0,
            requests_idle: requests != 0,
        })
    }

    /// Returns the attributes that were granted: `dat_ep_query`.
    pub fn attr(&self) -> Result<EpAttr> {
        let mut param = KBox::new(bindings::DAT_EP_PARAM::default(), GFP_KERNEL)?;
        let mask = u64::from(bindings::DAT_EP_FIELD_ALL);
        // SAFETY: `param` is valid for writes.
        to_result(unsafe { bindings::dat_ep_query(self.handle().raw(), mask, &raw mut *param) })?;
        Ok(param.ep_attr)
    }

    /// Returns the local address and that of the peer, as far as they are known:
    /// `kdapl_ep_addresses`.
    pub fn addresses(&self) -> Result<[Option<SocketAddr>; 2]> {
        let mut both = [bindings::__kernel_sockaddr_storage::default(); 2];
        let [local, remote] = &mut both;
        // SAFETY: Both pointers are valid for writes.
        to_result(unsafe {
            bindings::kdapl_ep_addresses(self.handle().raw(), &raw mut *local, &raw mut *remote)
        })?;
        Ok([address::of_storage(&both[0]), address::of_storage(&both[1])])
    }
}

impl Evd {
    /// Returns the number of events that the queue holds: `dat_evd_query`.
    pub fn qlen(&self) -> Result<u32> {
        let mut param = bindings::DAT_EVD_PARAM::default();
        // SAFETY: `param` is valid for writes.
        to_result(unsafe { bindings::dat_evd_query(self.handle().raw(), 0, &raw mut param) })?;
        Ok(u32::try_from(param.evd_qlen).unwrap_or(0))
    }

    /// Changes the number of events that the queue holds, and keeps those in it:
    /// `dat_evd_resize`.
    pub fn resize(&self, qlen: u32) -> Result {
        let before = self.qlen()?;
        self.set_qlen(qlen)?;
        self.reserve_again().inspect_err(|_| {
            // The caller gets the first error.
            let _ = self.set_qlen(before);
        })
    }

    fn set_qlen(&self, qlen: u32) -> Result {
        let qlen = crate::ia::count(qlen);
        // SAFETY: The call has no pointers.
        to_result(unsafe { bindings::dat_evd_resize(self.handle().raw(), qlen) })
    }
}
