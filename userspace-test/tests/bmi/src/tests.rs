// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests of the engine's parts, of each rule of the protocol, and of random programs.

mod cancel;
mod connects;
mod credit;
mod data;
mod devices;
mod endings;
mod endpoints;
mod events;
mod forged;
mod hostile;
mod idle;
mod loans;
mod matching;
mod memory;
mod pair;
mod parts;
mod random;
mod receives;
mod reconnections;
mod refusals;
mod requests;
mod sessions;
mod shortage;
mod ways;
mod wire;
