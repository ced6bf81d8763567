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
        Batch,
        Status, //
    },
};
use crate::sys::wait::{
    new_wait_queue,
    Deadline,
    SleepResult,
    WaitQueue, //
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
const PATIENCE_US: u32 = 5_000_000;

/// Length of the completion queue. One request is outstanding at a time.
const COMPLETIONS: u32 = 4;

const CAPACITY: Capacity = Capacity {
    max_send_wr: 2,
    max_recv_wr: 1,
    max_send_sge: 1,
    max_recv_sge: 1,
};

/// Wakes the thread that waits for a completion.
#[pin_data]
struct Bell {
    #[pin]
    waiter: WaitQueue,
    has_rung: Atomic<bool>,
}

impl Bell {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                waiter <- new_wait_queue!("Bell::waiter"),
                has_rung: Atomic::new(false),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Context: any, including hard IRQ.
    fn ring(&self) {
        self.has_rung.store(true, Release);
        self.waiter.wake_all();
    }
}

impl CqHandler for Bell {
    fn completed(this: ArcBorrow<'_, Self>) {
        this.ring();
    }

    fn failed(this: ArcBorrow<'_, Self>) {
        this.ring();
    }
}

impl QpHandler for Bell {
    type Kept = ();

    fn failed(this: ArcBorrow<'_, Self>) {
        this.ring();
    }

    fn last_receive(_this: ArcBorrow<'_, Self>) {}

    fn destroyed((): ()) {}
}

/// A queue pair of a protection domain that registers memory regions of this domain.
pub(crate) struct Registrar {
    qp: Arc<Qp<Bell, Bell>>,
    cq: Arc<Cq<Bell>>,
    bell: Arc<Bell>,
}

/// A registration that failed. Its registrar cannot be used any more. Dropped in this order: the
/// driver may use the region until the queue pair is destroyed.
pub(crate) struct Failure {
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
        let bell = Bell::new()?;
        let cq = Cq::new(pd.device().clone(), bell.clone(), COMPLETIONS, 0)?;
        let cqs = [cq.clone(), cq.clone()];
        let qp = Qp::new(bell.clone(), (), pd, cqs, None, CAPACITY, port)?;
        qp.connect_to_itself(port)?;
        Ok(Self { qp, cq, bell })
    }

    /// Registers a region: its key is valid on return. Returns the registrar for the next one.
    ///
    /// Context: process; sleeps, for [`PATIENCE_US`] at most.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the region was registered before, `EINVAL` if it is in another protection domain,
    /// `ENODEV` if the device does not answer or was removed, `EIO` if it refuses the region, any
    /// other error of the driver.
    pub(crate) fn register(self, region: &Arc<FastMr>) -> Result<Self, Failure> {
        might_sleep();
        let posted = match self.qp.post_registration(0, region, false) {
            Ok(posted) => posted,
            Err(error) => return Err(self.failed(error, None)),
        };
        match self.await_completion() {
            Ok(()) => Ok(self),
            Err(error) => Err(self.failed(error, Some(posted))),
        }
    }

    fn failed(self, error: Error, posted: Option<PostedMr>) -> Failure {
        Failure {
            error,
            _registrar: self,
            _posted: posted,
        }
    }

    /// Waits for the completion of the only request.
    fn await_completion(&self) -> Result {
        let mut deadline = Deadline::after_micros(PATIENCE_US);
        loop {
            self.bell.has_rung.store(false, Release);
            // A completion before this call does not ring, so the queue is polled after it.
            self.cq.arm(Notify::Next);
            let mut batch = Batch::<1>::new();
            if let [completion] = self.cq.poll(&mut batch, 1) {
                return match completion.status() {
                    Status::Success => Ok(()),
                    Status::Flushed => Err(ENODEV),
                    _ => Err(EIO),
                };
            }
            let has_rung = || self.bell.has_rung.load(Acquire);
            if self.bell.waiter.wait_until(&mut deadline, has_rung) == SleepResult::TimedOut {
                return Err(ENODEV);
            }
        }
    }
}
