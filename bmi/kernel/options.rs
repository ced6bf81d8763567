// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Parameters of the engine, which are those of `libkdapl_bmi`.

use crate::engine::{
    Config,
    Window,
    MAX_RAILS, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// `struct bmi_options` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    rails: u32,
    push: u32,
    stripe_from: u64,
}

/// Options of the instance. The unit of times is a millisecond.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    /// Bytes of the largest message on the wire.
    pub(crate) message: u32,
    /// Messages that a peer may send before this side has taken them.
    pub(crate) window: u16,
    /// Connections to each peer.
    pub(crate) rails: u8,
    /// Bytes from which on a message is divided over the connections to a peer.
    stripe_from: u64,
    /// Long messages are read by their receivers, if both sides can do so.
    pull: bool,
    /// Receives of the shared receive queue.
    pub(crate) shared_receives: u32,
    /// Time after which an attempt to connect fails.
    pub(crate) connect_timeout: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            message: 16 * 1024,
            window: 32,
            rails: 1,
            stripe_from: 256 * 1024,
            pull: true,
            shared_receives: 1024,
            connect_timeout: 30_000,
        }
    }
}

impl Options {
    /// Returns the options that a consumer wants.
    pub(crate) fn wanted(wanted: Wanted) -> Result<Self> {
        let default = Self::default();
        let rails = match wanted.rails {
            0 => default.rails,
            rails => u8::try_from(rails).map_err(|_| EINVAL)?,
        };
        let stripe_from = match wanted.stripe_from {
            0 => default.stripe_from,
            bytes => bytes,
        };
        if usize::from(rails) > MAX_RAILS || wanted.push > 1 {
            return Err(EINVAL);
        }
        Ok(Self {
            rails,
            stripe_from,
            pull: wanted.push == 0,
            ..default
        })
    }

    /// Returns the options for so many devices: at least one connection for each.
    pub(crate) fn for_devices(self, count: u8) -> Self {
        Self {
            rails: self.rails.max(count),
            ..self
        }
    }

    /// Returns the receives of each connection.
    pub(crate) fn window(&self) -> Window {
        Window::of_home(self.window)
    }

    /// Returns the options for devices whose messages may have so many segments: a buffer has a
    /// segment for each of its pages, as these may not be contiguous.
    pub(crate) fn for_segments(self, segments: u32) -> Self {
        let most = segments.max(1).saturating_mul(PAGE_SIZE as u32);
        Self {
            message: self.message.min(most),
            ..self
        }
    }

    /// Returns the segments of a message.
    pub(crate) fn segments(&self) -> u32 {
        self.message.div_ceil(PAGE_SIZE as u32)
    }

    /// Returns the requests of the engine on each connection.
    pub(crate) fn queue(&self) -> u16 {
        self.window().requests()
    }

    /// Returns the entries of operations that a session needs.
    pub(crate) fn session(&self) -> u32 {
        self.window().sum() * u32::from(self.rails)
    }

    /// Returns the parameters of the engine, for devices on which receivers may or may not read.
    pub(crate) fn config(&self, can_read: bool, devices: u8) -> Config {
        Config {
            instance: random(),
            message: self.message,
            window: self.window(),
            lend: Window::LEND,
            lend_all: Window::LEND_ALL,
            queue: self.queue(),
            rails: self.rails,
            devices,
            stripe_from: self.stripe_from,
            pull: self.pull && can_read,
            silence: 15_000,
            patience: 5_000,
        }
    }
}

/// Returns a number that nobody can guess, other than 0.
pub(crate) fn random() -> u64 {
    crate::glue::random() | 1
}
