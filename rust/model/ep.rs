// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State machine of an Endpoint: a total function from phase and input to phase and effects.
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
//! A closed *ready gate* adds two phases between an attempt and the connection:
//!
//! ```text
//!                EstablishedGated              Ready
//!   Connecting --------------------> Gated -----------> Connected
//!   Accepting                          | peer, broken
//!                                      v       Ready
//!                                 GatedEnded ---------> Flushing
//! ```
//!
//! A [`Phase`] is the full state that kDAPL keeps; a [`State`] is the Endpoint state that DAT
//! defines for it. Several phases share a state while a connection ends. DAT's DISCONNECT_PENDING
//! is [`Phase::Draining`] (a graceful disconnect waits for the outstanding requests) and then
//! [`Phase::Flushing`] (the queue pair (QP) is in the error state, and the last connection event
//! waits until each Data Transfer Operation (DTO) has been reported).
//!
//! The state machine guarantees two things, in any order of the inputs:
//!
//! * One connection event reports the result of a connect or an accept, and one reports the end of
//!   the connection. A later report of the same kind has no effect.
//! * On one Endpoint, ESTABLISHED precedes every DTO event, and every DTO event precedes
//!   DISCONNECTED or BROKEN, even if one Event Dispatcher (EVD) receives all of them. For the first
//!   half, the caller feeds [`Network::Established`] before it reports the first receive. For the
//!   second half, it feeds [`Progress::Idle`] after it has reported the last DTO.
//!
//! The caller holds the Endpoint's lock from before [`step`] until it has queued the events of
//! [`Effects`]. It executes the other effects afterwards, in the order in which [`Effects`] lists
//! them.

mod connecting;
mod disconnecting;
mod effects;
mod gated;
mod input;
mod permissions;
mod step;
mod unconnected;

pub(crate) use self::{
    effects::{
        ConnectionEvent,
        Effects, //
    },
    input::{
        Call,
        Close,
        Input,
        Network,
        Progress, //
    },
    permissions::{
        flushes_posts,
        may_free,
        may_post_recv,
        may_post_request, //
    },
    step::step,
};

use super::code::{
    DatError,
    Kind,
    Subtype, //
};

/// Endpoint state as queries report it. The discriminants are DAT's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(crate) enum State {
    /// Not connected. Receives may be posted.
    Unconnected = 0,
    /// Not connected, and without a Protection Zone (PZ).
    UnconfiguredUnconnected = 1,
    /// Reserved for a Reserved Service Point.
    Reserved = 2,
    /// Reserved for a Reserved Service Point, and without a PZ.
    UnconfiguredReserved = 3,
    /// A connection request has arrived at the Reserved Service Point.
    PassiveConnectionPending = 4,
    /// A connection request has arrived at the Reserved Service Point, and the Endpoint is without
    /// a PZ.
    UnconfiguredPassive = 5,
    /// Connecting.
    ActiveConnectionPending = 6,
    /// Created by the provider for a connection request.
    TentativeConnectionPending = 7,
    /// Created by the provider for a connection request, and without a PZ.
    UnconfiguredTentative = 8,
    /// Connected.
    Connected = 9,
    /// Disconnecting. Some DTOs have not been reported yet.
    DisconnectPending = 10,
    /// Disconnected. The Endpoint has to be reset before it can connect again.
    Disconnected = 11,
    /// A connection request was accepted, and is not confirmed yet.
    CompletionPending = 12,
    /// Connected with multipathing, with one path. No device has several paths, so there is no
    /// state CONNECTED_MULTI_PATH (14) here.
    ConnectedSinglePath = 13,
}

impl State {
    /// Returns DAT's number.
    pub(crate) const fn number(self) -> u32 {
        self as u32
    }

    /// Returns INVALID_STATE with the subtype of this state.
    pub(crate) const fn invalid_state_error(self) -> DatError {
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
            Self::Connected | Self::ConnectedSinglePath => Subtype::InvalidStateEpConnected,
            Self::DisconnectPending => Subtype::InvalidStateEpDiscpending,
            Self::Disconnected => Subtype::InvalidStateEpDisconnected,
            Self::CompletionPending => Subtype::InvalidStateEpComplpending,
        };
        DatError::new(Kind::InvalidState, subtype)
    }
}

