// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The Endpoint's state machine: a total function from phase and input to phase and effects.
//!
//! ```text
//!                     Accept                    Established
//!   Unconnected -----------------> Accepting -----------------> Connected
//!     |  ^   \                         |                        |  |    \ Disconnect(Graceful)
//!     |  |    \ Connect                | any failure            |  |     v
//!     |  |     +----> Connecting ------|----Established---------+  |   Draining
//!     |  |                |            |                           |     | RequestsIdle
//!     |  | Reset          | any failure|          Disconnect, peer,|     |
//!     |  |                v            v          broken           v     v
//!     |  +------------- Disconnected <------------- Idle -------- Flushing
//!     | Disconnect        ^
//!     +-------------------+
//! ```
//!
//! A [`Phase`] is what kDAPL has to remember; a [`State`] is the part of it that DAT has a name
//! for. They differ where an Endpoint winds up: DAT's DISCONNECT_PENDING is [`Phase::Draining`]
//! (a graceful disconnect lets the requests finish) and then [`Phase::Flushing`] (the QP is in
//! error, and the last connection event waits until every DTO has been reported).
//!
//! Two promises are kept by construction, whatever the network and the consumer do:
//!
//! * One connection event tells how a connect or an accept went, one tells how the connection
//!   ended. What arrives later than the first of them changes nothing.
//! * On one Endpoint ESTABLISHED precedes every DTO event, and every DTO event precedes
//!   DISCONNECTED or BROKEN, even if all of them feed one EVD. For the first half the caller feeds
//!   [`Input::Established`] before it reports the first receive, for the second half it feeds
//!   [`Input::Idle`] after it has reported the last DTO.
//!
//! The caller holds the Endpoint's lock from before [`step`] until the notice is queued, and
//! executes the other effects in the order in which [`Effects`] lists them.

mod after;
mod before;
mod during;
mod effects;
mod rights;
mod step;

pub(crate) use self::{
    effects::{
        Effects,
        Notice, //
    },
    rights::{
        may_free,
        may_post_recv,
        may_post_request, //
    },
    step::{
        step,
        Close,
        Input, //
    },
};

use super::code::{
    DatError,
    Kind,
    Subtype, //
};

/// An Endpoint state with DAT's number, as queries report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(crate) enum State {
    /// No connection; receives may be posted.
    Unconnected = 0,
    /// No connection, and something is missing (PZ or EVDs).
    UnconfiguredUnconnected = 1,
    /// Kept for a Reserved Service Point.
    Reserved = 2,
    /// Kept for a Reserved Service Point, and something is missing.
    UnconfiguredReserved = 3,
    /// A request came in on its Reserved Service Point.
    PassiveConnectionPending = 4,
    /// A request came in on its Reserved Service Point, and something is missing.
    UnconfiguredPassive = 5,
    /// Connecting.
    ActiveConnectionPending = 6,
    /// Made by the provider for a request.
    TentativeConnectionPending = 7,
    /// Made by the provider for a request, and something is missing.
    UnconfiguredTentative = 8,
    /// Connected.
    Connected = 9,
    /// Winding up.
    DisconnectPending = 10,
    /// Done; wants a reset.
    Disconnected = 11,
    /// A request was accepted on it.
    CompletionPending = 12,
    /// Connected with multipath, of which one path is left.
    ConnectedSinglePath = 13,
    /// Connected with multipath.
    ConnectedMultiPath = 14,
}

impl State {
    /// DAT's number.
    pub(crate) const fn number(self) -> u32 {
        self as u32
    }

    /// INVALID_STATE with the subtype that names this state.
    pub(crate) const fn wrong(self) -> DatError {
        let subtype = match self {
            Self::Unconnected => Subtype::InvalidStateEpUnconnected,
            Self::UnconfiguredUnconnected => Subtype::InvalidStateEpUnconfigured,
            Self::Reserved => Subtype::InvalidStateEpReserved,
            Self::UnconfiguredReserved => Subtype::InvalidStateEpUnconfreserved,
            Self::PassiveConnectionPending => Subtype::InvalidStateEpPassconnpending,
            Self::UnconfiguredPassive => Subtype::InvalidStateEpUnconfpassive,
            Self::ActiveConnectionPending => Subtype::InvalidStateEpActconnpending,
            Self::TentativeConnectionPending => Subtype::InvalidStateEpTentconnpending,
            Self::UnconfiguredTentative => Subtype::InvalidStateEpUnconftentative,
            Self::Connected | Self::ConnectedSinglePath | Self::ConnectedMultiPath => {
                Subtype::InvalidStateEpConnected
            }
            Self::DisconnectPending => Subtype::InvalidStateEpDiscpending,
            Self::Disconnected => Subtype::InvalidStateEpDisconnected,
            Self::CompletionPending => Subtype::InvalidStateEpComplpending,
        };
        DatError::new(Kind::InvalidState, subtype)
    }
}

