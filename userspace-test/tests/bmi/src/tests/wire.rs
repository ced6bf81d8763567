// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The format of messages.

use crate::bmi::engine::{
    descriptors,
    encode_descriptor,
    reason_of,
    rejection,
    Descriptor,
    Error,
    Header,
    Hello,
    Kind,
    Rails,
    Window,
    HEADER, //
};
use proptest::prelude::*;

const FULL: Header = Header {
    kind: Kind::Done,
    flags: 1,
    returned: Window {
        data: 0x0302,
        control: 0x0504,
    },
    descriptors: 0,
    sequence: 0x0b0a_0908,
    tag: 0x0f0e_0d0c,
    length: 0x1716_1514_1312_1110,
    operation: 0x1f1e_1d1c_1b1a_1918,
    peers_operation: 0x2726_2524_2322_2120,
    offset: 0x2f2e_2d2c_2b2a_2928,
};

#[test]
fn the_bytes_of_a_header() {
    let mut expected: Vec<u8> = (0..48).collect();
    expected[..2].copy_from_slice(&[5, 1]);
    expected[6..8].fill(0);
    assert_eq!(FULL.encode()[..], expected);
    assert_eq!(Header::decode(&expected), Ok(FULL));
}

#[test]
fn the_bytes_of_a_descriptor() {
    let descriptor = Descriptor {
        address: 0x0706_0504_0302_0100,
        length: 0x0b0a_0908,
        context: 0x0f0e_0d0c,
        rails: Rails::ALL,
    };
    let bytes = encode_descriptor(descriptor);
    assert!(bytes.iter().copied().eq(0..16));
    assert!(descriptors(&bytes, false).eq([descriptor]));
}

#[test]
fn the_bytes_of_private_data() {
    let hello = Hello {
        features: 0x0b0a_0908,
        message: 0x0f0e_0d0c,
        window: Window {
            data: 0x1110,
            control: 0x1312,
        },
        rails: 7,
        rail: 6,
        instance: 0x1f1e_1d1c_1b1a_1918,
        session: 0x2726_2524_2322_2120,
        peer: 0x2f2e_2d2c_2b2a_2928,
    };
    let mut expected: Vec<u8> = (0..48).collect();
    expected[..8].copy_from_slice(b"KBMI\x01\x30\x07\x06");
    expected[20..24].fill(0);
    assert_eq!(hello.encode()[..], expected);
    assert_eq!(Hello::decode(&expected), Ok(hello));
}

#[test]
fn a_rejection_tells_the_version() {
    let ours = rejection();
    assert_eq!(reason_of(&ours), Error::Refused);
    let mut other = ours;
    other[4] += 1;
    assert_eq!(reason_of(&other), Error::Version);
    for malformed in [&b""[..], b"KBM", b"KBMI", b"other text"] {
        assert_eq!(reason_of(malformed), Error::Refused);
    }
}

#[test]
fn flags_of_later_versions_are_refused() {
    let mut bytes = FULL.encode();
    bytes[1] = 4;
    assert_eq!(Header::decode(&bytes), Err(Error::Protocol));
}

#[test]
fn the_numbers_of_the_types() {
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(Header::new(kind).encode()[0]), index + 1);
    }
}

#[test]
fn the_numbers_of_errors() {
    let numbers = [
        (Error::Invalid, libc::EINVAL),
        (Error::NoMemory, libc::ENOMEM),
        (Error::Cancelled, libc::ECANCELED),
        (Error::TooLong, libc::EMSGSIZE),
        (Error::Refused, libc::ECONNREFUSED),
        (Error::Unreachable, libc::EHOSTUNREACH),
        (Error::Version, libc::EPROTONOSUPPORT),
        (Error::Protocol, libc::EPROTO),
        (Error::Reset, libc::ECONNRESET),
        (Error::TimedOut, libc::ETIMEDOUT),
        (Error::NotConnected, libc::ENOTCONN),
        (Error::DeviceLost, libc::ENODEV),
    ];
    for (error, number) in numbers {
        assert_eq!(error.errno(), number);
    }
}

proptest! {
    #[test]
    fn decoding_accepts_what_it_encodes(
        mut bytes in prop::collection::vec(any::<u8>(), 0..120),
        kind in 0_u8..14,
        shape in 0_usize..4,
    ) {
        if let [first, flags, ..] = &mut bytes[..] {
            *first = kind;
            *flags &= 7;
        }
        if shape > 0 && bytes.len() >= HEADER {
            // A length that is likely to be right.
            let body = (bytes.len() - HEADER) as u64;
            bytes[16..24].copy_from_slice(&body.to_le_bytes());
            bytes[6..8].copy_from_slice(&[(body / 16) as u8 * (shape / 2) as u8, 0]);
        }
        if let Ok(header) = Header::decode(&bytes) {
            prop_assert_eq!(&header.encode()[..], &bytes[..HEADER]);
        }
    }
}
