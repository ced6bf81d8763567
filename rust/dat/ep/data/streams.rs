// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion streams of an Endpoint, and its shares of the completion queues of its Event
//! Dispatchers (EVDs).
//!
//! A stream is the flow of completions of one direction, receives or requests, to an EVD. A share
//! is the room in a completion queue that is reserved for a queue pair.

use crate::{
    dat::{
        base::IaBase,
        ep::{
            EpAttr,
            Parts,
            QpParts, //
        },
        evd::{
            CompletionStream,
            CqShare,
            Evd,
            JoinPermit, //
        },
        prelude::*,
        srq::{
            Membership,
            PoolUse,
            Srq, //
        },
    },
    model::{
        atomic::AtomicBool,
        completion::WakeMode,
        handle::{
            Direction,
            Handle,
            PerDirection, //
        },
    },
    rdma::{
        cq::{
            Cq,
            Notify, //
        },
        device::Device,
    },
};

/// Completion streams of an Endpoint. A direction is `None` if it reports to the sink.
#[derive(Default)]
pub(in crate::dat::ep) struct Streams {
    receives: Option<CompletionStream>,
    requests: Option<CompletionStream>,
}

impl Streams {
    /// Returns the number of these streams that go to an EVD.
    fn count_on(&self, evd: &Arc<Evd>) -> u32 {
        let goes = |stream: &Option<CompletionStream>| {
            u32::from(stream.as_ref().is_some_and(|stream| stream.goes_to(evd)))
        };
        goes(&self.receives).saturating_add(goes(&self.requests))
    }
}

/// Streams that have been checked, and may join their EVDs.
pub(in crate::dat::ep) enum Plan {
    /// Both streams go to the same EVD.
    SameEvd(JoinPermit),
    /// The streams go to different EVDs, or to the sink.
    SeparateEvds(Option<JoinPermit>, Option<JoinPermit>),
}

impl Plan {
    /// Checks whether the streams of an Endpoint with these objects and attributes are compatible
    /// with the other streams of their EVDs, once the Endpoint's `own` present ones have left. The
    /// caller holds the lock of the EVD table until the streams have joined.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (EVD) for an EVD whose other streams have other completion flags, or which
    /// takes other events that cannot be combined with such completions.
    pub(in crate::dat::ep) fn new(
        parts: &Parts,
        new: &Parts,
        own: &Streams,
        attr: &EpAttr,
    ) -> DatResult<Self> {
        let PerDirection { requests, receives } = parts.evds_with(new);
        let (mode, other) = (attr.mode(Direction::Receive), attr.mode(Direction::Request));
        let may_join = |evd: &Arc<Evd>, mode: WakeMode, count: u32, arg: Arg| {
            evd.may_join(own.count_on(evd), mode, count, arg)
        };
        // Two streams to one EVD are checked together: both need the same completion flags.
        match (&receives, &requests) {
            (Some(evd), Some(same)) if Arc::ptr_eq(evd, same) => {
                if mode != other {
                    return Err(DatError::Invalid(Arg::RequestEvd));
                }
                may_join(evd, mode, 2, Arg::RecvEvd).map(Self::SameEvd)
            }
            (receives, requests) => Ok(Self::SeparateEvds(
                receives
                    .as_ref()
                    .map(|evd| may_join(evd, mode, 1, Arg::RecvEvd))
                    .transpose()?,
                requests
                    .as_ref()
                    .map(|evd| may_join(evd, other, 1, Arg::RequestEvd))
                    .transpose()?,
            )),
        }
    }

    /// Joins the streams to their EVDs.
    pub(in crate::dat::ep) fn join(self) -> Streams {
        match self {
            Self::SameEvd(both) => {
                both.join();
                Streams {
                    receives: Some(both.stream()),
                    requests: Some(both.stream()),
                }
            }
            Self::SeparateEvds(receives, requests) => Streams {
                receives: receives.map(join_one),
                requests: requests.map(join_one),
            },
        }
    }
}

fn join_one(joining: JoinPermit) -> CompletionStream {
    joining.join();
    joining.stream()
}

/// Share for the completions of receives.
enum ReceiveShare {
    /// For the receives of the Endpoint.
    Own(CqShare),
    /// For the receives of a Shared Receive Queue, which all its Endpoints share.
    Shared(Arc<PoolUse>),
}

impl ReceiveShare {
    fn share(&self) -> &CqShare {
        match self {
            Self::Own(share) => share,
            Self::Shared(pool) => pool.share(),
        }
    }
}

/// Shares of a queue pair in its EVDs' completion queues, until it is destroyed. Over iWARP the ID
/// of a connection may hold the queue pair for some time after its Endpoint has released it.
pub(crate) struct Shares {
    receives: ReceiveShare,
    requests: CqShare,
    /// All receives that the queue pair has taken from a Shared Receive Queue have completed, and
    /// their completions were taken.
    has_taken_all: AtomicBool,
}

/// Completion queues of requests and of receives.
pub(in crate::dat::ep) type CqPair = PerDirection<Arc<Cq<Evd>>>;

