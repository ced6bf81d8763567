// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Dispatch of ioctls.
//!
//! Each message is copied in once, validated, executed, and copied back once.
#![deny(unsafe_code)]

mod cno;
mod connect;
mod dto;
mod ep;
mod evd;
mod ia;
mod memory;
mod request;
mod rmr;
mod service;
mod srq;
mod stat;
pub(super) mod uring;

use super::client::Client;
use crate::{
    dat::prelude::*,
    model::{
        code::{
            order,
            Order, //
        },
        ep::ReadyGate,
        event::Operation, //
    },
    rdma::addr::SockAddr,
    sys::{
        uapi::{
            self,
            Message, //
        },
        wait::Deadline, //
    },
};
use kdapl_bindings as bindings;
use kernel::{
    error::code::*,
    ioctl::{
        _IOC_DIR,
        _IOC_NR,
        _IOC_TYPE, //
    },
    uaccess::UserPtr, //
};

/// Returns whether a command of an ioctl or of io_uring is a request of kDAPL, which may have
/// another number than the known ones. A request reads and writes its message.
pub(super) fn is_request(command: u32) -> bool {
    _IOC_TYPE(command) == bindings::KDAPL_IOC_MAGIC
        && _IOC_DIR(command) == _IOC_DIR(bindings::kdapl_ioctl_KDAPL_IOC_IA_QUERY)
}

/// Reason for which a call fails.
enum CallFailure {
    /// The message is malformed. The ioctl returns the errno, and nothing is copied back.
    Message(Error),
    /// DAT refuses the call. The message is copied back with the return code.
    Dat(DatError),
    /// DAT refuses a DTO. The arguments have the numbers of the call that posts this operation.
    Dto(Operation, DatError),
    /// DAT refuses a call whose arguments have another order than the message's other calls.
    Ordered(&'static Order, DatError),
}

impl CallFailure {
    /// Returns the `DAT_RETURN` for the message of a call whose arguments have this order.
    ///
    /// # Errors
    ///
    /// The errno for a malformed message.
    #[cold]
    fn code(self, order: &Order) -> Result<u32> {
        match self {
            Self::Message(error) => Err(error),
            Self::Dat(error) => Ok(error.code(order)),
            Self::Dto(operation, error) => Ok(error.code(operation.order())),
            Self::Ordered(order, error) => Ok(error.code(order)),
        }
    }
}

impl From<Error> for CallFailure {
    fn from(error: Error) -> Self {
        Self::Message(error)
    }
}

impl From<DatError> for CallFailure {
    fn from(error: DatError) -> Self {
        Self::Dat(error)
    }
}

/// Result of a call.
type CallResult<T = ()> = Result<T, CallFailure>;

/// Action of a call that follows once its answer has been copied back. If the answer cannot be
/// copied back, the value is dropped without the action.
trait AfterCopy {
    fn copied(self);
}

impl AfterCopy for () {
    fn copied(self) {}
}

/// A message of the caller, from the copy in to the copy back.
struct Exchange<M> {
    /// Address and size of the message at the caller.
    address: usize,
    size: usize,
    message: M,
}

impl<M: Message> Exchange<M> {
    /// Makes place for a message of the caller.
    #[inline(always)]
    fn new((argument, size): (UserPtr, usize)) -> Self {
        Self {
            address: argument.as_const_ptr().addr(),
            size,
            message: M::new_zeroed(),
        }
    }

    /// Copies the message in, which has no copy yet, and checks its header. `flags` are the header
    /// flags that the call supports.
    ///
    /// # Errors
    ///
    /// Those of a malformed message.
    #[inline(always)]
    fn begin(&mut self, flags: u32) -> Result {
        uapi::read(self.argument(), self.size, &mut self.message)?;
        let header = self.message.header();
        zero(header.flags & !flags)?;
        zero(header.reserved)?;
        self.may_write()
    }

    fn argument(&self) -> UserPtr {
        UserPtr::from_addr(self.address)
    }

    /// Checks before the call that the message can be written back. A call whose answer could not
    /// be delivered would lose an event or leak an object.
    ///
    /// # Errors
    ///
    /// `EFAULT`.
    fn may_write(&self) -> Result {
        uapi::may_write(self.argument(), &self.message, self.size)
    }

