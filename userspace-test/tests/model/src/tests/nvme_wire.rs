// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the wire format with bytes that the stock `nvme-rdma` and `nvmet-rdma` send.

use crate::nvme::wire::{
    in_capsule, is_write, ConnectReply, ConnectRequest, Depths, Reject, Sgl, Status, COMMAND_SIZE,
};
use proptest::prelude::*;

/// Request for queue 1 with 128 receives, and sends up to number 127.
fn request() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[2..10].copy_from_slice(&[1, 0, 128, 0, 127, 0, 3, 2]);
    bytes
}

#[test]
fn a_connection_request_is_decoded() {
    let expected = ConnectRequest {
        qid: 1,
        host_receives: 128,
        host_last_send: 127,
        controller: 0x203,
    };
    assert_eq!(ConnectRequest::parse(&request()), Ok(expected));
    let mut padded = [0; 56];
    padded[..32].copy_from_slice(&request());
    assert_eq!(ConnectRequest::parse(&padded), Ok(expected));
    assert_eq!(expected.to_bytes(), request());
}

#[test]
fn a_malformed_request_is_rejected() {
    let short = ConnectRequest::parse(&request()[..31]);
    assert_eq!(short, Err(Reject::InvalidLength));
    assert_eq!(ConnectRequest::parse(&[]), Err(Reject::InvalidLength));
    for byte in [0, 1] {
        let mut other = request();
        other[byte] = 1;
        assert_eq!(ConnectRequest::parse(&other), Err(Reject::InvalidFormat));
    }
}

fn depths(qid: u16, host_receives: u16, host_last_send: u16) -> Result<Depths, Reject> {
    ConnectRequest {
        qid,
        host_receives,
        host_last_send,
        controller: 0,
    }
    .depths()
}

#[test]
fn depths_have_limits() {
    let good = |commands, responses| {
        Ok(Depths {
            commands,
            responses,
        })
    };
    assert_eq!(depths(0, 32, 31), good(32, 32));
    assert_eq!(depths(0, 32, 32), Err(Reject::InvalidSends));
    assert_eq!(depths(0, 33, 31), Err(Reject::InvalidReceives));
    assert_eq!(depths(1, 256, 255), good(256, 256));
    assert_eq!(depths(1, 1, 0), good(1, 1));
    assert_eq!(depths(1, 256, 256), Err(Reject::InvalidSends));
    assert_eq!(depths(1, 257, 255), Err(Reject::InvalidReceives));
    assert_eq!(depths(1, 0, 127), Err(Reject::InvalidReceives));
    assert_eq!(depths(1, 128, u16::MAX), Err(Reject::InvalidSends));
}

#[test]
fn a_reply_and_a_reject_have_their_bytes() {
    let reply = ConnectReply {
        target_receives: 0x102,
    };
    assert_eq!(&reply.to_bytes()[..4], [0, 0, 2, 1]);
    assert_eq!(ConnectReply::parse(&reply.to_bytes()), Ok(reply));
    assert_eq!(ConnectReply::parse(&[0, 0, 2]), Err(Reject::InvalidLength));
    let other = ConnectReply::parse(&[1, 0, 2, 1]);
    assert_eq!(other, Err(Reject::InvalidFormat));
    assert_eq!(Reject::NoResources.to_bytes(), [0, 0, 6, 0]);
}

#[test]
fn each_reject_is_decoded() {
    for status in 1..=9_u8 {
        let bytes = [0, 0, status, 0];
        let reject = Reject::parse(&bytes).unwrap();
        assert_eq!(reject.to_bytes(), bytes);
    }
    for other in [&[0, 0, 0, 0][..], &[0, 0, 10, 0], &[1, 0, 1, 0], &[0, 0, 1]] {
        assert_eq!(Reject::parse(other), None);
    }
}