/// Whether an Endpoint has all that a connection needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Setup {
    /// It has: there is a QP.
    Ready,
    /// The PZ or an EVD is missing, and with it the QP: `dat_ep_modify` has to bring it.
    Unconfigured,
}

/// Where an accepting Endpoint came from, and goes back to if the accept fails at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// The consumer brought it.
    Unconnected,
    /// It was reserved for a Reserved Service Point.
    Passive,
    /// The provider made it for the request.
    Tentative,
}

/// What is known of a connection's paths.
#[cfg_attr(
    not(kdapl_host),
    expect(dead_code, reason = "no path ever comes or goes yet")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Paths {
    /// Multipath was not asked for.
    Plain,
    /// Multipath, of which one path is left.
    Single,
    /// Multipath.
    Multi,
}

/// The connection event that a winding-up Endpoint still owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Last {
    /// DISCONNECTED: one side asked for it.
    Disconnected,
    /// BROKEN: nobody did.
    Broken,
}

impl Last {
    /// The event that is owed.
    pub(crate) const fn notice(self) -> Notice {
        match self {
            Self::Disconnected => Notice::Disconnected,
            Self::Broken => Notice::Broken,
        }
    }
}

/// All that the state machine remembers of an Endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// No connection; where `dat_ep_create` starts.
    Unconnected(Setup),
    /// Kept for a Reserved Service Point.
    Reserved(Setup),
    /// A request came in on its Reserved Service Point.
    Passive(Setup),
    /// Made by the provider for a request.
    Tentative(Setup),
    /// `dat_ep_connect` is under way; the timer runs. What of paths the connection will have.
    Connecting(Paths),
    /// `dat_cr_accept` was called; the other side has not confirmed.
    Accepting(Origin),
    /// Connected; ESTABLISHED has been queued.
    Connected(Paths),
    /// A graceful disconnect waits for the requests to finish.
    Draining,
    /// The QP is in error; the owed event waits for the last DTO to be reported.
    Flushing(Last),
    /// Every connection event has been queued.
    Disconnected,
    /// `dat_ep_free` was called: nothing is ever reported again.
    Freed,
}

impl Phase {
    /// The state that DAT has for this phase.
    ///
    /// A freed Endpoint has no state to anybody; it counts as disconnected.
    pub(crate) const fn state(self) -> State {
        match self {
            Self::Unconnected(Setup::Ready) => State::Unconnected,
            Self::Unconnected(Setup::Unconfigured) => State::UnconfiguredUnconnected,
            Self::Reserved(Setup::Ready) => State::Reserved,
            Self::Reserved(Setup::Unconfigured) => State::UnconfiguredReserved,
            Self::Passive(Setup::Ready) => State::PassiveConnectionPending,
            Self::Passive(Setup::Unconfigured) => State::UnconfiguredPassive,
            Self::Tentative(Setup::Ready) => State::TentativeConnectionPending,
            Self::Tentative(Setup::Unconfigured) => State::UnconfiguredTentative,
            Self::Connecting(Paths::Plain | Paths::Single | Paths::Multi) => {
                State::ActiveConnectionPending
            }
            Self::Accepting(Origin::Unconnected | Origin::Passive | Origin::Tentative) => {
                State::CompletionPending
            }
            Self::Connected(Paths::Plain) => State::Connected,
            Self::Connected(Paths::Single) => State::ConnectedSinglePath,
            Self::Connected(Paths::Multi) => State::ConnectedMultiPath,
            Self::Draining | Self::Flushing(Last::Disconnected | Last::Broken) => {
                State::DisconnectPending
            }
            Self::Disconnected | Self::Freed => State::Disconnected,
        }
    }

    /// Whether a connection stands: what is sent arrives or fails.
    pub(crate) const fn is_connected(self) -> bool {
        match self {
            Self::Connected(_) | Self::Draining => true,
            Self::Unconnected(_)
            | Self::Reserved(_)
            | Self::Passive(_)
            | Self::Tentative(_)
            | Self::Connecting(_)
            | Self::Accepting(_)
            | Self::Flushing(_)
            | Self::Disconnected
            | Self::Freed => false,
        }
    }

    /// The error of a call that this phase does not allow: INVALID_STATE with the state's name,
    /// or INVALID_HANDLE once the Endpoint was freed.
    pub(crate) const fn wrong(self) -> DatError {
        match self {
            Self::Freed => DatError::new(Kind::InvalidHandle, Subtype::InvalidHandleEp),
            Self::Unconnected(_)
            | Self::Reserved(_)
            | Self::Passive(_)
            | Self::Tentative(_)
            | Self::Connecting(_)
            | Self::Accepting(_)
            | Self::Connected(_)
            | Self::Draining
            | Self::Flushing(_)
            | Self::Disconnected => self.state().wrong(),
        }
    }
}