impl Shares {
    /// Takes shares that are large enough for an Endpoint with these attributes: its DTOs never
    /// overflow a completion queue.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`Evd::share`].
    pub(in crate::dat::ep) fn take(
        parts: &QpParts,
        ia: &IaBase,
        attr: &EpAttr,
    ) -> DatResult<Arc<Self>> {
        let notify = match parts.recv_evd.discards() {
            true => Notify::Next,
            false => notify(attr, &*ia.device()?),
        };
        let this = match &parts.srq {
            Some(srq) => Self::take_shared(srq, parts, ia, attr, notify)?,
            None => Self::take_own(parts, &ia.device()?, attr, notify)?,
        };
        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Takes shares for receives from a Shared Receive Queue.
    fn take_shared(
        srq: &Arc<Srq>,
        parts: &QpParts,
        ia: &IaBase,
        attr: &EpAttr,
        notify: Notify,
    ) -> DatResult<Self> {
        // No reference to the device is held here: this waits for a resize of the queue.
        let pool = srq.use_pool(&parts.recv_evd, ia, notify)?;
        let (device, requests) = (ia.device()?, attr.max_send_wr());
        Ok(Self {
            receives: ReceiveShare::Shared(Arc::new(pool, GFP_KERNEL_ACCOUNT)?),
            requests: parts.request_evd.share(&device, requests, Notify::Next)?,
            has_taken_all: AtomicBool::new(false),
        })
    }

    /// Takes shares for receives that are posted to the Endpoint.
    fn take_own(
        parts: &QpParts,
        device: &Arc<Device>,
        attr: &EpAttr,
        notify: Notify,
    ) -> DatResult<Self> {
        let (receives, requests) = (attr.max_recv_dtos, attr.max_send_wr());
        let both = receives.saturating_add(requests);
        // One completion queue serves both directions if they report to the same EVD and the
        // device's queues are long enough. Otherwise each direction has one.
        if Arc::ptr_eq(&parts.recv_evd, &parts.request_evd) && both <= device.limits().max_cqe {
            let share = parts.recv_evd.share(device, both, notify)?;
            let (receives, requests) = share.split(requests);
            return Ok(Self {
                receives: ReceiveShare::Own(receives),
                requests,
                has_taken_all: AtomicBool::new(false),
            });
        }
        Ok(Self {
            receives: ReceiveShare::Own(parts.recv_evd.share(device, receives, notify)?),
            requests: parts.request_evd.share(device, requests, Notify::Next)?,
            has_taken_all: AtomicBool::new(false),
        })
    }

    /// Returns the completion queues of requests and of receives.
    pub(in crate::dat::ep) fn cqs(&self) -> CqPair {
        PerDirection {
            requests: self.requests.cq(),
            receives: self.receives.share().cq(),
        }
    }

    /// Prepares the membership of a queue pair in its Shared Receive Queue, if it has one.
    pub(in crate::dat::ep) fn member(
        &self,
        ep: Handle,
        life: u32,
    ) -> DatResult<Option<Arc<Membership>>> {
        match &self.receives {
            ReceiveShare::Own(_) => Ok(None),
            ReceiveShare::Shared(pool) => Membership::new(pool.clone(), ep, life).map(Some),
        }
    }

    /// Records whether all receives from a Shared Receive Queue are over.
    pub(in crate::dat::ep) fn set_taken_all(&self, has_taken_all: bool) {
        self.has_taken_all.swap(has_taken_all);
    }

    /// Returns whether all receives from a Shared Receive Queue are over.
    pub(in crate::dat::ep) fn has_taken_all(&self) -> bool {
        self.has_taken_all.load_acquire()
    }

    /// Returns the share for the completions of receives.
    pub(in crate::dat::ep) fn receives(&self) -> &CqShare {
        self.receives.share()
    }

    /// Gives up DTOs of a direction: their slots are free, but their completions may still arrive.
    /// The caller holds the Endpoint's lock.
    pub(in crate::dat::ep) fn give_up(&self, direction: Direction, count: u32) {
        match direction {
            Direction::Receive => match &self.receives {
                ReceiveShare::Own(share) => share.give_up(count),
                // The receives have their room until their completions are taken.
                ReceiveShare::Shared(_) => {}
            },
            Direction::Request => self.requests.give_up(count),
        }
    }

    /// Reserves the room for as long as there are the completion queues. The queue pair cannot be
    /// destroyed, so its completions may arrive at any time.
    pub(in crate::dat::ep) fn stay(&self) {
        self.receives.share().stay();
        self.requests.stay();
    }

    /// Returns the shares of a queue pair that was destroyed. If it outlived its Endpoint, the
    /// EVDs' work items drain its remaining completions. Otherwise the Endpoint drains them.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat::ep) fn end(this: Arc<Self>) {
        let Some(last) = Arc::into_unique_or_drop(this) else {
            return;
        };
        let evds = [last.receives.share().evd(), last.requests.evd()];
        drop(last);
        evds.iter().for_each(Evd::queue_pump);
    }
}

/// Returns the completions of which the completion queue of the receives notifies.
///
/// Over iWARP these are all: software iWARP does not distinguish solicited ones, and would notify
/// of none.
pub(in crate::dat::ep) fn notify(attr: &EpAttr, device: &Device) -> Notify {
    match attr.mode(Direction::Receive) {
        WakeMode::Solicited if !device.is_iwarp() => Notify::Solicited,
        WakeMode::Solicited | WakeMode::Threshold | WakeMode::Unsignalled => Notify::Next,
    }
}
