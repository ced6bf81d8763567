// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Implements `dat_ep_reset`: a disconnected Endpoint becomes unconnected, with a new queue pair
//! (QP).

use crate::{
    dat::{
        ep::{
            flush_live,
            Connection,
            Ep,
            PastLives,
            Shares, //
        },
        prelude::*, //
    },
    model::ep::{
        step,
        Call,
        Phase, //
    },
    sys::memcg::Payer,
};

impl Ep {
    /// Implements `dat_ep_reset`: makes a disconnected Endpoint ready for another connection.
    ///
    /// DTOs that were posted and have not completed are reported as flushed, as far as the EVDs
    /// have room.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_STATE unless disconnected or unconnected.
    /// - INSUFFICIENT_RESOURCES; the Endpoint is then still disconnected.
    pub(crate) fn reset(self: &Arc<Self>) -> DatResult {
        // Two concurrent resets would each create a QP, and the slower one would end the next
        // connection.
        let mut past_lives = self.past_lives.lock();
        let life = {
            let inner = self.inner.lock();
            let (_, effects) = step(inner.phase, Call::Reset.into())?;
            if !effects.qp_reset {
                return Ok(());
            }
            inner.life
        };
        // The thread that has ended the connection may not have moved the QP to ERR yet.
        self.fail_qp(life);
        flush_live(|| self.unflushed(Payer::Caller));
        self.may_begin_life(&mut past_lives)?;
        self.end_life(&mut past_lives);
        // Timers of the old connection must not end the next one.
        self.cancel_timers();
        self.become_unconnected()?;
        drop(past_lives);
        self.unless_removed()
    }

    /// Destroys ID and QP, and begins another life.
    fn end_life(&self, past_lives: &mut PastLives) {
        let mut old_qp = self.old_qp.lock();
        // In this order: no event of the old connection arrives once the ID is destroyed, and no
        // completion once the QP is.
        let (id, qp) = self.take_connection();
        *old_qp = qp;
        drop(id);
        self.destroy_qp(old_qp.take());
        self.begin_life(past_lives);
    }

    /// Creates a new QP, and puts it in place unless the Endpoint was freed meanwhile. The caller
    /// holds `past_lives`, so no other thread changes the Endpoint's objects.
    fn become_unconnected(self: &Arc<Self>) -> DatResult {
        let (parts, attr) = {
            let inner = self.inner.lock();
            (inner.parts.objects(), inner.attr)
        };
        let parts = parts.ok_or(Phase::Freed.invalid_state_error())?;
        // If the Endpoint was freed meanwhile, the QP and its shares are dropped after the locks.
        let shares = Shares::take(&parts, &self.context.ia, &attr)?;
        let mut new = Some(self.make_qp(&parts, &attr, &shares)?);
        let mut shares = Some(shares);
        let _preposted = self.preposted.lock();
        let mut inner = self.inner.lock();
        let effects = self.advance(&mut inner, Call::Reset)?;
        if effects.qp_reset {
            inner.qp = new.take();
            inner.shares = shares.take();
            inner.preposted_count = Some(0);
            inner.connection = Connection::none(self.context.ia.attr().address);
        }
        Ok(())
    }
}
