// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Active side of a connection: the calls that connect, and their timer.
//!
//! ```text
//!   consumer      dat_ep_connect
//!   rdma_cm          |  resolve address -> resolve route -> request ....... peer: CR, accept
//!                    |  response -> QP to RTS -> confirm -> ESTABLISHED ... peer: ESTABLISHED
//! ```
//!
//! The peer gets a connection request (CR). The response moves the queue pair (QP) to RTS (ready to
//! send).
//!
//! ESTABLISHED is queued once the confirmation was sent to the peer, or with the first message of
//! the peer, whichever is first. So no message of the peer is reported before it, and the
//! consumer's next call cannot overtake the confirmation.

use crate::{
    dat::{
        base::PrivateData,
        ep::{
            Addresses,
            Attempt,
            Connection,
            Ep,
            PendingEffects,
            Qos,
            CONNECT, //
        },
        prelude::*, //
    },
    model::{
        ep::{
            Call,
            Network,
            Paths,
            Phase,
            ReadyGate, //
        },
        qualifier::Qualifier, //
    },
    rdma::{
        addr::SockAddr,
        cm::{
            BindError,
            CmId,
            ResolveError, //
        },
    },
    sys::{
        memcg::Payer,
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

/// Longest delay of the connect timer, in milliseconds. It is started again for a longer time-out.
const TIMER_MAX_MS: u32 = 3_600_000;

/// Milliseconds until the connect timer checks again whether the call may be cancelled.
const RECHECK_MS: u32 = 10;

/// Checked arguments of a connect call.
pub(crate) struct Connect {
    /// Time at which the attempt ends; with `Never` only the peer's answer or the consumer ends it.
    pub(crate) deadline: Deadline,
    /// Quality of service to request of the network.
    pub(crate) qos: Qos,
    /// Whether the consumer requests several paths.
    pub(crate) multipath: bool,
    /// Ready gate of the connection.
    pub(crate) gate: ReadyGate,
    /// Private data for the peer.
    pub(crate) data: PrivateData,
}

fn invalid_address(subtype: Subtype) -> DatError {
    DatError::new(Kind::InvalidAddress, subtype)
}

/// Checks that a host other than this one can have the address, or this one if it is `local`.
/// `rdma_cm` would replace an unspecified address by its own, and take others to be on the link.
///
/// # Errors
///
/// INVALID_ADDRESS: (malformed) for an unspecified, multicast or broadcast address; (unreachable)
/// for a loopback address, unless the adapter has one.
fn check_remote(local: SockAddr, remote: SockAddr) -> DatResult {
    if !remote.is_of_one_host() {
        return Err(DatError::malformed_address());
    }
    if remote.is_loopback() && !local.is_loopback() {
        return Err(invalid_address(Subtype::InvalidAddressUnreachable));
    }
    Ok(())
}

/// Returns the error of a connect for which there is no local port.
fn no_local_port() -> DatError {
    DatError::new(Kind::InsufficientResources, Subtype::ResourceTep)
}

impl From<ResolveError> for DatError {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Bind(BindError::PortTaken) => no_local_port(),
            ResolveError::Bind(BindError::NoSuchAddress) | ResolveError::NoRoute => {
                invalid_address(Subtype::InvalidAddressUnreachable)
            }
            ResolveError::Bind(BindError::NotAllowed) => Kind::PrivilegesViolation.into(),
            ResolveError::Bind(BindError::Other(error)) | ResolveError::Other(error) => {
                error.into()
            }
        }
    }
}