    /// Copies the message back with DAT's return code. `order` is the order of the call's
    /// arguments.
    ///
    /// # Errors
    ///
    /// `EFAULT`, and those of [`CallFailure::Message`].
    fn finish<T: AfterCopy>(&mut self, order: &Order, result: CallResult<T>) -> Result {
        let (code, outcome) = match result {
            Ok(outcome) => (0, Some(outcome)),
            Err(failure) => (failure.code(order)?, None),
        };
        self.message.header().ret = code;
        uapi::write(self.argument(), &self.message, self.size)?;
        if let Some(outcome) = outcome {
            outcome.copied();
        }
        Ok(())
    }
}

/// Copies the message in, makes the call, and copies the message back with DAT's return code.
///
/// `flags` are the header flags that the call supports, `order` is the order of its arguments.
#[inline(never)]
fn exchange<M: Message, T: AfterCopy>(
    argument: (UserPtr, usize),
    flags: u32,
    order: &Order,
    call: impl FnOnce(&mut M) -> CallResult<T>,
) -> Result {
    let mut exchange = Exchange::new(argument);
    exchange.begin(flags)?;
    let result = call(&mut exchange.message);
    exchange.finish(order, result)
}

/// Returns the deadline of a call from the time-out in its message.
fn deadline(header: &bindings::kdapl_hdr, timeout_ns: u64) -> Deadline {
    match timeout_ns {
        bindings::KDAPL_TIMEOUT_INFINITE.. => Deadline::Never,
        time if header.flags & ABSOLUTE != 0 => Deadline::at_nanos(time),
        duration => Deadline::after_nanos(duration),
    }
}

/// Returns the failure of a wait. The kernel restarts the call after a signal that calls no
/// handler: the process was stopped or traced, or has work of io_uring to do. A duration would then
/// count anew, so such a wait is not restarted.
#[cold]
fn wait_failure(
    failure: CallFailure,
    header: &bindings::kdapl_hdr,
    timeout_ns: u64,
) -> CallFailure {
    let is_duration = header.flags & ABSOLUTE == 0 && timeout_ns < bindings::KDAPL_TIMEOUT_INFINITE;
    let restart = if is_duration { EINTR } else { ERESTARTNOHAND };
    match failure {
        CallFailure::Dat(error) if error.kind() == Kind::InterruptedCall => restart.into(),
        failure => failure,
    }
}

/// Flag that makes `timeout_ns` a point in time instead of a duration.
const ABSOLUTE: u32 = bindings::KDAPL_FLAG_ABSOLUTE;

/// Flag that takes a trigger for the agent of a CNO.
const FOR_AGENT: u32 = bindings::KDAPL_FLAG_AGENT;

/// Flag that closes the ready gate of a connection.
const GATED: u32 = bindings::KDAPL_FLAG_READY_GATE;

/// Flag that asks for a promise to post mapped DTOs.
const PROMISE: u32 = bindings::KDAPL_FLAG_PROMISE;

/// Returns the ready gate that a call requests.
fn ready_gate(header: &bindings::kdapl_hdr) -> ReadyGate {
    if header.flags & GATED == 0 {
        ReadyGate::Open
    } else {
        ReadyGate::Closed
    }
}

/// Checks that a field without a meaning is zero.
///
/// # Errors
///
/// `EINVAL` otherwise.
fn zero(field: impl Into<u64>) -> Result {
    if field.into() == 0 {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

/// Converts an address from a message.
///
/// # Errors
///
/// INVALID_ADDRESS (malformed) for an unknown family.
fn address_in(address: &bindings::kdapl_sockaddr) -> DatResult<SockAddr> {
    let known = address.sa.first_chunk().copied().unwrap_or_default();
    SockAddr::from_raw(known).map_err(|_| DatError::malformed_address())
}

/// Converts an address for a message.
fn address_out(address: SockAddr) -> bindings::kdapl_sockaddr {
    let mut out = bindings::kdapl_sockaddr::default();
    if let Some(known) = out.sa.first_chunk_mut() {
        *known = address.to_raw();
    }
    out
}

/// Checks several fields, like [`zero`].
fn zeros(fields: &[u32]) -> Result {
    fields.iter().try_for_each(|&field| zero(field))
}

/// The calls by the numbers of their requests. In brackets: the flags that a call's header may
/// have. After `as`: the DAT call whose order of arguments numbers an invalid argument.
macro_rules! table {
    ($number:ident, $message:expr, $client:ident;
        $($request:ident => $call:path $([$($flags:ident),+])? $(as $order:ident)?,)+) => {
        match $number {
            $(number if number == _IOC_NR(bindings::$request) => {
                let flags = 0 $($(| $flags)+)?;
                let order = table!(@order $($order)?);
                exchange($message, flags, order, |message| $call($client, message))
            })+
            _ => Err(ENOTTY),
        }
    };
    (@order) => { &[] };
    (@order $order:ident) => { order::$order };
}

/// Dispatches a request by its number. The size of the message may differ from the kernel's. The
/// DTOs that the process has mapped precede it.
///
/// # Errors
///
/// `ENOTTY` for an unknown number; otherwise those of copying and validating the message.
pub(super) fn dispatch(client: &Client, number: u32, argument: UserPtr, size: usize) -> Result {
    client.promises().keep();
    table! { number, (argument, size), client;
        kdapl_ioctl_KDAPL_IOC_DEVICE_GET => ia::device_get,
        kdapl_ioctl_KDAPL_IOC_IA_OPEN => ia::open as dat_ia_openv,
        kdapl_ioctl_KDAPL_IOC_IA_QUERY => ia::query,
        kdapl_ioctl_KDAPL_IOC_IA_CLOSE => ia::close as dat_ia_close,
        kdapl_ioctl_KDAPL_IOC_PORT_GET => ia::port_get,
        kdapl_ioctl_KDAPL_IOC_IA_STAT => stat::ia_stat,
        kdapl_ioctl_KDAPL_IOC_PZ_CREATE => memory::pz_create,
        kdapl_ioctl_KDAPL_IOC_PZ_FREE => memory::pz_free,
        kdapl_ioctl_KDAPL_IOC_LMR_CREATE => memory::lmr_create as dat_lmr_create,
        kdapl_ioctl_KDAPL_IOC_LMR_FREE => memory::lmr_free,
        kdapl_ioctl_KDAPL_IOC_LMR_QUERY => memory::lmr_query,
        kdapl_ioctl_KDAPL_IOC_RMR_CREATE => rmr::create as dat_rmr_create,
        kdapl_ioctl_KDAPL_IOC_RMR_FREE => rmr::free,
        kdapl_ioctl_KDAPL_IOC_RMR_BIND => rmr::bind as dat_rmr_bind,
        kdapl_ioctl_KDAPL_IOC_RMR_QUERY => rmr::query,
        kdapl_ioctl_KDAPL_IOC_SRQ_CREATE => srq::create as dat_srq_create,
        kdapl_ioctl_KDAPL_IOC_SRQ_FREE => srq::free,
        kdapl_ioctl_KDAPL_IOC_SRQ_POST_RECV => srq::post_recv as dat_srq_post_recv,
        kdapl_ioctl_KDAPL_IOC_SRQ_QUERY => srq::query,
        kdapl_ioctl_KDAPL_IOC_SRQ_RESIZE => srq::resize as dat_srq_resize,
        kdapl_ioctl_KDAPL_IOC_SRQ_SET_LW => srq::set_low_watermark as dat_srq_set_lw,
        kdapl_ioctl_KDAPL_IOC_EVD_CREATE => evd::create as dat_evd_create,
        kdapl_ioctl_KDAPL_IOC_EVD_FREE => evd::free,
        kdapl_ioctl_KDAPL_IOC_EVD_QUERY => evd::query,
        kdapl_ioctl_KDAPL_IOC_EVD_WAIT => evd::wait [ABSOLUTE] as dat_evd_wait,
        kdapl_ioctl_KDAPL_IOC_EVD_DEQUEUE => evd::dequeue as dat_evd_dequeue,
        kdapl_ioctl_KDAPL_IOC_EVD_POST_SE => evd::post_se as dat_evd_post_se,
        kdapl_ioctl_KDAPL_IOC_EVD_MODIFY_CNO => evd::modify_cno,
        kdapl_ioctl_KDAPL_IOC_EVD_ENABLE => evd::enable,
        kdapl_ioctl_KDAPL_IOC_EVD_DISABLE => evd::disable,
        kdapl_ioctl_KDAPL_IOC_EVD_SET_UNWAITABLE => evd::set_unwaitable,
        kdapl_ioctl_KDAPL_IOC_EVD_CLEAR_UNWAITABLE => evd::clear_unwaitable,
        kdapl_ioctl_KDAPL_IOC_EVD_RESIZE => evd::resize as dat_evd_resize,
        kdapl_ioctl_KDAPL_IOC_EVD_FD => evd::fd,
        kdapl_ioctl_KDAPL_IOC_CNO_CREATE => cno::create as dat_cno_create,
        kdapl_ioctl_KDAPL_IOC_CNO_FREE => cno::free,
        kdapl_ioctl_KDAPL_IOC_CNO_QUERY => cno::query,
        kdapl_ioctl_KDAPL_IOC_CNO_WAIT => cno::wait [ABSOLUTE, FOR_AGENT],
        kdapl_ioctl_KDAPL_IOC_CNO_TRIGGER => cno::trigger,
        kdapl_ioctl_KDAPL_IOC_CNO_MODIFY_AGENT => cno::modify_agent as dat_cno_modify_agent,
        kdapl_ioctl_KDAPL_IOC_CNO_FD => cno::fd,
        kdapl_ioctl_KDAPL_IOC_EP_POST => dto::post [PROMISE] as kdapl_ep_post,
        kdapl_ioctl_KDAPL_IOC_EP_SUBMIT => dto::submit [ABSOLUTE, PROMISE] as kdapl_ep_submit,
        kdapl_ioctl_KDAPL_IOC_EP_CREATE => ep::create as dat_ep_create,
        kdapl_ioctl_KDAPL_IOC_EP_FREE => ep::free,
        kdapl_ioctl_KDAPL_IOC_EP_QUERY => ep::query as dat_ep_query,
        kdapl_ioctl_KDAPL_IOC_EP_GET_STATUS => ep::get_status,
        kdapl_ioctl_KDAPL_IOC_EP_SET_WATERMARK => ep::set_watermark,
        kdapl_ioctl_KDAPL_IOC_EP_RECV_QUERY => ep::recv_query,
        kdapl_ioctl_KDAPL_IOC_EP_CONNECT => connect::connect [ABSOLUTE, GATED] as dat_ep_connect,
        kdapl_ioctl_KDAPL_IOC_EP_DUP_CONNECT =>
            connect::dup_connect [ABSOLUTE, GATED] as dat_ep_dup_connect,
        kdapl_ioctl_KDAPL_IOC_EP_COMMON_CONNECT =>
            connect::common_connect [ABSOLUTE, GATED] as dat_ep_common_connect,
        kdapl_ioctl_KDAPL_IOC_EP_MODIFY => ep::modify as dat_ep_modify,
        kdapl_ioctl_KDAPL_IOC_EP_RESET => ep::reset,
        kdapl_ioctl_KDAPL_IOC_EP_DISCONNECT => ep::disconnect as dat_ep_disconnect,
        kdapl_ioctl_KDAPL_IOC_EP_PRIVATE_DATA => ep::private_data,
        kdapl_ioctl_KDAPL_IOC_EP_READY => ep::ready,
        kdapl_ioctl_KDAPL_IOC_PSP_CREATE => service::psp_create as dat_psp_create,
        kdapl_ioctl_KDAPL_IOC_PSP_FREE => service::psp_free,
        kdapl_ioctl_KDAPL_IOC_PSP_QUERY => service::psp_query,
        kdapl_ioctl_KDAPL_IOC_RSP_CREATE => service::rsp_create as dat_rsp_create,
        kdapl_ioctl_KDAPL_IOC_RSP_FREE => service::rsp_free,
        kdapl_ioctl_KDAPL_IOC_RSP_QUERY => service::rsp_query,
        kdapl_ioctl_KDAPL_IOC_CSP_CREATE => service::csp_create as dat_csp_create,
        kdapl_ioctl_KDAPL_IOC_CSP_FREE => service::csp_free,
        kdapl_ioctl_KDAPL_IOC_CSP_QUERY => service::csp_query,
        kdapl_ioctl_KDAPL_IOC_CR_QUERY => request::query,
        kdapl_ioctl_KDAPL_IOC_CR_ACCEPT => request::accept [GATED] as dat_cr_accept,
        kdapl_ioctl_KDAPL_IOC_CR_REJECT => request::reject as dat_cr_reject,
        kdapl_ioctl_KDAPL_IOC_CR_HANDOFF => request::handoff as dat_cr_handoff,
    }
}
