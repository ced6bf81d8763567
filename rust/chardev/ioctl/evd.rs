// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Event Dispatchers (EVDs).

use super::{
    deadline,
    wait_failure,
    zero,
    CallResult, //
};
use crate::{
    chardev::client::Client,
    dat::{
        evd::Evd,
        prelude::*, //
    },
    model::{
        direct_event::DrainLimit,
        event::Record, //
    },
    sys::{
        record_file::PendingFile,
        uapi::{
            check_size,
            Array,
            Records, //
        },
        wait::Deadline, //
    },
};
use kdapl_bindings as uapi;

/// Number of events that are taken, and copied out, together.
const AT_ONCE: u32 = 8;

pub(super) fn find(client: &Client, handle: u64) -> DatResult<Arc<Evd>> {
    client.get(handle)
}

pub(super) fn create(client: &Client, message: &mut uapi::kdapl_evd_create) -> CallResult {
    zero(message.pad)?;
    let ia = client.ia()?;
    let (handle, qlen) = ia.create_evd(message.qlen, message.cno, message.flags, message.vector)?;
    message.handle = handle;
    message.qlen = i32::try_from(qlen).unwrap_or(i32::MAX);
    Ok(())
}

pub(super) fn free(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(client.ia()?.free::<Evd>(message.handle)?)
}

pub(super) fn query(client: &Client, message: &mut uapi::kdapl_evd_query) -> CallResult {
    let evd = find(client, message.handle)?;
    let param = evd.query();
    message.cno = param.cno;
    message.qlen = i32::try_from(param.qlen).unwrap_or(i32::MAX);
    message.state = param.state;
    message.flags = param.flags.bits();
    message.queued = param.queued;
    message.vector = param.vector;
    message.cqs = param.queues;
    Ok(())
}

pub(super) fn modify_cno(client: &Client, message: &mut uapi::kdapl_evd_modify_cno) -> CallResult {
    let ia = client.ia()?;
    let evd = ia.get(message.handle)?;
    Ok(ia.modify_cno(&evd, message.cno)?)
}

pub(super) fn enable(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    let evd = find(client, message.handle)?;
    evd.enable();
    Ok(())
}

pub(super) fn disable(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    let evd = find(client, message.handle)?;
    evd.disable();
    Ok(())
}

pub(super) fn set_unwaitable(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    let evd = find(client, message.handle)?;
    evd.set_unwaitable();
    Ok(())
}

pub(super) fn clear_unwaitable(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    let evd = find(client, message.handle)?;
    evd.clear_unwaitable();
    Ok(())
}

pub(super) fn resize(client: &Client, message: &mut uapi::kdapl_evd_resize) -> CallResult {
    zero(message.pad)?;
    let ia = client.ia()?;
    let qlen = ia
        .get::<Evd>(message.handle)?
        .resize(ia.attr(), message.qlen)?;
    message.qlen = i32::try_from(qlen).unwrap_or(i32::MAX);
    Ok(())
}

/// Destination of events: an array in the caller's memory and its capacity.
pub(super) struct EventArray {
    array: Array<Record>,
    max: u32,
}

impl EventArray {
    /// Makes a destination for at most `max` events of `size` bytes at `address`. Checks that the
    /// first can be written.
    ///
    /// # Errors
    ///
    /// An errno for an invalid array. INVALID_PARAMETER (event) for a capacity of 0.
    pub(super) fn new(address: u64, max: u32, size: u32) -> CallResult<Self> {
        if max == 0 {
            return Err(DatError::Invalid(Arg::Event).into());
        }
        let array = Array::new(address, size)?;
        // Check before an event is taken: an event that cannot be copied out would be lost.
        array.may_write(0)?;
        let max = max.min(uapi::KDAPL_EVENTS_MAX);
        Ok(Self { array, max })
    }

    /// Checks the size of an element.
    ///
    /// # Errors
    ///
    /// `EINVAL`, `E2BIG`.
    pub(super) fn check_size(size: u32) -> Result {
        Array::<Record>::new(0, size).map(drop)
    }

    /// Checks that the first event can be written.
    ///
    /// # Errors
    ///
    /// `EFAULT`.
    pub(super) fn may_write(&self) -> Result {
        self.array.may_write(0)
    }
}

/// Number of events taken, and number of events left in the queue.
#[derive(Default)]
pub(super) struct TakenEvents {
    pub(super) taken: u32,
    pub(super) nmore: u32,
}

