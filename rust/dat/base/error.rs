// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Translation of kernel errors to DAT errors.

use crate::dat::prelude::*;
use kernel::{
    alloc::AllocError,
    error::code::*, //
};

impl From<AllocError> for DatError {
    fn from(_: AllocError) -> Self {
        Self::memory()
    }
}

impl From<Error> for DatError {
    /// Converts a kernel error by its usual meaning. A call for which an error means something else
    /// converts it itself.
    fn from(error: Error) -> Self {
        // `ENFILE`: a driver failed to allocate a socket.
        if error == ENOMEM || error == EAGAIN || error == ENFILE {
            Self::memory()
        } else if error == ENODEV || error == ENXIO || error == ENOSPC {
            Self::device()
        } else if error == EPERM || error == EACCES {
            Kind::PrivilegesViolation.into()
        } else if error == EFAULT {
            Self::malformed_address()
        } else if error == EINTR || error == ERESTARTSYS {
            Kind::InterruptedCall.into()
        } else {
            Self::internal()
        }
    }
}
