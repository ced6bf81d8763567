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

use super::{
    Ep,
    Qos,
    Target,
    CONNECT, //
};
use crate::{
    dat::PrivateData,
    model::{
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        ep::{
            Input,
            Paths,
            Phase, //
        },
        qualifier::Qualifier,
    },
    rdma::{
        addr::SockAddr,
        cm::CmId, //
    },
    sys::{
        wait::Deadline,
        workqueue::queue, //
    },
};
use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

/// Position of the connection qualifier among the arguments of `dat_ep_connect`.
const ARGUMENT_CONN_QUAL: u8 = 3;

/// How to connect.
pub(crate) struct Connect {
    /// Microseconds; `None` for as long as the transport tries.
    pub(crate) timeout: Option<u32>,
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
    /// a way to it.
    pub(crate) fn connect(
        this: &Arc<Self>,
        remote: SockAddr,
        conn_qual: u64,
        connect: Connect,
    ) -> DatResult {
        let qualifier =
            Qualifier::new(conn_qual).ok_or(DatError::invalid_parameter(ARGUMENT_CONN_QUAL))?;
        let remote = remote.with_port(qualifier.port());
        let (limit, _, _) = this.ia.attr().max_private_data;
        let data = connect
            .data
            .framed(qualifier, limit, connect.data_argument)?;
        let device = this.ia.device()?;
        let id = Arc::new(
            CmId::new(device, this.ia.net(), this.clone())?,
            GFP_KERNEL_ACCOUNT,
        )?;
        if let Some(service_type) = connect.qos.service_type() {
            id.set_service_type(service_type);
        }
        let paths = if connect.multipath {
            Paths::Single
        } else {
            Paths::Plain
        };
        let deadline = connect
            .timeout
            .map_or(Deadline::Never, Deadline::after_micros);
        // What it replaces waits for its handlers when it is dropped: after the lock.
        let old = {
            let mut inner = this.inner.lock();
            this.advance(&mut inner, Input::Connect(paths))?;
            if inner.qp.is_none() {
                let _ = this.advance(&mut inner, Input::ConnectAborted);
                return Err(Self::gone());
            }
            let old = inner.id.replace(id.clone());
            inner.own_data = data;
            inner.peer_data = PrivateData::EMPTY;
            inner.confirms = false;
            inner.remote = remote;
            inner.remote_qual = conn_qual;
            inner.target = Some(Target {
                address: remote,
                conn_qual,
            });
            inner.deadline = deadline;
            old
        };
        drop(old);
        if let Err(error) = id.resolve_addr(this.ia.attr().address, remote) {
            return Self::connect_failed(this, &id, error);
        }
        Self::start_timer(this, connect.timeout);
        Ok(())
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
    pub(crate) fn dup_connect(this: &Arc<Self>, other: &Self, connect: Connect) -> DatResult {
        let target = {
            let inner = other.inner.lock();
            match (inner.phase, inner.target) {
                (Phase::Connected(_), Some(target)) => target,
                (phase, _) => return Err(phase.wrong()),
            }
        };
        Self::connect(this, target.address, target.conn_qual, connect)
    }

    /// `dat_ep_common_connect`: as [`Ep::connect`], to the Common Service Point at an address.
    ///
    /// # Errors
    ///
    /// As for [`Ep::connect`]; INVALID_ADDRESS for one without a port.
    pub(crate) fn common_connect(
        this: &Arc<Self>,
        remote: SockAddr,
        connect: Connect,
    ) -> DatResult {
        if remote.port() == 0 {
            // An address without a port is none of a Common Service Point.
            return Err(DatError::malformed_address());
        }
        Self::connect(this, remote, remote.port().into(), connect)
    }

    /// Takes a connect back that failed at once.
    fn connect_failed(this: &Arc<Self>, id: &Arc<CmId>, error: Error) -> DatResult {
        let id = {
            let mut inner = this.inner.lock();
            let own = inner.id.as_ref();
            if !own.is_some_and(|own| Arc::ptr_eq(own, id))
                || this.advance(&mut inner, Input::ConnectAborted).is_err()
            {
                // An event has told the outcome already.
                return Ok(());
            }
            inner.id.take()
        };
        drop(id);
        if error == ENOMEM {
            return Err(DatError::memory());
        }
        Err(DatError::new(
            Kind::InvalidAddress,
            Subtype::InvalidAddressUnreachable,
        ))
    }

    /// Starts the timer of the present attempt, if that is still under way.
    fn start_timer(this: &Arc<Self>, timeout: Option<u32>) {
        let Some(micros) = timeout else {
            return;
        };
        // Rounded up: never early. The timer itself looks at the exact time.
        let delay = msecs_to_jiffies(micros.div_ceil(1_000)).saturating_add(1);
        let inner = this.inner.lock();
        if matches!(inner.phase, Phase::Connecting(_)) {
            // If it is queued already it is of this attempt: stale ones were taken back.
            let _ = queue().enqueue_delayed::<_, CONNECT>(this.clone(), delay);
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
        let deadline = this.inner.lock().deadline;
        match deadline {
            Deadline::Never => {}
            _ if deadline.has_passed() => {
                let _ = Self::feed(&this, Input::TimedOut, None);
            }
            // Of an earlier attempt, or a little early.
            Deadline::At(_) => Self::start_timer(&this, Some(1)),
        }
    }
}