/// Descriptor of 0x030201 bytes, or with the key's bytes behind, at 0x0807060504030201.
fn descriptor(kind: u8) -> [u8; 16] {
    [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 0xa, 0xb, 0xc, 0xd, kind]
}

#[test]
fn keyed_descriptors_are_decoded() {
    for (kind, invalidate) in [(0x40, false), (0x4f, true)] {
        let keyed = Sgl::Keyed {
            address: 0x0807_0605_0403_0201,
            length: 0x03_0201,
            key: 0x0d0c_0b0a,
            invalidate,
        };
        assert_eq!(Sgl::parse(&descriptor(kind)), Ok(keyed));
        assert_eq!(keyed.to_bytes(), descriptor(kind));
    }
}

#[test]
fn a_descriptor_of_the_capsule_is_decoded() {
    let mut bytes = descriptor(0x01);
    bytes[12..15].fill(0);
    let expected = Sgl::InCapsule {
        offset: 0x0807_0605_0403_0201,
        length: 0x0a03_0201,
    };
    assert_eq!(Sgl::parse(&bytes), Ok(expected));
    assert_eq!(expected.to_bytes(), bytes);
}

#[test]
fn other_descriptors_have_a_status() {
    for kind in 0..=u8::MAX {
        let status = match (kind >> 4, kind & 15) {
            (0, 1) | (4, 0 | 15) => continue,
            (0 | 4, _) => 0x4002,
            _ => 0x4011,
        };
        assert_eq!(Sgl::parse(&descriptor(kind)), Err(Status(status)));
    }
}

#[test]
fn the_descriptor_of_a_command_is_at_its_place() {
    let mut command = [0xee; COMMAND_SIZE];
    command[24..40].copy_from_slice(&descriptor(0x40));
    assert_eq!(Sgl::of_command(&command), Sgl::parse(&descriptor(0x40)));
}

#[test]
fn the_direction_is_that_of_the_opcode_or_of_the_fabrics_type() {
    let command = |opcode, fabrics_type| {
        let mut command = [0; COMMAND_SIZE];
        (command[0], command[4]) = (opcode, fabrics_type);
        is_write(&command)
    };
    assert!(command(0x01, 0)); // write
    assert!(!command(0x02, 1)); // read of namespace 1
    assert!(command(0x7f, 1)); // connect
    assert!(!command(0x7f, 4)); // property get
}

#[test]
fn data_beyond_the_capsule_are_refused() {
    let refused = Err(Status(0x4016));
    assert_eq!(in_capsule(0, 4096, 64 + 4096, 4096), Ok((0, 4096)));
    assert_eq!(in_capsule(512, 3584, 64 + 4096, 4096), Ok((512, 3584)));
    assert_eq!(in_capsule(512, 3585, 64 + 4096, 4096), refused);
    // The host has not sent that much.
    assert_eq!(in_capsule(0, 4096, 64 + 4095, 4096), refused);
    // The port does not offer that much.
    assert_eq!(in_capsule(0, 4097, 64 + 8192, 4096), refused);
    assert_eq!(in_capsule(u64::MAX, 1, 64 + 4096, 4096), refused);
    assert_eq!(in_capsule(0, 0, 0, 4096), Ok((0, 0)));
}

proptest! {
    #[test]
    fn descriptors_survive(bytes: [u8; 16]) {
        if let Ok(sgl) = Sgl::parse(&bytes) {
            prop_assert_eq!(Sgl::parse(&sgl.to_bytes()), Ok(sgl));
        }
    }

    #[test]
    fn in_capsule_data_lie_within(
        offset in prop_oneof![0..9000_u64, any::<u64>()],
        length in prop_oneof![0..9000_u32, any::<u32>()],
        received in 0..9000_usize,
        offered in 0..9000_usize,
    ) {
        if let Ok((offset, length)) = in_capsule(offset, length, received, offered) {
            prop_assert!(offset + length <= offered);
            prop_assert!(offset + length == 0 || COMMAND_SIZE + offset + length <= received);
        }
    }
}
