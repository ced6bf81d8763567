// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests of the engine's parts, of each rule of the protocol, and of random programs.

mod pair;
mod random;
mod rules;