/// Whether an Endpoint is configured for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Configuration {
    /// The Endpoint has a PZ, and thus a QP.
    Complete,
    /// The PZ is missing, and thus the QP. `dat_ep_modify` has to supply it.
    Incomplete,
}

/// Phase of an Endpoint before an accept. The Endpoint returns to it if the accept fails at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AcceptFrom {
    /// The consumer passed an unconnected Endpoint.
    Unconnected,
    /// The Endpoint was reserved for a Reserved Service Point.
    Passive,
    /// The provider created the Endpoint for the connection request.
    Tentative,
}

impl AcceptFrom {
    /// Returns the phase before the accept.
    pub(super) const fn phase(self, configuration: Configuration) -> Phase {
        match self {
            Self::Unconnected => Phase::Unconnected(configuration),
            Self::Passive => Phase::Passive(configuration),
            Self::Tentative => Phase::Tentative(configuration),
        }
    }
}

/// Paths of a connection: there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Paths {
    /// The consumer did not request multipathing.
    Plain,
    /// Multipathing, with one path.
    Single,
}

/// Ready gate of a connection: holds ESTABLISHED and all later events back while it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReadyGate {
    /// Events are reported as they come.
    Open,
    /// Events wait for [`Call::Ready`].
    Closed,
}

impl ReadyGate {
    /// Returns the input for the establishment of a connection with this gate.
    pub(crate) const fn established(self) -> Network {
        match self {
            Self::Open => Network::Established,
            Self::Closed => Network::EstablishedGated,
        }
    }
}

/// Side of a connection whose ready gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum GatedSide {
    /// This side has connected, for a connection with these paths.
    Active(Paths),
    /// This side has accepted.
    Passive,
}

impl GatedSide {
    /// Returns the paths of the connection.
    pub(super) const fn paths(self) -> Paths {
        match self {
            Self::Active(paths) => paths,
            Self::Passive => Paths::Plain,
        }
    }
}

/// Connection event that an Endpoint reports once all its DTOs are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FinalEvent {
    /// DISCONNECTED: one side has disconnected.
    Disconnected,
    /// BROKEN: the connection has failed.
    Broken,
}

impl FinalEvent {
    /// Returns the connection event.
    pub(crate) const fn event(self) -> ConnectionEvent {
        match self {
            Self::Disconnected => ConnectionEvent::Disconnected,
            Self::Broken => ConnectionEvent::Broken,
        }
    }
}

/// Phase of an Endpoint: all that the state machine stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Not connected. `dat_ep_create` starts here.
    Unconnected(Configuration),
    /// Reserved for a Reserved Service Point.
    Reserved(Configuration),
    /// A connection request has arrived at the Reserved Service Point.
    Passive(Configuration),
    /// Created by the provider for a connection request.
    Tentative(Configuration),
    /// `dat_ep_connect` is in progress, and the connect timer runs. Holds the paths that the
    /// connection will have.
    Connecting(Paths),
    /// `dat_cr_accept` was called, and the peer has not confirmed yet.
    Accepting(AcceptFrom),
    /// The connection is established, and its ready gate is closed: ESTABLISHED and all later
    /// events wait for [`Call::Ready`].
    Gated(GatedSide),
    /// The connection has ended before its ready gate was opened. The QP is in the error state, and
    /// ESTABLISHED still waits for [`Call::Ready`].
    GatedEnded(FinalEvent),
    /// Connected; ESTABLISHED has been queued.
    Connected(Paths),
    /// A graceful disconnect waits for the outstanding requests.
    Draining,
    /// The QP is in the error state. The last connection event waits until each DTO has been
    /// reported.
    Flushing(FinalEvent),
    /// Disconnected; every connection event has been queued.
    Disconnected,
    /// `dat_ep_free` was called. No event is reported any more.
    Freed,
}

