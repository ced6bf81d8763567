// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! States of a Local Memory Region (LMR) that requests register and invalidate: that of
//! `dat_lmr_allocate`.
//!
//! `dat_lmr_fmr` posts a request that registers memory, and `dat_lmr_invalidate` one that ends the
//! registration. The peer may end it, too. Completions are drained with a delay, and in any order
//! if they are of two queues:
//!
//! ```text
//!              Prepare            Register                RegistrationEnded
//!   Free ----------------> Preparing ----> Registering ----------------> Registered
//!    ^                                       |      | PeerInvalidated         |
//!    |                            Invalidate |      v                         | Invalidate
//!    |                                       |    Dying                       v
//!    |                                       +----------> Both ---------> Invalidating
//!    |                                          RegistrationEnded of Both     |
//!    +------------------------------------------------------------------------+
//! ```
//!
//! A request that fails or is flushed may or may not have been carried out. So the device's region
//! is *lost*: the next registration needs a new one.

use super::code::{
    DatError,
    DatResult,
    Kind,
    Subtype, //
};

/// State of an LMR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LmrState {
    /// Nothing is registered, and no request is outstanding.
    Free,
    /// A call prepares a registration.
    Preparing,
    /// The registration is outstanding.
    Registering,
    /// The memory is registered.
    Registered,
    /// The invalidation is outstanding.
    Invalidating,
    /// Registration and invalidation are outstanding.
    Both,
    /// The registration is outstanding, and its key was invalidated already.
    Dying,
    /// A request has failed. The registration is outstanding.
    LostRegistering,
    /// A request has failed. The invalidation is outstanding.
    LostInvalidating,
    /// A request has failed: the device may still have the key.
    Lost,
}

/// Calls and completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LmrInput {
    /// A call of `dat_lmr_fmr` begins.
    Prepare,
    /// That call has failed before it posted the request.
    Abandon,
    /// That call has posted the request.
    Register,
    /// A call of `dat_lmr_invalidate` posts its request. `in_order` says whether it is carried out
    /// after a registration that is outstanding.
    Invalidate {
        /// The request goes to the queue of the registration.
        in_order: bool,
    },
    /// The completion of the registration was taken.
    RegistrationEnded {
        /// The request was carried out.
        ok: bool,
    },
    /// The completion of the invalidation was taken.
    InvalidationEnded {
        /// The request was carried out.
        ok: bool,
    },
    /// A receive has reported that the peer invalidated the key.
    PeerInvalidated,
}

/// Task of the caller after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LmrEffects {
    /// Posts must not name the LMR context any more.
    pub(crate) forget: bool,
    /// The device does not access the memory any more: end its DMA mapping.
    pub(crate) unmap: bool,
    /// Destroy the device's region before the next registration.
    pub(crate) replace: bool,
}

impl LmrEffects {
    /// No effects.
    const NONE: Self = Self {
        forget: false,
        unmap: false,
        replace: false,
    };
    /// The context ends, and the device may access the memory.
    const FORGET: Self = Self {
        forget: true,
        ..Self::NONE
    };
    /// The context ends, and the device does not access the memory.
    const RELEASE: Self = Self {
        unmap: true,
        ..Self::FORGET
    };
    /// The region cannot be used again.
    const REPLACE: Self = Self {
        replace: true,
        ..Self::NONE
    };
}

/// Returns the error for an LMR that is registered, or has a request outstanding.
pub(crate) const fn in_use() -> DatError {
    DatError::new(Kind::InvalidState, Subtype::InvalidStateLmrInUse)
}

/// Returns the error for an LMR that has no registration to invalidate.
const fn free() -> DatError {
    DatError::new(Kind::InvalidState, Subtype::InvalidStateLmrFree)
}

impl LmrState {
    /// Returns whether the next registration needs another region.
    pub(crate) const fn is_lost(self) -> bool {
        matches!(self, Self::Lost)
    }

    /// Returns whether a request is outstanding, or about to be posted.
    pub(crate) const fn is_busy(self) -> bool {
        match self {
            Self::Free | Self::Registered | Self::Lost => false,
            Self::Preparing
            | Self::Registering
            | Self::Invalidating
            | Self::Both
            | Self::Dying
            | Self::LostRegistering
            | Self::LostInvalidating => true,
        }
    }

    /// Returns whether the consumer may use the contexts.
    pub(crate) const fn is_registered(self) -> bool {
        match self {
            Self::Registering | Self::Registered => true,
            Self::Free
            | Self::Preparing
            | Self::Invalidating
            | Self::Both
            | Self::Dying
            | Self::LostRegistering
            | Self::LostInvalidating
            | Self::Lost => false,
        }
    }

