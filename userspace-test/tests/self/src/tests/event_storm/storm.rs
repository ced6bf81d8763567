// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Objects of the storm: EVDs and CNOs of two adapters.

use super::ledger::{Ledger, CALLED, CALLER};
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::empty;
use anyhow::{bail, ensure, Context as _, Error, Result};
use libkdapl::{Cno, Evd, EvdFlags, Ia};
use observe::threads::tid;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Range of queue lengths, as powers of two.
pub const LENGTH_EXPONENTS: std::ops::Range<u32> = 3..11;
/// Number of events that fit into each EVD, however short it is.
pub const SHORTEST_LENGTH: i32 = 1 << LENGTH_EXPONENTS.start;

/// Indices of the EVDs of the connecting side and of the listening side. Requests use the first of
/// those.
pub const CALLER_EVD: usize = 0;
pub const CALLED_EVDS: [usize; 2] = [1, 2];

/// An EVD for events of many sources.
pub struct StormEvd {
    pub evd: Evd,
    /// Adapter that owns it.
    pub side: usize,
    /// Software events may be posted to it.
    pub software: bool,
    /// Number of events that were taken from it.
    pub taken: AtomicU64,
}

/// A CNO, and its file.
pub struct Notifier {
    pub cno: Cno,
    pub file: OwnedFd,
    pub side: usize,
}

/// Counts of all conditions that a storm must have.
#[derive(Default)]
pub struct ConditionCounts {
    pub resizes: AtomicU64,
    pub interrupted: AtomicU64,
    pub timeouts: AtomicU64,
    pub unwaitable: AtomicU64,
    /// Events that were taken by waiters on the EVD, and by waiters on its CNO.
    pub direct: AtomicU64,
    pub notified: AtomicU64,
    pub connections: AtomicU64,
    pub messages: AtomicU64,
    pub overflows: AtomicU64,
}

impl ConditionCounts {
    /// Returns all counts, with their names.
    pub fn counts(&self) -> [(&'static str, u64); 9] {
        let counts: [(_, &AtomicU64); 9] = [
            ("resizes", &self.resizes),
            ("interrupted waits", &self.interrupted),
            ("time-outs", &self.timeouts),
            ("waits ended as unwaitable", &self.unwaitable),
            ("events of waits", &self.direct),
            ("events of notifications", &self.notified),
            ("connections", &self.connections),
            ("rounds of messages", &self.messages),
            ("overflows", &self.overflows),
        ];
        counts.map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    /// Checks whether all conditions have occurred.
    pub fn is_complete(&self) -> bool {
        self.counts().iter().all(|(_, count)| *count > 0)
    }
}

/// Adds one.
pub fn count(what: &AtomicU64) {
    what.fetch_add(1, Ordering::Relaxed);
}

/// All objects of the storm.
pub struct Storm {
    pub ends: [End; 2],
    pub queues: Vec<StormEvd>,
    pub notifiers: Vec<Notifier>,
    pub ledger: Ledger,
    pub conditions: ConditionCounts,
    pub patience: Duration,
    /// Software events are still being posted. Other events are caused as long.
    posting: AtomicBool,
    /// All events were taken, or a part has failed.
    over: AtomicBool,
    /// Threads that may be interrupted by signals.
    waiters: Mutex<Vec<i32>>,
    failure: Mutex<Option<Error>>,
}

impl Storm {
    pub fn new(context: &Context, ledger: Ledger) -> Result<Self> {
        let (caller, called) = context.open_both()?;
        let all = EvdFlags::DTO | EvdFlags::CONNECTION | EvdFlags::SOFTWARE;
        let queue = |ia: &Ia, side, flags| -> Result<StormEvd> {
            Ok(StormEvd::new(ia.create_evd(flags, 64)?, side, true))
        };
        let notifier = |ia: &Ia, side| -> Result<Notifier> {
            let (file, cno) = ia.create_cno_fd()?;
            Ok(Notifier { cno, file, side })
        };
        let queues = vec![
            queue(&caller, CALLER, all)?,
            queue(&called, CALLED, all | EvdFlags::CR)?,
            queue(&called, CALLED, all)?,
            StormEvd::new(caller.async_evd().clone(), CALLER, false),
        ];
        let notifiers = vec![
            notifier(&caller, CALLER)?,
            notifier(&caller, CALLER)?,
            notifier(&called, CALLED)?,
            notifier(&called, CALLED)?,
        ];
        Ok(Self {
            ends: [End::new(&caller, Shape::default())?, End::new(&called, Shape::default())?],
            queues,
            notifiers,
            ledger,
            conditions: ConditionCounts::default(),
            patience: context.patience(),
            posting: AtomicBool::new(true),
            over: AtomicBool::new(false),
            waiters: Mutex::default(),
            failure: Mutex::default(),
        })
    }

    pub fn is_posting(&self) -> bool {
        self.posting.load(Ordering::Acquire)
    }

    pub fn end_posting(&self) {
        self.posting.store(false, Ordering::Release);
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Runs a part of the storm. If it fails, the storm ends.
    pub fn run(&self, part: impl FnOnce() -> Result<()>) {
        if let Err(error) = part() {
            // The first error is the cause of the others.
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            self.end_posting();
            self.end();
        }
    }

    /// Returns the first error.
    pub fn outcome(&self) -> Result<()> {
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Lets the calling thread be interrupted by signals.
    pub fn be_interrupted(&self) {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner).push(tid());
    }

    pub fn waiters(&self) -> Vec<i32> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the condition holds.
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
        let start = Instant::now();
        while !condition()? {
            if self.is_over() {
                bail!("{what}: the storm ended before");
            }
            if start.elapsed() > self.patience {
                self.nothing_is_wrong().context(what.to_owned())?;
                bail!("{what}: not in {:?}; {}", self.patience, self.state());
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }

    /// Checks that the listening side has no asynchronous event, and that no EVD has overflowed.
    pub fn nothing_is_wrong(&self) -> Result<()> {
        empty(self.ends[CALLED].ia.async_evd())?;
        for queue in &self.queues {
            let overflows = self.ledger.overflows_of(queue.evd.handle());
            ensure!(overflows == 0, "{overflows} overflows of {:?}", queue.evd.query());
        }
        Ok(())
    }

    /// Wakes all waiters without an event.
    pub fn shake(&self) -> Result<()> {
        for queue in &self.queues {
            queue.evd.set_unwaitable()?;
            queue.evd.clear_unwaitable()?;
        }
        self.notifiers.iter().try_for_each(|notifier| Ok(notifier.cno.trigger()?))
    }

    /// Describes all EVDs and CNOs.
    pub fn state(&self) -> String {
        let queues = self.queues.iter().map(|queue| format!("{:?}", queue.evd.query()));
        let notifiers = self.notifiers.iter().map(|notifier| format!("{:?}", notifier.cno.query()));
        queues.chain(notifiers).collect::<Vec<_>>().join("; ")
    }
}

impl StormEvd {
    fn new(evd: Evd, side: usize, software: bool) -> Self {
        Self { evd, side, software, taken: AtomicU64::new(0) }
    }
}
