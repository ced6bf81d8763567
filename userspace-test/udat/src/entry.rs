// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Entry of every function of the table.

use crate::abi::DAT_RETURN;
use crate::ret::{Result, Ret};
use libkdapl::Type;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs the body of a call and converts its error to a `DAT_RETURN`. A panic becomes
/// DAT_INTERNAL_ERROR, because it must not unwind into the frames of a C program.
pub fn entry(body: impl FnOnce() -> Result<()>) -> DAT_RETURN {
    // A panic leaves no data half changed: data that is modified in several steps is protected by
    // locks that record the panic (`PoisonError`), and is replaced as a whole.
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
