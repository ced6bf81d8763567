// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `dat_ep_reset`: a disconnected Endpoint becomes unconnected, with a new QP.

use crate::{
    dat::{
        ep::{
            flush,
            Connection,
            Ep,
            Shares,
            CONNECT,
            FAILURE,
            LEFT, //
        },
        prelude::*, //
    },
    model::ep::{
        step,
        Call,
        Phase, //
    },
    sys::workqueue::cancel_delayed_sync, //
};

impl Ep {
    /// `dat_ep_reset`: makes a disconnected Endpoint ready for another connection.
    ///
    /// What was posted and has not completed is reported as flushed, as far as the EVDs have room.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_STATE unless disconnected or unconnected; INSUFFICIENT_RESOURCES, and then it is still
    /// disconnected.
    pub(crate) fn reset(self: &Arc<Self>) -> DatResult {
        // Two at once would each make a QP, and take the other's next connection apart.
        let alone = self.resets.lock();
        let life = {
            let inner = self.inner.lock();
            let (_, effects) = step(inner.phase, Call::Reset.into())?;
            if !effects.qp_reset {
                return Ok(());
            }
            inner.life
        };
        // Whoever made it disconnected may not have come to it yet.
        self.fail_qp(life);
        flush(|| self.unflushed());
        self.may_begin_life()?;
        // In this order: nothing more comes of the old connection.
        let (id, qp) = self.take_connection();
        drop(id);
        drop(qp);
        self.begin_life();
        cancel_delayed_sync::<_, CONNECT>(self);
        cancel_delayed_sync::<_, FAILURE>(self);
        cancel_delayed_sync::<_, LEFT>(self);
        self.become_unconnected()?;
        drop(alone);
        self.unless_removed()
    }

    /// Makes a new QP, and puts it in place if the Endpoint still stands.
    fn become_unconnected(self: &Arc<Self>) -> DatResult {
        let _preposted = self.preposted.lock();
        let (parts, attr) = {
            let inner = self.inner.lock();
            (inner.parts.objects(), inner.attr)
        };
        let parts = parts.ok_or(Phase::Freed.invalid_state_error())?;
        // If the Endpoint was freed meanwhile, the QP and its shares are dropped after the lock.
        let shares = Shares::take(&parts, &self.domain.ia.device()?, &attr)?;
        let mut new = Some(self.make_qp(&parts, &attr, &shares)?);
        let mut shares = Some(shares);
        let mut inner = self.inner.lock();
        let effects = self.advance(&mut inner, Call::Reset)?;
        if effects.qp_reset {
            inner.qp = new.take();
            inner.shares = shares.take();
            inner.waiting = Some(0);
            inner.connection = Connection::none(self.domain.ia.attr().address);
        }
        Ok(())
    }
}
