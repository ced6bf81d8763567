// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Commands of io_uring. The operation of a command is the number of a request, and its operand
//! points to the request's message.
//!
//! A request that sleeps for short times only is executed at once. A wait becomes a pending command
//! that occupies no thread. Any other request is executed in a worker thread of io_uring.

mod stream;
mod wait;

use super::{
    cno,
    dispatch,
    dto,
    evd,
    exchange,
    is_request,
    order,
    zero,
    CallResult,
    Exchange,
    ABSOLUTE,
    FOR_AGENT, //
};
use crate::{
    chardev::client::Client,
    dat::prelude::*,
    sys::uring::{
        self,
        Command,
        CommandRequest,
        Task, //
    },
};
use kdapl_bindings as bindings;
use kernel::{
    error::code::*,
    ioctl::{
        _IOC_NR,
        _IOC_SIZE, //
    },
    uaccess::UserPtr, //
};

/// A command that is being issued.
struct Issued<'a> {
    client: &'a Client,
    command: &'a Command<'a>,
    request: &'a CommandRequest,
    /// Address and size of the message.
    argument: (UserPtr, usize),
}

/// Issues a command. Returns the value for io_uring: the result of the command, which is 0 or an
/// errno, or `EIOCBQUEUED` if it completes later.
///
/// # Errors
///
/// Those of [`dispatch`]; `EAGAIN` if it has to be issued in another thread; `EOPNOTSUPP` and
/// `EINVAL` for what the submission entry asks for.
pub(in crate::chardev) fn issue(
    client: &Client,
    command: &Command<'_>,
    request: &CommandRequest,
) -> Result<i32> {
    let message = usize::try_from(request.message()?).map_err(|_| EFAULT)?;
    let op = request.op();
    if !is_request(op) {
        return Err(ENOTTY);
    }
    let issued = Issued {
        client,
        command,
        request,
        argument: (UserPtr::from_addr(message), _IOC_SIZE(op)),
    };
    client.promises().keep();
    issued.dispatch(_IOC_NR(op))
}

/// Numbers of requests that are executed at once: they sleep for short times only.
const AT_ONCE: &[u32] = &[
    bindings::kdapl_ioctl_KDAPL_IOC_EP_POST,
    bindings::kdapl_ioctl_KDAPL_IOC_EP_GET_STATUS,
    bindings::kdapl_ioctl_KDAPL_IOC_SRQ_POST_RECV,
    bindings::kdapl_ioctl_KDAPL_IOC_EVD_DEQUEUE,
    bindings::kdapl_ioctl_KDAPL_IOC_EVD_POST_SE,
    bindings::kdapl_ioctl_KDAPL_IOC_CNO_TRIGGER,
];

impl Issued<'_> {
    fn dispatch(&self, number: u32) -> Result<i32> {
        let is = |request| number == _IOC_NR(request);
        if is(bindings::kdapl_ioctl_KDAPL_IOC_URING_STREAM) {
            return self.stream(self.request.multishot().ok_or(EINVAL)?);
        }
        // Only events are streamed.
        if self.request.multishot().is_some() {
            return Err(EINVAL);
        }
        if is(bindings::kdapl_ioctl_KDAPL_IOC_EVD_WAIT) {
            self.evd_wait()
        } else if is(bindings::kdapl_ioctl_KDAPL_IOC_CNO_WAIT) {
            self.cno_wait()
        } else if is(bindings::kdapl_ioctl_KDAPL_IOC_EP_SUBMIT) {
            self.submit()
        } else if is(bindings::kdapl_ioctl_KDAPL_IOC_URING_CANCEL) {
            self.cancel()
        } else if self.request.may_sleep() || AT_ONCE.iter().any(|&request| is(request)) {
            let (argument, size) = self.argument;
            dispatch(self.client, number, argument, size).map(|()| 0)
        } else {
            Err(EAGAIN)
        }
    }

    /// Starts a task that may have to wait. A command that waits is an object of the user that has
    /// opened the adapter: it keeps memory of its EVD or CNO, also after the adapter was closed.
    fn start(&self, task: impl Task + 'static) -> Result<i32> {
        let commands = self.client.commands();
        let charge = |kilobytes| self.client.hold_object(kilobytes);
        uring::start(self.command, self.request, commands, task, charge)
    }

    /// Cancels the pending commands with the user data of the message.
    fn cancel(&self) -> Result<i32> {
        let cancel = |message: &mut bindings::kdapl_uring_cancel| -> CallResult {
            zero(message.pad)?;
            let id = self.request.id(Some(message.user_data));
            let commands = self.client.commands();
            message.found = commands.cancel(id, self.command, self.request);
            Ok(())
        };
        exchange(self.argument, 0, &[], cancel).map(|()| 0)
    }
}