    /// Takes a step. Completions that no state expects change nothing.
    ///
    /// # Errors
    ///
    /// * INVALID_STATE (LMR in use) for a registration of an LMR that is registered or has a
    ///   request outstanding, and for an invalidation that would overtake the registration.
    /// * INVALID_STATE (LMR free) for an invalidation without a registration.
    pub(crate) const fn step(self, input: LmrInput) -> DatResult<(Self, LmrEffects)> {
        match input {
            LmrInput::Prepare => self.prepare(),
            LmrInput::Invalidate { in_order } => self.invalidate(in_order),
            LmrInput::Abandon => Ok(self.abandon()),
            LmrInput::Register => Ok(self.register()),
            LmrInput::RegistrationEnded { ok } => Ok(self.registration_ended(ok)),
            LmrInput::InvalidationEnded { ok } => Ok(self.invalidation_ended(ok)),
            LmrInput::PeerInvalidated => Ok(self.peer_invalidated()),
        }
    }

    const fn prepare(self) -> DatResult<(Self, LmrEffects)> {
        match self {
            Self::Free => Ok((Self::Preparing, LmrEffects::NONE)),
            Self::Lost => Ok((Self::Preparing, LmrEffects::REPLACE)),
            Self::Preparing
            | Self::Registering
            | Self::Registered
            | Self::Invalidating
            | Self::Both
            | Self::Dying
            | Self::LostRegistering
            | Self::LostInvalidating => Err(in_use()),
        }
    }

    const fn abandon(self) -> (Self, LmrEffects) {
        match self {
            Self::Preparing => (Self::Free, LmrEffects::RELEASE),
            Self::Free
            | Self::Registering
            | Self::Registered
            | Self::Invalidating
            | Self::Both
            | Self::Dying
            | Self::LostRegistering
            | Self::LostInvalidating
            | Self::Lost => (self, LmrEffects::NONE),
        }
    }

    const fn register(self) -> (Self, LmrEffects) {
        match self {
            Self::Preparing => (Self::Registering, LmrEffects::NONE),
            Self::Free
            | Self::Registering
            | Self::Registered
            | Self::Invalidating
            | Self::Both
            | Self::Dying
            | Self::LostRegistering
            | Self::LostInvalidating
            | Self::Lost => (self, LmrEffects::NONE),
        }
    }

    const fn invalidate(self, in_order: bool) -> DatResult<(Self, LmrEffects)> {
        match self {
            Self::Registered => Ok((Self::Invalidating, LmrEffects::FORGET)),
            Self::Registering if in_order => Ok((Self::Both, LmrEffects::FORGET)),
            Self::Registering => Err(in_use()),
            Self::Free
            | Self::Preparing
            | Self::Invalidating
            | Self::Both
            | Self::Dying
            | Self::LostRegistering
            | Self::LostInvalidating
            | Self::Lost => Err(free()),
        }
    }

    const fn registration_ended(self, ok: bool) -> (Self, LmrEffects) {
        match (self, ok) {
            (Self::Registering, true) => (Self::Registered, LmrEffects::NONE),
            (Self::Both, true) => (Self::Invalidating, LmrEffects::NONE),
            (Self::Both, false) => (Self::LostInvalidating, LmrEffects::NONE),
            (Self::Dying, true) => (Self::Free, LmrEffects::NONE),
            (Self::Registering | Self::Dying, false) | (Self::LostRegistering, _) => {
                (Self::Lost, LmrEffects::FORGET)
            }
            (
                Self::Free
                | Self::Preparing
                | Self::Registered
                | Self::Invalidating
                | Self::LostInvalidating
                | Self::Lost,
                _,
            ) => (self, LmrEffects::NONE),
        }
    }

    const fn invalidation_ended(self, ok: bool) -> (Self, LmrEffects) {
        match (self, ok) {
            (Self::Invalidating, true) => (Self::Free, LmrEffects::RELEASE),
            (Self::Invalidating, false) | (Self::LostInvalidating, _) => {
                (Self::Lost, LmrEffects::NONE)
            }
            // Slots that are given up end in any order.
            (Self::Both, true) => (Self::Dying, LmrEffects::RELEASE),
            (Self::Both, false) => (Self::LostRegistering, LmrEffects::NONE),
            (
                Self::Free
                | Self::Preparing
                | Self::Registering
                | Self::Registered
                | Self::Dying
                | Self::LostRegistering
                | Self::Lost,
                _,
            ) => (self, LmrEffects::NONE),
        }
    }

    const fn peer_invalidated(self) -> (Self, LmrEffects) {
        match self {
            Self::Registered => (Self::Free, LmrEffects::RELEASE),
            Self::Registering => (Self::Dying, LmrEffects::RELEASE),
            // The invalidation of this side is carried out without effect.
            Self::Invalidating | Self::Both => (self, LmrEffects::RELEASE),
            Self::Free
            | Self::Preparing
            | Self::Dying
            | Self::LostRegistering
            | Self::LostInvalidating
            | Self::Lost => (self, LmrEffects::NONE),
        }
    }
}
