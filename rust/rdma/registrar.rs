// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Registers memory regions at once, without a connection.
//!
//! Only a queue pair in RTS carries out the request that makes the key of a region valid. A
//! registrar has such a queue pair, which is connected to itself, and waits for the completion.

use super::{
    cq::{
        Cq,
        Handler as CqHandler,
        Notify, //
    },
    fast_mr::{
        FastMr,
        PostedMr, //
    },
    pd::Pd,
    qp::{
        Capacity,
        Handler as QpHandler,
        Qp, //
    },
    wc::{
        WcBatch,
        WcStatus, //
    },
    wr::SendFlags,
};
use crate::{
    model::handle::PerDirection,
    sys::wait::{
        new_wait_queue,
        Deadline,
        SleepResult,
        WaitQueue, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        ArcBorrow, //
    },
    task::might_sleep, //
};

/// Longest wait for a registration, in microseconds. It involves no other host.
const REGISTRATION_TIMEOUT_US: u32 = 5_000_000;

/// Length of the completion queue. One request is outstanding at a time.
const COMPLETIONS: u32 = 4;

const CAPACITY: Capacity = Capacity {
    max_send_wr: 2,
    max_recv_wr: 1,
    max_send_sge: 1,
    max_recv_sge: 1,
};

/// Flag that a completion sets, and the thread that waits for it.
#[pin_data]
struct CompletionFlag {
    #[pin]
    waiter: WaitQueue,
    is_set: Atomic<bool>,
}

impl CompletionFlag {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                waiter <- new_wait_queue!("CompletionFlag::waiter"),
                is_set: Atomic::new(false),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Sets the flag, and wakes the thread. Context: any, including hard IRQ.
    fn set(&self) {
        self.is_set.store(true, Release);
        self.waiter.wake_all();
    }
}

impl CqHandler for CompletionFlag {
    fn completed(this: ArcBorrow<'_, Self>) {
        this.set();
    }

    fn failed(this: ArcBorrow<'_, Self>) {
        this.set();
    }
}

impl QpHandler for CompletionFlag {
    type Kept = ();

    fn failed(this: ArcBorrow<'_, Self>) {
        this.set();
    }

    fn last_receive(_this: ArcBorrow<'_, Self>) {}

    fn destroyed((): ()) {}

    fn leaked((): ()) {}
}

/// A queue pair of a protection domain that registers memory regions of this domain.
pub(crate) struct Registrar {
    qp: Arc<Qp<CompletionFlag, CompletionFlag>>,
    cq: Arc<Cq<CompletionFlag>>,
    flag: Arc<CompletionFlag>,
}

/// A registration that failed. Its registrar cannot be used any more. Dropped in this order: the
/// driver may use the region until the queue pair is destroyed.
pub(crate) struct FailedRegistrar {
    pub(crate) error: Error,
    _registrar: Registrar,
    _posted: Option<PostedMr>,
}

impl Registrar {
    /// Creates a registrar, whose queue pair is at this port of the device. Context: process;
    /// sleeps.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` over iWARP, `ENODEV` if the port of the device has no address, `EAGAIN` above a
    /// limit of the user, `ENOMEM`, any other error of the driver.
    pub(crate) fn new(pd: Arc<Pd>, port: u32) -> Result<Self> {
        let flag = CompletionFlag::new()?;
        let cq = Cq::new(pd.device().clone(), flag.clone(), COMPLETIONS, 0)?;
        let cqs = PerDirection {
            requests: cq.clone(),
            receives: cq.clone(),
        };
        let qp = Qp::new(flag.clone(), (), pd, cqs, None, CAPACITY, port)?;
        qp.connect_to_itself(port)?;
        Ok(Self { qp, cq, flag })
    }

    /// Registers a region: its key is valid on return. Returns the registrar for the next one.
    ///
    /// Context: process; sleeps, for [`REGISTRATION_TIMEOUT_US`] at most.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the region was registered before, `EINVAL` if it is in another protection domain,
    /// `ENODEV` if the device does not answer or was removed, `EIO` if it refuses the region, any
    /// other error of the driver.
    pub(crate) fn register(self, region: &Arc<FastMr>) -> Result<Self, FailedRegistrar> {
        might_sleep();
        let posted = match self.qp.post_registration(0, region, SendFlags::SIGNALLED) {
            Ok(posted) => posted,
            Err(error) => return Err(self.failed(error, None)),
        };
        match self.await_completion() {
            Ok(()) => Ok(self),
            Err(error) => Err(self.failed(error, Some(posted))),
        }
    }

    fn failed(self, error: Error, posted: Option<PostedMr>) -> FailedRegistrar {
        FailedRegistrar {
            error,
            _registrar: self,
            _posted: posted,
        }
    }

    /// Waits for the completion of the only request.
    fn await_completion(&self) -> Result {
        let mut deadline = Deadline::after_micros(REGISTRATION_TIMEOUT_US);
        loop {
            self.flag.is_set.store(false, Release);
            // The handler is not called for a completion that came before this call. So poll after
            // it.
            self.cq.arm(Notify::Next);
            let mut batch = WcBatch::<1>::new();
            if let [completion] = self.cq.poll(&mut batch, 1) {
                return match completion.status() {
                    WcStatus::Success => Ok(()),
                    WcStatus::Flushed => Err(ENODEV),
                    _ => Err(EIO),
                };
            }
            let is_set = || self.flag.is_set.load(Acquire);
            if self.flag.waiter.wait_until(&mut deadline, is_set) == SleepResult::TimedOut {
                return Err(ENODEV);
            }
        }
    }
}
