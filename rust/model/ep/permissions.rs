// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls that do not change the phase of an Endpoint, and the phases that allow them.
//!
//! A QP is a queue pair.

use super::{
    super::code::DatResult,
    Configuration,
    Phase, //
};

/// Checks whether a receive may be posted.
///
/// It may, from the creation of the QP on: "valid for all states of the Endpoint"
/// (`dat_ep_post_recv(3DAT)`). That includes the time before and during a connect, since a correct
/// consumer posts its first receives then. After the end of the connection it is flushed: see
/// [`flushes_posts`]. It is refused while a closed ready gate, which DAT does not have, holds back
/// the end of a connection.
///
/// # Errors
///
/// INVALID_STATE with the subtype of the state; INVALID_HANDLE after the Endpoint was freed.
#[inline]
pub(crate) const fn may_post_recv(phase: Phase) -> DatResult {
    match phase {
        Phase::Unconnected(Configuration::Complete)
        | Phase::Reserved(Configuration::Complete)
        | Phase::Passive(Configuration::Complete)
        | Phase::Tentative(Configuration::Complete)
        | Phase::Connecting(_)
        | Phase::Accepting(_)
        | Phase::Gated(_)
        | Phase::Connected(_)
        | Phase::Draining
        | Phase::Flushing(_)
        | Phase::Disconnected => Ok(()),
        Phase::Unconnected(Configuration::Incomplete)
        | Phase::Reserved(Configuration::Incomplete)
        | Phase::Passive(Configuration::Incomplete)
        | Phase::Tentative(Configuration::Incomplete)
        | Phase::GatedEnded(_)
        | Phase::Freed => Err(phase.invalid_state_error()),
    }
}

/// Checks whether a request (send, RDMA write, RDMA read, bind) may be posted. It may while the
/// Endpoint is connected, and after the end of the connection: see [`flushes_posts`].
///
/// # Errors
///
/// INVALID_STATE with the subtype of the state; INVALID_HANDLE after the Endpoint was freed.
#[inline]
pub(crate) const fn may_post_request(phase: Phase) -> DatResult {
    match phase {
        Phase::Connected(_) | Phase::Flushing(_) | Phase::Disconnected => Ok(()),
        Phase::Unconnected(_)
        | Phase::Reserved(_)
        | Phase::Passive(_)
        | Phase::Tentative(_)
        | Phase::Connecting(_)
        | Phase::Accepting(_)
        | Phase::Gated(_)
        | Phase::GatedEnded(_)
        | Phase::Draining
        | Phase::Freed => Err(phase.invalid_state_error()),
    }
}

/// Returns whether a DTO that is posted now is flushed. Its completion may follow the last
/// connection event.
///
/// It is after the end of a connection, until a reset: "immediately flushed" in the manual pages
/// `dat_ep_post_send(3DAT)` and `dat_ep_post_recv(3DAT)`. A program may post such a DTO as a marker
/// before it resets the Endpoint, and find its completion after all others. The pages name the
/// state DISCONNECTED. A program whose peer has just disconnected cannot know whether the earlier
/// DTOs have been flushed, so DTOs that it posts before that are treated alike.
pub(crate) const fn flushes_posts(phase: Phase) -> bool {
    matches!(phase, Phase::Flushing(_) | Phase::Disconnected)
}

/// Checks whether `dat_ep_free` is allowed.
///
/// It is, unless a service point or a connection request holds the Endpoint. The consumer has to
/// free the service point, or reject the request, first.
///
/// # Errors
///
/// INVALID_STATE with the subtype of the state; INVALID_HANDLE after the Endpoint was freed.
pub(crate) const fn may_free(phase: Phase) -> DatResult {
    match phase {
        Phase::Unconnected(_)
        | Phase::Connecting(_)
        | Phase::Accepting(_)
        | Phase::Gated(_)
        | Phase::GatedEnded(_)
        | Phase::Connected(_)
        | Phase::Draining
        | Phase::Flushing(_)
        | Phase::Disconnected => Ok(()),
        Phase::Reserved(_) | Phase::Passive(_) | Phase::Tentative(_) | Phase::Freed => {
            Err(phase.invalid_state_error())
        }
    }
}
