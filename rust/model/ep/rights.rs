// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a consumer may do with an Endpoint without changing its phase.

use super::{
    super::code::DatResult,
    Phase,
    Setup, //
};

/// Whether a receive may be posted.
///
/// From the moment there is a QP until it is in error: before and during a connect, too, since a
/// correct consumer posts its first receives then. The manual page of `dat_ep_post_recv` would
/// have it in every state, flushed at once where there is no connection any more; refusing it there
/// is what keeps DISCONNECTED behind the last DTO event.
///
/// # Errors
///
/// INVALID_STATE with the state's subtype; INVALID_HANDLE once freed.
pub(crate) const fn may_post_recv(phase: Phase) -> DatResult {
    match phase {
        Phase::Unconnected(Setup::Ready)
        | Phase::Reserved(Setup::Ready)
        | Phase::Passive(Setup::Ready)
        | Phase::Tentative(Setup::Ready)
        | Phase::Connecting(_)
        | Phase::Accepting(_)
        | Phase::Connected(_)
        | Phase::Draining => Ok(()),
        Phase::Unconnected(Setup::Unconfigured)
        | Phase::Reserved(Setup::Unconfigured)
        | Phase::Passive(Setup::Unconfigured)
        | Phase::Tentative(Setup::Unconfigured)
        | Phase::Flushing(_)
        | Phase::Disconnected
        | Phase::Freed => Err(phase.wrong()),
    }
}

/// Whether a request (send, RDMA write, RDMA read, bind) may be posted: while connected.
///
/// # Errors
///
/// INVALID_STATE with the state's subtype; INVALID_HANDLE once freed.
pub(crate) const fn may_post_request(phase: Phase) -> DatResult {
    match phase {
        Phase::Connected(_) => Ok(()),
        Phase::Unconnected(_)
        | Phase::Reserved(_)
        | Phase::Passive(_)
        | Phase::Tentative(_)
        | Phase::Connecting(_)
        | Phase::Accepting(_)
        | Phase::Draining
        | Phase::Flushing(_)
        | Phase::Disconnected
        | Phase::Freed => Err(phase.wrong()),
    }
}

/// Whether `dat_ep_free` is allowed: always, except while a service point or a request holds the
/// Endpoint, which has to be freed or rejected first.
///
/// # Errors
///
/// INVALID_STATE with the state's subtype; INVALID_HANDLE once freed.
pub(crate) const fn may_free(phase: Phase) -> DatResult {
    match phase {
        Phase::Unconnected(_)
        | Phase::Connecting(_)
        | Phase::Accepting(_)
        | Phase::Connected(_)
        | Phase::Draining
        | Phase::Flushing(_)
        | Phase::Disconnected => Ok(()),
        Phase::Reserved(_) | Phase::Passive(_) | Phase::Tentative(_) | Phase::Freed => {
            Err(phase.wrong())
        }
    }
}