/// Takes an event with `first`, then as many further events as there are and as fit, and copies
/// them to the caller.
fn deliver(
    evd: &Arc<Evd>,
    events: &EventArray,
    first: impl FnOnce(&mut Record) -> DatResult<u32>,
) -> CallResult<TakenEvents> {
    let mut record = Record::default();
    let nmore = first(&mut record)?;
    events.array.write(0, &record)?;
    let mut taken = TakenEvents { taken: 1, nmore };
    if events.max > 1 && nmore != 0 {
        // The first one was delivered.
        let _ = deliver_more(evd, events, &mut taken);
    }
    if taken.nmore != 0 {
        evd.hand_over();
    }
    Ok(taken)
}

/// Takes queued events until the queue is empty or the array is full. Takes none if another thread
/// was faster.
///
/// # Errors
///
/// `EFAULT` if none could be copied, because the memory was unmapped after a check.
pub(super) fn take_queued(evd: &Arc<Evd>, events: &EventArray) -> Result<TakenEvents> {
    let mut taken = TakenEvents { taken: 0, nmore: 1 };
    let result = deliver_more(evd, events, &mut taken);
    match taken.taken {
        0 => result.map(|()| taken),
        _ => Ok(taken),
    }
}

/// Takes further events until the queue is empty or the array is full.
///
/// # Errors
///
/// `EFAULT` if the memory was unmapped after the check.
#[inline(never)]
fn deliver_more(evd: &Arc<Evd>, events: &EventArray, taken: &mut TakenEvents) -> Result {
    while taken.taken < events.max && taken.nmore != 0 {
        let room = events.max.wrapping_sub(taken.taken);
        let most = events.array.may_write_some(taken.taken, room.min(AT_ONCE));
        // An event that cannot be copied out stays in the queue. The next call reports the fault.
        if most == 0 {
            return Ok(());
        }
        let mut records = Records::<{ AT_ONCE as usize }>::new();
        let (count, nmore) = evd.dequeue_queued(most, &mut records);
        taken.nmore = nmore;
        // None if another thread has taken them.
        if count == 0 {
            return Ok(());
        }
        records.write(&events.array, taken.taken)?;
        taken.taken = taken.taken.wrapping_add(count);
    }
    Ok(())
}

/// Waits for events and takes them.
#[inline(always)]
pub(super) fn take_next(
    evd: &Arc<Evd>,
    deadline: Deadline,
    threshold: i32,
    events: &EventArray,
) -> CallResult<TakenEvents> {
    deliver(evd, events, |record| {
        evd.wait(deadline, threshold, DrainLimit::All, record)
    })
}

/// Returns the EVD of a message and the destination of its events.
pub(super) fn parts(
    client: &Client,
    message: &mut uapi::kdapl_evd_wait,
) -> CallResult<(Arc<Evd>, EventArray)> {
    zero(message.pad)?;
    (message.taken, message.nmore) = (0, 0);
    let evd = find(client, message.handle)?;
    let events = EventArray::new(message.events, message.max_events, message.event_size)?;
    Ok((evd, events))
}

/// Writes the numbers of events to the message.
pub(super) fn answer(
    message: &mut uapi::kdapl_evd_wait,
    TakenEvents { taken, nmore }: TakenEvents,
) {
    (message.taken, message.nmore) = (taken, nmore);
}

pub(super) fn wait(client: &Client, message: &mut uapi::kdapl_evd_wait) -> CallResult {
    // The time-out counts from the entry of the call.
    let deadline = deadline(&message.hdr, message.timeout_ns);
    let (evd, events) = parts(client, message)?;
    let taken = take_next(&evd, deadline, message.threshold, &events)
        .map_err(|failure| wait_failure(failure, &message.hdr, message.timeout_ns))?;
    answer(message, taken);
    renew_promises(client);
    Ok(())
}

/// Renews the promises to post mapped DTOs: the process has taken events, and may post more.
pub(super) fn renew_promises(client: &Client) {
    client.promises().renew(|ep| client.get(ep).ok());
}

pub(super) fn dequeue(client: &Client, message: &mut uapi::kdapl_evd_wait) -> CallResult {
    let (evd, events) = parts(client, message)?;
    let taken = deliver(&evd, &events, |record| evd.dequeue(DrainLimit::All, record));
    evd.claim_empty();
    answer(message, taken?);
    renew_promises(client);
    Ok(())
}

pub(super) fn fd(client: &Client, message: &mut uapi::kdapl_evd_fd) -> CallResult<PendingFile> {
    check_size::<Record>(message.event_size)?;
    message.fd = -1;
    let opening = client
        .ia()?
        .open_evd_file(message.handle, message.event_size as usize)?;
    message.fd = opening.number() as i32;
    Ok(opening)
}

pub(super) fn post_se(client: &Client, message: &mut uapi::kdapl_evd_post_se) -> CallResult {
    Ok(find(client, message.handle)?.post_se(message.pointer)?)
}
