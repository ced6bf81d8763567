// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Error numbers of `rdma_cm` that the kernel crate has no name for.

use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Returns whether `error` is `errno`.
pub(super) fn is(error: Error, errno: u32) -> bool {
    i32::try_from(errno).is_ok_and(|errno| error.to_errno() == -errno)
}

/// Returns whether `error` is one of `errnos`.
pub(super) fn is_one_of(error: Error, errnos: &[u32]) -> bool {
    errnos.iter().any(|&errno| is(error, errno))
}

/// Returns whether a connect over iWARP failed because TCP uses the local port that `rdma_cm` has
/// chosen. siw and erdma bind a TCP socket to it.
pub(crate) fn is_local_port_in_use(error: Error) -> bool {
    is_one_of(error, &[bindings::EADDRINUSE, bindings::EADDRNOTAVAIL])
}

/// Returns whether a connect failed because no route leads to the address or the peer does not
/// answer. Over iWARP the connect itself detects this.
pub(crate) fn is_unreachable(error: Error) -> bool {
    is_one_of(
        error,
        &[
            bindings::ENETUNREACH,
            bindings::EHOSTUNREACH,
            bindings::ETIMEDOUT,
        ],
    )
}
