// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests of BMI's engine on the host, from the same source files as its homes and without a
//! network.
#![cfg_attr(not(test), no_std)]
#![expect(dead_code, reason = "a home uses what the tests do not")]
#![cfg_attr(not(test), expect(unused_imports, reason = "only the tests use them"))]

// For an inline module, the path names a folder.
#[path = "../../../../bmi"]
mod bmi {
    pub(crate) mod engine;
}

#[cfg(test)]
mod sim;

#[cfg(test)]
mod tests;
