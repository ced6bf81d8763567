// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Commands that wait.
//!
//! [`CommandState`] records whether a thread owns the pending command. Only the owner touches the
//! command itself. A wake-up in any context becomes the owner, and hands the command to the task
//! that submitted it. That task runs it with the lock of the ring held. io_uring also cancels it
//! with that lock held.

use super::{
    registry::CommandKey,
    Command,
    CommandRequest,
    Registry,
    RunResult,
    Task, //
};
use crate::{
    model::{
        command::{
            CancelResult,
            CommandState,
            WakeResult, //
        },
        footprint::allocation, //
    },
    sys::{
        task,
        user::FixedCharge,
        wait::Wake, //
    },
};
use core::{
    mem::MaybeUninit,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    error::code::EIOCBQUEUED,
    ffi::{
        c_uint,
        c_void, //
    },
    impl_has_hr_timer,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
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
    types::ForeignOwnable, //
};

/// The result of a cancelled command: `ECANCELED`.
fn cancelled() -> Error {
    Error::from_errno(-(bindings::KDAPL_ECANCELED as i32))
}

/// Fields of [`Pending`] for its owner.
struct Work {
    // The fields are dropped in this order.
    _timer: Option<ArcHrTimerHandle<Pending>>,
    task: KBox<dyn Task>,
    _charge: [FixedCharge; 2],
}

/// A command that waits.
///
/// # Invariants
///
/// The command is valid and not completed while the state is not "done". Its pdu has a reference to
/// this value, from [`start`] until the command was completed.
#[pin_data]
pub(crate) struct Pending {
    raw: NonNull<bindings::io_uring_cmd>,
    key: CommandKey,
    registry: Arc<Registry>,
    state: CommandState,
    /// `None` before the command is pending, and when it is completed.
    #[pin]
    work: Mutex<Option<Work>>,
    #[pin]
    timer: HrTimer<Self>,
}

// SAFETY: Only the owner of the command uses the pointer, and `state` hands the ownership over.
unsafe impl Send for Pending {}
// SAFETY: As above.
unsafe impl Sync for Pending {}

/// Runs the task of a command that is being issued, and makes the command pending if it has to
/// wait. `charge` charges its user for an object of some kilobytes. Returns the value for io_uring.
///
/// A command that posts several completions may not run without the lock of its ring, so that it
/// runs in its task only.
///
/// Context: process; sleeps.
///
/// # Errors
///
/// `EIOCBQUEUED` if the command completes later; that of the task, which also gets those of
/// `charge` and `ENOMEM`.
pub(crate) fn start<T: Task + 'static>(
    command: &Command<'_>,
    request: &CommandRequest,
    registry: &Arc<Registry>,
    mut task: T,
    charge: impl FnOnce(u32) -> Result<[FixedCharge; 2]>,
) -> Result<i32> {
    if request.is_locked() || request.multishot().is_none() {
        let expired = task.deadline().has_passed();
        match task.run(command, expired) {
            RunResult::Done(result) => return result,
            RunResult::Wait | RunResult::Yield => {}
        }
    }
    match PreparedCommand::new(command, request, registry, &mut task, charge) {
        Ok(prepared) => prepared.commit(command, request, task),
        Err(error) => task.refuse(error),
    }
}

/// All that a command needs to become pending. Nothing can fail afterwards.
struct PreparedCommand<T> {
    pending: Arc<Pending>,
    room: KBox<MaybeUninit<T>>,
    charge: [FixedCharge; 2],
}

/// Returns the kilobytes of a command that waits.
fn memory_of<T>() -> u32 {
    allocation(size_of::<Pending>().saturating_add(size_of::<T>()))
}

impl<T: Task + 'static> PreparedCommand<T> {
    /// Allocates it. From here on wake-ups leave notes: the caller owns the command.
    fn new(
        command: &Command<'_>,
        request: &CommandRequest,
        registry: &Arc<Registry>,
        task: &mut T,
        charge: impl FnOnce(u32) -> Result<[FixedCharge; 2]>,
    ) -> Result<Self> {
        let this = Self {
            charge: charge(memory_of::<T>())?,
            room: KBox::new_uninit(GFP_KERNEL_ACCOUNT)?,
            pending: Pending::new(command, request, registry)?,
        };
        task.wake_by(this.pending.clone())?;
        registry.insert(this.pending.key, this.pending.clone())?;
        Ok(this)
    }

    /// Makes the command pending. Returns the value for io_uring.
    fn commit(self, command: &Command<'_>, request: &CommandRequest, task: T) -> Result<i32> {
        let this = self.pending;
        let timer = task.deadline().nanos_left().map(|left| {
            let timer: Arc<Pending> = this.clone();
            timer.start(Delta::from_nanos(left))
        });
        let task = KBox::write(self.room, task);
        *this.work.lock() = Some(Work {
            _timer: timer,
            task,
            _charge: self.charge,
        });
        // INVARIANT: The pdu gets a reference. From here on io_uring may cancel.
        // SAFETY: By the invariant of `Command`. `run` expects an `Arc<Pending>` as its argument.
        unsafe {
            bindings::kdapl_helper_uring_make_pending(
                command.raw.as_ptr(),
                command.flags,
                this.clone().into_foreign(),
                Some(run),
            )
        };
        if request.is_locked() {
            this.advance(command.flags);
        } else {
            this.run_in_task();
        }
        Err(EIOCBQUEUED)
    }
}

