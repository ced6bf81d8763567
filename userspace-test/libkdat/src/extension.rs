// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `dat_extension_op`, which has a variable number of arguments in C.
//!
//! Stable Rust cannot define such a function. But the arguments of all operations are integers and
//! pointers, and the ABIs of x86-64 and arm64 Linux pass these to a function with variable
//! arguments in the same registers, and then on the same stack, as to one that names them. So the
//! function names as many as the operation with the most arguments has.

use crate::open::origin;
use std::mem::MaybeUninit;
use udat::abi::*;
use udat::entry::entry;
use udat::extension;
use udat::foreign::Arguments;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("check how this ABI passes variable arguments");

/// An argument of a register or of the stack. A caller that passes fewer leaves it undefined.
type Word = MaybeUninit<u64>;

/// Arguments that have not been taken yet.
struct Words<'a>(std::slice::Iter<'a, Word>);

impl Arguments for Words<'_> {
    fn next(&mut self) -> u64 {
        // SAFETY: By the guarantee of a C program, the caller has passed all arguments of the
        // operation, and an operation takes no more than these.
        self.0.next().map_or(0, |word| unsafe { word.assume_init() })
    }
}

#[allow(clippy::too_many_arguments, reason = "the compare and swap has so many")]
#[no_mangle]
pub extern "C" fn dat_extension_op(
    handle: DAT_HANDLE,
    operation: i32,
    first: Word,
    second: Word,
    third: Word,
    fourth: Word,
    fifth: Word,
    sixth: Word,
) -> DAT_RETURN {
    entry(|| {
        let words = [first, second, third, fourth, fifth, sixth];
        let mut arguments = Words(words.iter());
        // A query has no handle yet, but the name of an adapter as its first argument.
        let query = u32::try_from(operation) == Ok(DAT_IB_OPEN_QUERY_OP);
        let name = if query { arguments.pointer() } else { std::ptr::null_mut() };
        extension::operate(handle, operation, &mut arguments, || origin(name))
    })
}
