// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Numbers of errors. BMI has its own, which are not those of Linux.

use libkdapl_bmi::{Error, Failure};

/// Returns the number of an error, with the bits that make it one of BMI.
const fn number(number: i32) -> i32 {
    number | (1 << 30) | (1 << 7)
}

/// Numbers of `bmi.h`.
pub const ECANCEL: i32 = number(1) | (1 << 29);
pub const EBUSY: i32 = number(10);
pub const EINVAL: i32 = number(15);
pub const ENOSYS: i32 = number(25);
pub const EDEVINIT: i32 = number(2) | (1 << 29);
const EIO: i32 = number(4);
pub const ENOMEM: i32 = number(8);
const ENODEV: i32 = number(12);
const EPIPE: i32 = number(21);
const EPROTO: i32 = number(38);
const EMSGSIZE: i32 = number(42);
const EPROTONOSUPPORT: i32 = number(45);
const EADDRINUSE: i32 = number(47);
const ETIMEDOUT: i32 = number(53);
const ECONNREFUSED: i32 = number(54);
const EHOSTUNREACH: i32 = number(56);
const EACCES: i32 = number(58);
const ECONNRESET: i32 = number(59);

/// Returns the number of an operation's error.
pub fn of_failure(failure: Failure) -> i32 {
    match failure {
        Failure::Invalid => EINVAL,
        Failure::NoMemory => ENOMEM,
        Failure::Cancelled => ECANCEL,
        Failure::TooLong => EMSGSIZE,
        Failure::Refused => ECONNREFUSED,
        Failure::Unreachable => EHOSTUNREACH,
        Failure::Version => EPROTONOSUPPORT,
        Failure::Protocol => EPROTO,
        Failure::Reset => ECONNRESET,
        Failure::TimedOut => ETIMEDOUT,
        // BMI has no ENOTCONN.
        Failure::NotConnected => EPIPE,
        Failure::DeviceLost => ENODEV,
    }
}

/// Returns the number of a call's error.
pub fn of(error: &Error) -> i32 {
    match error {
        Error::Post(failure) => of_failure(*failure),
        Error::Address { .. } | Error::Options(_) => EINVAL,
        Error::NoDevice => ENODEV,
        Error::Contexts => EBUSY,
        Error::Dat(error) => of_dat(error),
    }
}

/// Errors of `errno.h` in the order of their numbers in BMI, from 1 on.
const ERRNOS: [i32; 59] = [
    libc::EPERM,
    libc::ENOENT,
    libc::EINTR,
    libc::EIO,
    libc::ENXIO,
    libc::EBADF,
    libc::EAGAIN,
    libc::ENOMEM,
    libc::EFAULT,
    libc::EBUSY,
    libc::EEXIST,
    libc::ENODEV,
    libc::ENOTDIR,
    libc::EISDIR,
    libc::EINVAL,
    libc::EMFILE,
    libc::EFBIG,
    libc::ENOSPC,
    libc::EROFS,
    libc::EMLINK,
    libc::EPIPE,
    libc::EDEADLK,
    libc::ENAMETOOLONG,
    libc::ENOLCK,
    libc::ENOSYS,
    libc::ENOTEMPTY,
    libc::ELOOP,
    libc::EWOULDBLOCK,
    libc::ENOMSG,
    libc::EUNATCH,
    libc::EBADR,
    libc::EDEADLOCK,
    libc::ENODATA,
    libc::ETIME,
    libc::ENONET,
    libc::EREMOTE,
    libc::ECOMM,
    libc::EPROTO,
    libc::EBADMSG,
    libc::EOVERFLOW,
    libc::ERESTART,
    libc::EMSGSIZE,
    libc::EPROTOTYPE,
    libc::ENOPROTOOPT,
    libc::EPROTONOSUPPORT,
    libc::EOPNOTSUPP,
    libc::EADDRINUSE,
    libc::EADDRNOTAVAIL,
    libc::ENETDOWN,
    libc::ENETUNREACH,
    libc::ENETRESET,
    libc::ENOBUFS,
    libc::ETIMEDOUT,
    libc::ECONNREFUSED,
    libc::EHOSTDOWN,
    libc::EHOSTUNREACH,
    libc::EALREADY,
    libc::EACCES,
    libc::ECONNRESET,
];

/// Returns the number of an error of `errno.h`, with its sign; any other number unchanged.
pub fn of_errno(error: i32) -> i32 {
    let place = ERRNOS.iter().position(|errno| errno.unsigned_abs() == error.unsigned_abs());
    place.map_or(error, |place| error.signum() * number(place as i32 + 1))
}

fn of_dat(error: &libkdapl_bmi::DatError) -> i32 {
    match error.errno() {
        Some(libc::EACCES | libc::EPERM) => return EACCES,
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => return ENODEV,
        _ => {}
    }
    match error.kind() {
        Some(kind) if kind == libkdapl_bmi::Type::INSUFFICIENT_RESOURCES => ENOMEM,
        Some(kind) if kind == libkdapl_bmi::Type::PROVIDER_NOT_FOUND => ENODEV,
        Some(kind) if kind == libkdapl_bmi::Type::CONN_QUAL_IN_USE => EADDRINUSE,
        Some(kind) if kind == libkdapl_bmi::Type::PRIVILEGES_VIOLATION => EACCES,
        _ => EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header;

    #[test]
    fn numbers_are_those_of_the_header() {
        for (ours, theirs) in [
            (EIO, header::NUMBER_OF_BMI_EIO),
            (ENOMEM, header::NUMBER_OF_BMI_ENOMEM),
            (EBUSY, header::NUMBER_OF_BMI_EBUSY),
            (ENODEV, header::NUMBER_OF_BMI_ENODEV),
            (EINVAL, header::NUMBER_OF_BMI_EINVAL),
            (EPIPE, header::NUMBER_OF_BMI_EPIPE),
            (ENOSYS, header::NUMBER_OF_BMI_ENOSYS),
            (EPROTO, header::NUMBER_OF_BMI_EPROTO),
            (EMSGSIZE, header::NUMBER_OF_BMI_EMSGSIZE),
            (EPROTONOSUPPORT, header::NUMBER_OF_BMI_EPROTONOSUPPORT),
            (EADDRINUSE, header::NUMBER_OF_BMI_EADDRINUSE),
            (ETIMEDOUT, header::NUMBER_OF_BMI_ETIMEDOUT),
            (ECONNREFUSED, header::NUMBER_OF_BMI_ECONNREFUSED),
            (EHOSTUNREACH, header::NUMBER_OF_BMI_EHOSTUNREACH),
            (EACCES, header::NUMBER_OF_BMI_EACCES),
            (ECONNRESET, header::NUMBER_OF_BMI_ECONNRESET),
            (ECANCEL, header::NUMBER_OF_BMI_ECANCEL),
            (EDEVINIT, header::NUMBER_OF_BMI_EDEVINIT),
        ] {
            assert_eq!(ours, theirs);
        }
    }
}