impl Pending {
    fn new(
        command: &Command<'_>,
        request: &CommandRequest,
        registry: &Arc<Registry>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                raw: command.raw,
                key: CommandKey::new(request.id(None), command.raw.addr().get()),
                registry: registry.clone(),
                state: CommandState::owned(),
                work <- new_mutex!(None, "Pending::work"),
                timer <- HrTimer::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Hands the command, which the caller owns, to the task that has submitted it.
    ///
    /// Context: any, including hard IRQ.
    fn run_in_task(&self) {
        // SAFETY: By the type invariant the command is valid, and the caller owns it.
        unsafe { bindings::kdapl_helper_uring_run_in_task(self.raw.as_ptr()) };
    }

    /// Runs the task until it waits or is done. The caller owns the command, and holds the lock of
    /// its ring.
    ///
    /// A process that is killed leaves the kernel only when no task is to run again.
    fn advance(&self, flags: c_uint) {
        loop {
            let notes = self.state.begin();
            let ends = notes.cancelled || task::is_ending();
            // SAFETY: By the type invariant; the caller owns the command.
            let command = unsafe { Command::from_raw(self.raw, flags) };
            let progress = match &mut *self.work.lock() {
                Some(work) => work.task.run(&command, notes.expired),
                None => RunResult::Done(Err(cancelled())),
            };
            match progress {
                RunResult::Done(result) => return self.finish(result, flags),
                RunResult::Wait | RunResult::Yield if ends => {
                    return self.finish(Err(cancelled()), flags)
                }
                RunResult::Yield => return self.run_in_task(),
                RunResult::Wait => {
                    if self.state.park() {
                        return;
                    }
                }
            }
        }
    }

    /// Completes the command. The caller owns it, and holds the lock of its ring.
    fn finish(&self, result: Result<i32>, flags: c_uint) {
        // Stops the timer, leaves the wait queue, and waits until no wake-up runs.
        let work = self.work.lock().take();
        drop(work);
        self.state.finish();
        drop(self.registry.remove(&self.key));
        let result = result.unwrap_or_else(Error::to_errno);
        // SAFETY: By the type invariant the command is valid; the caller owns it.
        let reference = unsafe { bindings::kdapl_helper_uring_pending(self.raw.as_ptr()) };
        // SAFETY: As above. Nothing uses the command afterwards.
        unsafe { bindings::kdapl_helper_uring_done(self.raw.as_ptr(), result, flags) };
        // SAFETY: By the type invariant the pdu has a reference. io_uring does not call for the
        // command any more.
        drop(unsafe { <Arc<Self> as ForeignOwnable>::from_foreign(reference) });
    }

    /// Cancels the command: it ends with `ECANCELED`, unless it can succeed. Returns whether it was
    /// pending. `flags` are those of the running call, if that holds the lock of the ring.
    ///
    /// Context: process; sleeps.
    fn cancel_with(&self, flags: Option<c_uint>) -> bool {
        match (self.state.cancel(), flags) {
            (CancelResult::Complete, Some(flags)) => self.finish(Err(cancelled()), flags),
            (CancelResult::Complete, None) => self.run_in_task(),
            (CancelResult::Noted, _) => {}
            (CancelResult::Done, _) => return false,
        }
        true
    }

    /// Cancels the command on request of another one of the same ring. Returns whether it was
    /// pending.
    ///
    /// Context: process; sleeps.
    pub(super) fn cancel_by(&self, command: &Command<'_>, request: &CommandRequest) -> bool {
        self.cancel_with(request.is_locked().then_some(command.flags))
    }

    /// Cancels a command on request of io_uring, which holds the lock of the ring.
    ///
    /// # Safety
    ///
    /// The caller is `file_operations.uring_cmd`, in a call to cancel.
    pub(crate) unsafe fn cancel(raw: NonNull<bindings::io_uring_cmd>, flags: c_uint) {
        // SAFETY: By the safety requirement. One call leaves a note, or completes the command.
        unsafe { bindings::kdapl_helper_uring_end_cancels(raw.as_ptr()) };
        // SAFETY: io_uring cancels pending commands only, whose pdu has a reference.
        let this = unsafe {
            let pending = bindings::kdapl_helper_uring_pending(raw.as_ptr());
            <Arc<Self> as ForeignOwnable>::borrow(pending)
        };
        // The completion drops the reference of the pdu.
        let this: Arc<Self> = this.into();
        this.cancel_with(Some(flags));
    }

    /// Acts on the result of a wake-up. Returns whether that was needed.
    fn woken(&self, result: WakeResult) -> bool {
        match result {
            WakeResult::Schedule => {
                self.run_in_task();
                true
            }
            WakeResult::Noted => true,
            WakeResult::Ignored => false,
        }
    }
}

impl Wake for Pending {
    fn wake(&self) -> bool {
        self.woken(self.state.wake())
    }
}

impl HrTimerCallback for Pending {
    type Pointer<'a> = Arc<Self>;

    fn run(this: ArcBorrow<'_, Self>, _: HrTimerCallbackContext<'_, Self>) -> HrTimerRestart {
        this.woken(this.state.expire());
        HrTimerRestart::NoRestart
    }
}

impl_has_hr_timer! {
    impl HasHrTimer<Self> for Pending {
        mode: RelativeMode<Monotonic>, field: self.timer
    }
}

/// Runs a pending command in the task that has submitted it; or cancels it, if that task or the
/// ring is ending.
///
/// # Safety
///
/// `pending` is the reference in the pdu of a command that the caller owns. It holds the lock of
/// the ring, and `flags` are those of io_uring for this call.
unsafe extern "C" fn run(pending: *mut c_void, flags: c_uint, cancel: bool) {
    // SAFETY: By the safety requirement.
    let this = unsafe { <Arc<Pending> as ForeignOwnable>::borrow(pending) };
    // The completion drops the reference of the pdu.
    let this: Arc<Pending> = this.into();
    if cancel {
        this.finish(Err(cancelled()), flags);
    } else {
        this.advance(flags);
    }
}
