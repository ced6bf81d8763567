// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The border of every function of the table.

use crate::abi::DAT_RETURN;
use crate::ret::{Result, Ret};
use libkdapl::Type;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs the body of a call: its error becomes the code, and so does a panic, which must not get among
/// the frames of a C program.
pub fn entry(body: impl FnOnce() -> Result<()>) -> DAT_RETURN {
    // What a panic leaves half done is under locks that say so (`PoisonError`), and whole values are
    // all that is replaced under them.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(ret)) => ret.0,
        Err(_) => Ret::of(Type::INTERNAL_ERROR).0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        std::panic::set_hook(Box::new(|_| {}));
        assert_eq!(entry(|| panic!("a test")), 0x8004_0000);
        assert_eq!(entry(|| Err(Ret::argument(1))), 0x8006_0025);
        assert_eq!(entry(|| Ok(())), 0);
    }
}
