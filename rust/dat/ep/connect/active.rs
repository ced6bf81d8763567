// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The active side: the calls that connect, and the timer.
//!
//! ```text
//!   consumer      dat_ep_connect
//!   rdma_cm          |  resolve address -> resolve route -> request ....... peer: CR, accept
//!                    |  response -> QP to RTS -> confirm -> ESTABLISHED ... peer: ESTABLISHED
//! ```
//!
//! ESTABLISHED is queued once the peer has been told that the connection stands, or with the first
//! message of the peer, whichever is first: nothing that it sends is reported earlier, and what the
//! consumer does next comes later. (Seed 000, "Connections"; seed 003.)

use crate::{
    dat::{
        base::PrivateData,
        ep::{
            Connection,
            Ep,
            PendingEffects,
            Qos,
            Target,
            CONNECT, //
        },
        prelude::*, //
    },
    model::{
        ep::{
            Call,
            Network,
            Paths,
            Phase, //
        },
        qualifier::Qualifier, //
    },
    rdma::{
        addr::SockAddr,
        cm::CmId, //
    },
    sys::{
        wait::Deadline,
        workqueue::{
            cancel_delayed,
            queue, //
        },
    },
};
use kernel::{
    impl_has_delayed_work,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

/// Position of the connection qualifier among the arguments of `dat_ep_connect`.
const ARGUMENT_CONN_QUAL: u8 = 3;

/// The longest time that the connect timer is set to, in milliseconds.
const TIMER_MAX_MS: u32 = 3_600_000;

/// How to connect.
pub(crate) struct Connect {
    /// When to give up; never: once the transport does.
    pub(crate) deadline: Deadline,
    /// The service to ask of the network.
    pub(crate) qos: Qos,
    /// Whether the consumer would like more paths than one.
    pub(crate) multipath: bool,
    /// For the peer.
    pub(crate) data: PrivateData,
    /// Position of its size among the arguments.
    pub(crate) data_argument: u8,
}

impl Ep {
    /// `dat_ep_connect`. The outcome is an event on the connect EVD.
    ///
    /// No device has more than one path here: who asks for multipath gets CONNECTED_SINGLE_PATH.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_STATE unless unconnected, INVALID_PARAMETER for a connection qualifier of 0 (argument
    /// 3) or more private data than a request for it carries, INVALID_ADDRESS for an address without
    /// a way to it, INSUFFICIENT_RESOURCES over iWARP if too many attempts of the user are under way.
    pub(crate) fn connect(
        self: &Arc<Self>,
        remote: SockAddr,
        conn_qual: u64,
        connect: Connect,
    ) -> DatResult {
        let qualifier =
            Qualifier::new(conn_qual).ok_or(DatError::invalid_parameter(ARGUMENT_CONN_QUAL))?;
        let remote = remote.with_port(qualifier.port());
        let ia = &self.domain.ia;
        let (limit, _, _) = ia.attr().max_private_data;
        let data = connect
            .data
            .framed(qualifier, limit, connect.data_argument)?;
        let id = self.make_id(connect.qos)?;
        let attempt = Connection {
            id: Some(id.clone()),
            own_data: data,
            remote,
            remote_qual: conn_qual,
            target: Some(Target {
                address: remote,
                conn_qual,
            }),
            deadline: connect.deadline,
            ..Connection::none(ia.attr().address)
        };
        let due = self.begin_attempt(attempt, connect.multipath)?;
        let resolving = self
            .prepare_early(&id)
            .map_err(|_| ENOMEM)
            .and_then(|()| id.resolve_addr(ia.attr().address, remote));
        if let Err(error) = resolving {
            return self.connect_failed(&id, error);
        }
        self.perform(due);
        if self.hand_over(&id) {
            self.request(&id.lock());
        }
        Ok(())
    }

    /// Creates an id that asks the network for this quality of service.
    fn make_id(self: &Arc<Self>, qos: Qos) -> DatResult<Arc<CmId>> {
        let ia = &self.domain.ia;
        let id = CmId::new(ia.device()?, ia.net(), ia.user().id(), self.clone())?;
        if let Some(service_type) = qos.service_type() {
            id.set_service_type(service_type);
        }
        Ok(Arc::new(id, GFP_KERNEL_ACCOUNT)?)
    }

    /// Begins an attempt to connect. Returns the effects, to be executed once the address resolution
    /// has started.
    ///
    /// # Errors
    ///
    /// INVALID_STATE unless unconnected, INSUFFICIENT_RESOURCES (device) without a QP.
    fn begin_attempt(&self, attempt: Connection, multipath: bool) -> DatResult<PendingEffects> {
        let paths = if multipath {
            Paths::Single
        } else {
            Paths::Plain
        };
        // The drop of an old id waits for its handlers, so it follows the release of the lock.
        let (due, old) = {
            let mut inner = self.inner.lock();
            let effects = self.advance(&mut inner, Call::Connect(paths))?;
            if inner.qp.is_none() {
                // No effect has an object yet.
                let _ = self.advance(&mut inner, Call::ConnectAborted);
                return Err(Self::gone());
            }
            inner.peer_data = PrivateData::EMPTY;
            let old = core::mem::replace(&mut inner.connection, attempt);
            (inner.due(effects), old)
        };
        drop(old);
        Ok(due)
    }

    /// `dat_ep_dup_connect`: as [`Ep::connect`], to where `other` is connected to.
    ///
    /// The one that accepted a connection does not know what its peer listens for; taken is what the
    /// peer connected to, as both sides of a service have the same qualifier.
    ///
    /// # Errors
    ///
    /// INVALID_STATE with the subtype of `other`'s state unless that is connected; as for
    /// [`Ep::connect`].
    pub(crate) fn dup_connect(self: &Arc<Self>, other: &Self, connect: Connect) -> DatResult {
        let target = {
            let inner = other.inner.lock();
            match (inner.phase, inner.connection.target) {
                (Phase::Connected(_), Some(target)) => target,
                (phase, _) => return Err(phase.invalid_state_error()),
            }
        };
        self.connect(target.address, target.conn_qual, connect)
    }

    /// `dat_ep_common_connect`: as [`Ep::connect`], to the Common Service Point at an address.
    ///
    /// # Errors
    ///
    /// As for [`Ep::connect`]; INVALID_ADDRESS for one without a port.
    pub(crate) fn common_connect(
        self: &Arc<Self>,
        remote: SockAddr,
        connect: Connect,
    ) -> DatResult {
        if remote.port() == 0 {
            // An address without a port is none of a Common Service Point.
            return Err(DatError::malformed_address());
        }
        self.connect(remote, remote.port().into(), connect)
    }

    /// Takes a connect back that failed at once.
    fn connect_failed(self: &Arc<Self>, id: &Arc<CmId>, error: Error) -> DatResult {
        let due = {
            let mut inner = self.inner.lock();
            if !inner.owns_arc(id) {
                return Ok(());
            }
            match self.advance(&mut inner, Call::ConnectAborted) {
                Ok(effects) => inner.due(effects),
                // An event has told the outcome already.
                Err(_) => return Ok(()),
            }
        };
        self.perform(due);
        match DatError::from(error) {
            error if error == DatError::memory() => Err(error),
            _ => Err(DatError::new(
                Kind::InvalidAddress,
                Subtype::InvalidAddressUnreachable,
            )),
        }
    }

    /// Ends the attempt with TIMED_OUT, unless the confirmation of the connection is being sent: the
    /// peer would report ESTABLISHED for a connection that this side has given up.
    fn time_out(self: &Arc<Self>) {
        let timed_out = {
            let mut inner = self.inner.lock();
            if inner.connection.confirms {
                return;
            }
            let effects = self.advance(&mut inner, Network::TimedOut);
            effects.map(|effects| inner.due(effects))
        };
        // Never an error: this is no call of the consumer.
        if let Ok(effects) = timed_out {
            self.perform(effects);
        }
    }

    /// Starts the timer of the present attempt, if that is still under way and has a deadline.
    pub(in crate::dat::ep) fn start_timer(self: &Arc<Self>) {
        let inner = self.inner.lock();
        let Some(left) = inner.connection.deadline.millis_left() else {
            return;
        };
        // Rounded up: never early. The timer itself looks at the exact time, and starts anew if some is left.
        let left = u32::try_from(left).map_or(TIMER_MAX_MS, |left| left.min(TIMER_MAX_MS));
        let delay = msecs_to_jiffies(left).saturating_add(1);
        if matches!(inner.phase, Phase::Connecting(_)) {
            // One of an earlier attempt may have a later time. If it runs just now it starts the timer
            // again itself, for what is left of this attempt's time.
            cancel_delayed::<_, CONNECT>(self);
            let _ = queue().enqueue_delayed::<_, CONNECT>(self.clone(), delay);
        }
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { CONNECT }> for Ep { self.timer }
}

impl WorkItem<CONNECT> for Ep {
    type Pointer = Arc<Self>;

    /// The connect timer.
    fn run(this: Arc<Self>) {
        let deadline = this.inner.lock().connection.deadline;
        match deadline {
            Deadline::Never => {}
            _ if deadline.has_passed() => this.time_out(),
            // A little early, or of an earlier attempt: this one has its own time.
            Deadline::At(_) => this.start_timer(),
        }
    }
}