impl Ep {
    /// Implements `dat_ep_connect`. The result is an event on the connect EVD.
    ///
    /// No device has more than one path here: a request for multipath gets CONNECTED_SINGLE_PATH.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_STATE unless unconnected.
    /// - INVALID_PARAMETER (connection qualifier) for a qualifier of 0.
    /// - INVALID_PARAMETER (size of the private data) for more than a request with this qualifier
    ///   carries.
    /// - INVALID_ADDRESS: (unsupported) for an address of a family of which the adapter has none;
    ///   (malformed) for one that no host has; (unreachable) for an address without a route.
    /// - INSUFFICIENT_RESOURCES: (TEP) if no local port is free, or the user holds its share of
    ///   them; (memory) over iWARP if the user has too many attempts in progress.
    pub(crate) fn connect(
        self: &Arc<Self>,
        remote: SockAddr,
        conn_qual: u64,
        connect: Connect,
    ) -> DatResult {
        let qualifier = Qualifier::new(conn_qual).ok_or(DatError::Invalid(Arg::ConnQual))?;
        let remote = remote.with_port(qualifier.port());
        let ia = &self.context.ia;
        let (limit, _, _) = ia.attr().max_private_data;
        let data = connect.data.framed(qualifier, limit)?;
        let local = ia.source_address(remote)?;
        check_remote(local, remote)?;
        let id = self.make_id(connect.qos, Payer::Caller)?;
        let attempt = Connection {
            id: Some(id.clone()),
            addresses: Addresses {
                local,
                remote,
                remote_qual: conn_qual,
                dup_qual: Some(conn_qual),
            },
            attempt: Attempt::new(data, connect.deadline, connect.qos),
            gate: connect.gate,
            ..Connection::none(local)
        };
        let pending = self.begin_attempt(attempt, connect.multipath)?;
        let resolving = self
            .allocate_held(pending.life)
            .and_then(|()| Ok(id.resolve_addr(local, ia.port(), remote)?));
        if let Err(error) = resolving {
            return self.connect_failed(&id, error);
        }
        self.perform(pending);
        if self.post_preposted(&id) {
            self.request(&id.lock());
        }
        Ok(())
    }

    /// Creates an ID that requests this quality of service. Its memory is charged to `payer`, and
    /// its local port to the user of the adapter.
    ///
    /// Context: process; sleeps.
    pub(super) fn make_id(self: &Arc<Self>, qos: Qos, payer: Payer<'_>) -> DatResult<Arc<CmId>> {
        let ia = &self.context.ia;
        let device = ia.device()?;
        let make = |flags| -> Result<Arc<CmId>> {
            let id = CmId::new(device, ia.net(), ia.user().id(), self.clone(), flags)?;
            Ok(Arc::new(id, flags)?)
        };
        let id = payer.charged(make)?;
        id.charge_port(ia.user(), ia.net(), 0)
            .map_err(|_| no_local_port())?;
        if let Some(service_type) = qos.service_type() {
            id.set_service_type(service_type);
        }
        Ok(id)
    }

    /// Begins an attempt to connect. Returns the effects, which the caller executes once the
    /// address resolution has started.
    ///
    /// # Errors
    ///
    /// - INVALID_STATE unless unconnected.
    /// - INSUFFICIENT_RESOURCES (device) without a QP.
    fn begin_attempt(&self, attempt: Connection, multipath: bool) -> DatResult<PendingEffects> {
        let paths = if multipath {
            Paths::Single
        } else {
            Paths::Plain
        };
        // The drop of an old ID waits for its handlers, so it follows the release of the lock.
        let (pending, old) = {
            let mut inner = self.inner.lock();
            let effects = self.advance(&mut inner, Call::Connect(paths))?;
            if inner.qp.is_none() {
                // The effects apply to no object yet.
                let _ = self.advance(&mut inner, Call::ConnectAborted);
                return Err(Self::gone());
            }
            let old = core::mem::replace(&mut inner.connection, attempt);
            (inner.bind_effects(effects), old)
        };
        drop(old);
        Ok(pending)
    }

    /// Implements `dat_ep_dup_connect`: connects to the destination that `other` is connected to.
    ///
    /// An Endpoint that accepted a connection does not know the qualifier that its peer listens on.
    /// It uses the qualifier that the peer has connected to, as both sides of a service have the
    /// same one.
    ///
    /// # Errors
    ///
    /// - INVALID_STATE with the subtype of `other`'s state unless `other` is connected.
    /// - Errors of [`Ep::connect`].
    pub(crate) fn dup_connect(self: &Arc<Self>, other: &Self, connect: Connect) -> DatResult {
        let (remote, conn_qual) = {
            let inner = other.inner.lock();
            let addresses = &inner.connection.addresses;
            match (inner.phase, addresses.dup_qual) {
                (Phase::Connected(_), Some(conn_qual)) => (addresses.remote, conn_qual),
                (phase, _) => return Err(phase.invalid_state_error()),
            }
        };
        self.connect(remote, conn_qual, connect)
    }