impl Phase {
    /// Returns the DAT state of this phase.
    ///
    /// A freed Endpoint has no state. It counts as disconnected.
    pub(crate) const fn state(self) -> State {
        match self {
            Self::Unconnected(Configuration::Complete) => State::Unconnected,
            Self::Unconnected(Configuration::Incomplete) => State::UnconfiguredUnconnected,
            Self::Reserved(Configuration::Complete) => State::Reserved,
            Self::Reserved(Configuration::Incomplete) => State::UnconfiguredReserved,
            Self::Passive(Configuration::Complete) => State::PassiveConnectionPending,
            Self::Passive(Configuration::Incomplete) => State::UnconfiguredPassive,
            Self::Tentative(Configuration::Complete) => State::TentativeConnectionPending,
            Self::Tentative(Configuration::Incomplete) => State::UnconfiguredTentative,
            Self::Connecting(Paths::Plain | Paths::Single)
            | Self::Gated(GatedSide::Active(Paths::Plain | Paths::Single)) => {
                State::ActiveConnectionPending
            }
            Self::Accepting(
                AcceptFrom::Unconnected | AcceptFrom::Passive | AcceptFrom::Tentative,
            )
            | Self::Gated(GatedSide::Passive) => State::CompletionPending,
            Self::Connected(Paths::Plain) => State::Connected,
            Self::Connected(Paths::Single) => State::ConnectedSinglePath,
            Self::Draining
            | Self::Flushing(FinalEvent::Disconnected | FinalEvent::Broken)
            | Self::GatedEnded(FinalEvent::Disconnected | FinalEvent::Broken) => {
                State::DisconnectPending
            }
            Self::Disconnected | Self::Freed => State::Disconnected,
        }
    }

    /// Returns whether the Endpoint has a connection on which a send can arrive.
    pub(crate) const fn is_connected(self) -> bool {
        match self {
            Self::Gated(_) | Self::Connected(_) | Self::Draining => true,
            Self::Unconnected(_)
            | Self::Reserved(_)
            | Self::Passive(_)
            | Self::Tentative(_)
            | Self::Connecting(_)
            | Self::Accepting(_)
            | Self::GatedEnded(_)
            | Self::Flushing(_)
            | Self::Disconnected
            | Self::Freed => false,
        }
    }

    /// Returns whether the connection or the attempt has ended.
    pub(crate) const fn is_over(self) -> bool {
        match self {
            Self::GatedEnded(_) | Self::Flushing(_) | Self::Disconnected | Self::Freed => true,
            Self::Unconnected(_)
            | Self::Reserved(_)
            | Self::Passive(_)
            | Self::Tentative(_)
            | Self::Connecting(_)
            | Self::Accepting(_)
            | Self::Gated(_)
            | Self::Connected(_)
            | Self::Draining => false,
        }
    }

    /// Returns whether a receive that completes now has to be reported after ESTABLISHED, which is
    /// not reported yet. (In [`Phase::Accepting`] the receive itself establishes the connection.)
    pub(crate) const fn holds_receives(self) -> bool {
        match self {
            Self::Connecting(_) | Self::Gated(_) | Self::GatedEnded(_) => true,
            Self::Unconnected(_)
            | Self::Reserved(_)
            | Self::Passive(_)
            | Self::Tentative(_)
            | Self::Accepting(_)
            | Self::Connected(_)
            | Self::Draining
            | Self::Flushing(_)
            | Self::Disconnected
            | Self::Freed => false,
        }
    }

    /// Returns the error of a call that this phase does not allow: INVALID_STATE with the subtype
    /// of the state, or INVALID_HANDLE after the Endpoint was freed.
    pub(crate) const fn invalid_state_error(self) -> DatError {
        match self {
            Self::Freed => DatError::new(Kind::InvalidHandle, Subtype::InvalidHandleEp),
            Self::Unconnected(_)
            | Self::Reserved(_)
            | Self::Passive(_)
            | Self::Tentative(_)
            | Self::Connecting(_)
            | Self::Accepting(_)
            | Self::Gated(_)
            | Self::GatedEnded(_)
            | Self::Connected(_)
            | Self::Draining
            | Self::Flushing(_)
            | Self::Disconnected => self.state().invalid_state_error(),
        }
    }
}
