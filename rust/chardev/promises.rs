// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Promises to post the DTOs that a process maps: see
//! [`model::mapped_posts`](crate::model::mapped_posts).
//!
//! Every call on the file keeps its promises first: the DTOs precede the call. If no call comes, a
//! timer keeps them.
//!
//! A process that posts many DTOs of an Endpoint before it waits asks for a promise. It gets the
//! promise when its next wait has taken an event. If it has then mapped several DTOs, the wait
//! after that returns with a promise, too. So a process that keeps many requests in flight makes
//! one call for all events and posts of a round.

use crate::{
    dat::{
        ep::Ep,
        prelude::*, //
    },
    model::atomic::AtomicBool,
    sys::{
        mapped_memory::post_delay_ns,
        workqueue::queue, //
    },
};
use kernel::{
    impl_has_hr_timer, impl_has_work, new_mutex, new_work,
    sync::{
        ArcBorrow,
        Mutex, //
    },
    time::{
        hrtimer::{
            ArcHrTimerHandle,
            HrTimer,
            HrTimerCallback,
            HrTimerCallbackContext,
            HrTimerPointer,
            HrTimerRestart,
            RelativeMode, //
        },
        Delta,
        Monotonic, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};

/// Number of mapped DTOs after which the next two waits return with a promise. A process that takes
/// many events makes two calls in a round, the second one for the last event.
const BUSY: u32 = 4;

/// Largest number of Endpoints that have a promise, or get one by a wait.
const MOST_ENDPOINTS: usize = 64;

/// Endpoints with a promise, and the timer that keeps it.
struct Promised {
    // The timer is stopped first.
    timer: Option<ArcHrTimerHandle<Promises>>,
    eps: KVec<PromisedEp>,
    /// Endpoints that get a promise when a wait returns.
    busy: KVec<BusyEp>,
}

impl Promised {
    /// Reserves room for another promise, and for its renewal, which the work item may note: memory
    /// that it allocated would not be charged to the user.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also for too many Endpoints.
    fn reserve(&mut self) -> Result {
        let count = self.eps.len().saturating_add(1);
        if count > MOST_ENDPOINTS {
            return Err(ENOMEM);
        }
        self.eps.reserve(1, GFP_KERNEL_ACCOUNT)?;
        self.busy.reserve(count, GFP_KERNEL_ACCOUNT)?;
        Ok(())
    }
}

/// An Endpoint with a promise.
struct PromisedEp {
    ep: Arc<Ep>,
    /// Whether another promise follows even if few DTOs are mapped.
    is_renewed: bool,
}

/// An Endpoint that gets a promise when a wait returns.
struct BusyEp {
    handle: u64,
    /// Whether the promise is renewed even if few DTOs are mapped.
    is_renewed: bool,
}

/// Promises of an open file.
#[pin_data]
pub(super) struct Promises {
    /// Whether there are any.
    is_any: AtomicBool,
    /// Whether an Endpoint gets a promise when a wait returns.
    is_busy: AtomicBool,
    /// Held while promises are kept, so that a thread that finds it free finds none open.
    #[pin]
    promised: Mutex<Promised>,
    #[pin]
    timer: HrTimer<Self>,
    #[pin]
    work: Work<Self>,
}

impl Promises {
    /// Creates an empty set.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                is_any: AtomicBool::new(false),
                is_busy: AtomicBool::new(false),
                promised <- new_mutex!(
                    Promised { timer: None, eps: KVec::new(), busy: KVec::new() },
                    "Promises::promised"
                ),
                timer <- HrTimer::new(),
                work <- new_work!("Promises::work"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Posts the mapped DTOs of an Endpoint, and notes that it gets a promise when a wait returns.
    ///
    /// Context: process; sleeps.
    pub(super) fn request(&self, ep: &Arc<Ep>) {
        let mut promised = self.promised.lock();
        ep.post_mapped();
        self.note_busy(&mut promised.busy, ep, true);
    }

    /// Notes that an Endpoint gets a promise when a wait returns. Without memory it gets none.
    fn note_busy(&self, busy: &mut KVec<BusyEp>, ep: &Ep, is_renewed: bool) {
        let handle = ep.handle();
        let is_listed = busy.iter().any(|listed| listed.handle == handle);
        if !is_listed && busy.len() < MOST_ENDPOINTS {
            let listed = BusyEp { handle, is_renewed };
            let _ = busy.push(listed, GFP_KERNEL_ACCOUNT);
            self.is_busy.swap(true);
        }
    }

    /// Promises to post the DTOs that a process maps from now on. Promises nothing without memory.
    fn promise(promised: &mut Promised, ep: Arc<Ep>, is_renewed: bool) {
        let mut listed = promised.eps.iter_mut();
        if let Some(listed) = listed.find(|listed| Arc::ptr_eq(&listed.ep, &ep)) {
            listed.is_renewed |= is_renewed;
            ep.promise_posts();
            return;
        }
        if promised.reserve().is_ok() && ep.promise_posts() {
            let listed = PromisedEp { ep, is_renewed };
            let _ = promised.eps.push(listed, GFP_KERNEL_ACCOUNT);
        }
    }

    /// Renews the promises of Endpoints for which a process has mapped several DTOs. A wait has
    /// taken an event. `find` returns the Endpoint of a handle.
    ///
    /// Context: process; sleeps.
    #[inline(always)]
    pub(super) fn renew(self: &Arc<Self>, find: impl Fn(u64) -> Option<Arc<Ep>>) {
        if self.is_busy.load_acquire() {
            self.renew_all(find);
        }
    }

    #[cold]
    fn renew_all(self: &Arc<Self>, find: impl Fn(u64) -> Option<Arc<Ep>>) {
        let Some(delay) = post_delay_ns() else { return };
        let mut promised = self.promised.lock();
        self.is_busy.swap(false);
        // Before a process can see a promise.
        self.is_any.swap(true);
        while let Some(busy) = promised.busy.pop() {
            if let Some(ep) = find(busy.handle) {
                Self::promise(&mut promised, ep, busy.is_renewed);
            }
        }
        if promised.eps.is_empty() {
            self.is_any.swap(false);
        } else if promised.timer.is_none() {
            promised.timer = Some(self.clone().start(Delta::from_nanos(delay)));
        }
    }

    /// Keeps the promises, if there are any: the DTOs precede a call. A promise stands until a DTO
    /// was mapped or the timer expires.
    ///
    /// Context: process; sleeps.
    #[inline(always)]
    pub(super) fn keep(&self) {
        if self.is_any.load_acquire() {
            self.keep_all(Ep::post_if_mapped);
        }
    }

    /// Keeps the promises by `post`, which returns the number of mapped DTOs; `None` if the promise
    /// stands.
    #[cold]
    fn keep_all(&self, post: impl Fn(&Arc<Ep>) -> Option<u32>) {
        let mut promised = self.promised.lock();
        let Promised { eps, busy, timer } = &mut *promised;
        eps.retain(|PromisedEp { ep, is_renewed }| {
            let Some(count) = post(ep) else { return true };
            let is_busy = count >= BUSY;
            if is_busy || *is_renewed {
                self.note_busy(busy, ep, is_busy);
            }
            false
        });
        if eps.is_empty() {
            *timer = None;
            self.is_any.swap(false);
        }
    }

    /// Ends the promises of a file that was released, or whose IA was closed. Drops the DTOs.
    ///
    /// Context: process; sleeps.
    pub(super) fn end(&self) {
        let mut promised = self.promised.lock();
        promised.timer = None;
        let eps = core::mem::take(&mut promised.eps);
        promised.busy.clear();
        self.is_busy.swap(false);
        self.is_any.swap(false);
        drop(promised);
        // The last references, perhaps.
        drop(eps);
    }
}

impl_has_work! {
    impl HasWork<Self> for Promises { self.work }
}

impl WorkItem for Promises {
    type Pointer = Arc<Self>;

    /// Keeps all promises: the timer has expired.
    fn run(this: Arc<Self>) {
        this.keep_all(|ep| Some(ep.post_mapped()));
    }
}

impl_has_hr_timer! {
    impl HasHrTimer<Self> for Promises {
        mode: RelativeMode<Monotonic>, field: self.timer
    }
}

impl HrTimerCallback for Promises {
    type Pointer<'a> = Arc<Self>;

    /// Queues the work item: posts may sleep.
    fn run(this: ArcBorrow<'_, Self>, _: HrTimerCallbackContext<'_, Self>) -> HrTimerRestart {
        // If it is queued already, this reference is dropped here. It is not the last one, since
        // the handle of the timer has one.
        let _ = queue().enqueue(Arc::from(this));
        HrTimerRestart::NoRestart
    }
}