    /// Implements `dat_ep_common_connect`: connects to the Common Service Point at an address.
    ///
    /// # Errors
    ///
    /// - Errors of [`Ep::connect`].
    /// - INVALID_ADDRESS for an address without a port.
    pub(crate) fn common_connect(
        self: &Arc<Self>,
        remote: SockAddr,
        connect: Connect,
    ) -> DatResult {
        if remote.port() == 0 {
            // A Common Service Point always has a port.
            return Err(DatError::malformed_address());
        }
        self.connect(remote, remote.port().into(), connect)
    }

    /// Reverts a connect call whose address resolution did not start, and returns its error.
    fn connect_failed(self: &Arc<Self>, id: &Arc<CmId>, error: DatError) -> DatResult {
        let pending = {
            let mut inner = self.inner.lock();
            if !inner.owns_arc(id) {
                return Ok(());
            }
            match self.advance(&mut inner, Call::ConnectAborted) {
                Ok(effects) => inner.bind_effects(effects),
                // An event has reported the result already.
                Err(_) => return Ok(()),
            }
        };
        self.perform(pending);
        // A removal of the device may be the cause.
        self.context.ia.device()?;
        Err(error)
    }

    /// Returns whether a connect over iWARP has begun so recently that it may not be cancelled yet.
    fn call_has_just_begun(&self) -> bool {
        let id = self.inner.lock().connection.id.clone();
        id.is_some_and(|id| id.call_has_just_begun())
    }

    /// Ends the attempt with TIMED_OUT, unless the confirmation of the connection is being sent:
    /// the peer would report ESTABLISHED for a connection that this side has ended.
    fn time_out(self: &Arc<Self>) {
        let timed_out = {
            let mut inner = self.inner.lock();
            if inner.connection.attempt.confirms {
                return;
            }
            let effects = self.advance(&mut inner, Network::TimedOut);
            effects.map(|effects| inner.bind_effects(effects))
        };
        // Never an error: this is no call of the consumer.
        if let Ok(effects) = timed_out {
            self.perform(effects);
        }
    }

    /// Starts the timer of the present attempt, if that is still in progress and has a deadline.
    pub(in crate::dat::ep) fn start_timer(self: &Arc<Self>) {
        let inner = self.inner.lock();
        if inner.connection.attempt.repeat.is_due() {
            // Another attempt comes first.
            return;
        }
        let Some(left) = inner.connection.attempt.deadline.millis_left() else {
            return;
        };
        // The delay is rounded up, so that the timer is not early. The work item checks the exact
        // time, and starts the timer again if time is left.
        let left = u32::try_from(left).map_or(TIMER_MAX_MS, |left| left.min(TIMER_MAX_MS));
        let delay = msecs_to_jiffies(left).saturating_add(1);
        if matches!(inner.phase, Phase::Connecting(_)) {
            // The timer of an earlier attempt may have a later time. If its work item runs at this
            // moment it starts the timer again for this attempt.
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

    /// Makes another attempt if one is due. Ends the attempt if its time is over.
    fn run(this: Arc<Self>) {
        this.repeat();
        let deadline = this.inner.lock().connection.attempt.deadline;
        match deadline {
            Deadline::Never => {}
            // Cancelling the call would keep this worker waiting.
            _ if deadline.has_passed() && this.call_has_just_begun() => {
                let delay = msecs_to_jiffies(RECHECK_MS);
                let _ = queue().enqueue_delayed::<_, CONNECT>(this, delay);
            }
            _ if deadline.has_passed() => this.time_out(),
            // The timer was early, or was started for an earlier attempt: start it for this one.
            Deadline::At(_) => this.start_timer(),
        }
    }
}
