// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Charges for the local ports that CM IDs are bound to.
//!
//! `rdma_cm` chooses the local port of a connect from a range of the network namespace, before it
//! knows the peer. So two IDs of one address never share a port of the range. An ID keeps its port
//! until it is destroyed, also if it lingers ([`LingeringIds`](super::LingeringIds)). A user
//! may hold only a share of the range, so that the others can connect.

use super::id::CmId;
use crate::sys::{
    net::NetRef,
    user::User, //
};
use kernel::prelude::*;

impl CmId {
    /// Charges `user` for the port to which the ID is about to be bound, in the namespace of the
    /// ID, until the ID is destroyed. Port 0 is one that `rdma_cm` chooses. A port outside of the
    /// range for connects is not charged.
    ///
    /// Context: process.
    ///
    /// # Errors
    ///
    /// `EAGAIN` above the user's share.
    pub(crate) fn charge_port(&self, user: &User, net: &NetRef, port: u16) -> Result {
        let range = net.local_ports();
        if port != 0 && !range.contains(&port) {
            return Ok(());
        }
        let available = u32::from(range.end().saturating_sub(*range.start())).saturating_add(1);
        self.own.context.keep_port(user.hold_port(available)?);
        Ok(())
    }
}
