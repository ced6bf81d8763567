// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Sends messages as programs of other versions do: arrays with shorter or longer elements,
//! reserved words, addresses of other families. Checks that the kernel returns only bytes that it
//! has set.

use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{done, empty, errno, refused_as, same};
use crate::raw::{self, Bytes};
use crate::software::software;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::{call, Call, Device, Message};
use libkdapl::sys::*;
use libkdapl::{Cr, DtoOperation, Subtype, Type};

tests! {
    dto_sizes, 30, "DTOs of a shorter or longer struct are accepted: missing fields count as zero, unknown fields must be zero";
    bad_sizes, 20, "Elements below the first published size, of an odd size or above 4096 bytes are refused, in every array";
    segment_sizes, 20, "Segments of a longer struct are accepted if the unknown fields are zero";
    event_sizes, 20, "Events of a longer struct end in zeros, and no bytes after them are written";
    reserved_words, 20, "Reserved words of attributes and of DTOs that are not zero are EINVAL";
    addresses, 20, "The bytes after an address in its 128 bytes are ignored, and are zero in every answer";
    every_byte, 60, "The kernel sets every byte of an answer: no byte is the caller's, and none is uninitialised";
}

const DTO: usize = size_of::<kdapl_dto>();
const EVENT: usize = size_of::<kdapl_event>();
const TRIPLET: usize = size_of::<kdapl_triplet>();

/// Returns the bytes of a value, shortened or extended by zeros.
fn sized<T: Copy>(value: &T, size: usize) -> Vec<u8> {
    // SAFETY: the structs of the interface have no padding, so all bytes are initialised.
    let bytes = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>())
    };
    let mut sized = bytes.to_vec();
    sized.resize(size, 0);
    sized
}

/// Submits an array of DTOs of `size` bytes each.
fn submit(end: &End, dtos: &[u8], size: usize) -> (u32, libkdapl::Result<()>) {
    let mut message = kdapl_ep_submit {
        handle: end.ep.handle().0,
        dtos: dtos.as_ptr() as u64,
        count: (dtos.len() / size.max(1)) as u32,
        dto_size: size as u32,
        ..Default::default()
    };
    let outcome = raw::call(end.ia.device(), call::EP_SUBMIT, &mut message);
    (message.posted, outcome)
}

/// Returns a send of one segment.
fn send_of(segment: &kdapl_triplet, cookie: u64) -> kdapl_dto {
    kdapl_dto {
        operation: KDAPL_DTO_SEND,
        cookie,
        iov: std::ptr::from_ref(segment) as u64,
        iov_count: 1,
        iov_size: TRIPLET as u32,
        ..Default::default()
    }
}

fn dto_sizes(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (client, server) = (&pair.client, &pair.server);
    let segment = client.lmr.segment(0, 64);
    for size in [KDAPL_DTO_SIZE_MIN as usize, 40, 64, DTO, DTO + 8, 4096] {
        (0..2).try_for_each(|i| server.receive(i * 64, 64, i as u64))?;
        let dtos = [1, 2].map(|cookie| sized(&send_of(&segment, cookie), size)).concat();
        let (posted, outcome) = submit(client, &dtos, size);
        outcome.with_context(|| format!("{size} bytes"))?;
        same("posted", posted, 2)?;
        for (cookie, receive) in [(1, 0), (2, 1)] {
            done(&context.next(&client.request)?, DtoOperation::Send, 64, cookie)?;
            done(&context.next(&server.recv)?, DtoOperation::Receive, 64, receive)?;
        }
        if size > DTO {
            let mut unknown = sized(&send_of(&segment, 3), size);
            unknown[size - 1] = 1;
            errno(submit(client, &unknown, size).1, libc::E2BIG)?;
            empty(&client.request)?;
        }
    }
    // With a remote segment, and without the operands of atomic operations.
    let write = kdapl_dto {
        operation: KDAPL_DTO_RDMA_WRITE,
        remote: server.lmr.remote_segment(0, 64),
        ..send_of(&segment, 4)
    };
    submit(client, &sized(&write, 48), 48).1?;
    done(&context.next(&client.request)?, DtoOperation::RdmaWrite, 64, 4)?;
    // A message with such a DTO, which is its last field.
    server.receive(0, 64, 9)?;
    let mut message = Bytes::of(&kdapl_ep_post {
        handle: client.ep.handle().0,
        dto: send_of(&segment, 5),
        ..Default::default()
    });
    message.resize(KDAPL_EP_POST_SIZE_MIN as usize);
    message.set_u32(0, KDAPL_EP_POST_SIZE_MIN);
    same("short post", raw::send_sized(client.ia.device(), call::EP_POST, &mut message), Ok(0))?;
    done(&context.next(&client.request)?, DtoOperation::Send, 64, 5)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 64, 9)
}

fn bad_sizes(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let evd = end.ia.create_evd(libkdapl::EvdFlags::SOFTWARE, 4)?;
    evd.post_se(1)?;
    let room = vec![0_u8; 8192];
    let refusals = |first: usize| {
        let short = [0, 1, 8, first - 8, first - 1].map(|size| (size, libc::EINVAL));
        let odd = [first + 1, first + 4, 4095].map(|size| (size, libc::EINVAL));
        let long = [4104, 1 << 20, u32::MAX as usize & !7].map(|size| (size, libc::E2BIG));
        short.into_iter().chain(odd).chain(long)
    };
    for (size, expected) in refusals(KDAPL_DTO_SIZE_MIN as usize) {
        let mut message = kdapl_ep_submit {
            handle: end.ep.handle().0,
            dtos: room.as_ptr() as u64,
            count: 1,
            dto_size: size as u32,
            ..Default::default()
        };
        let outcome = raw::call(end.ia.device(), call::EP_SUBMIT, &mut message);
        errno(outcome, expected).with_context(|| format!("DTOs of {size}"))?;
    }
    for (size, expected) in refusals(TRIPLET) {
        let dto = kdapl_dto {
            operation: KDAPL_DTO_RECEIVE,
            iov: room.as_ptr() as u64,
            iov_count: 1,
            iov_size: size as u32,
            ..Default::default()
        };
        let mut message = kdapl_ep_post { handle: end.ep.handle().0, dto, ..Default::default() };
        let outcome = raw::call(end.ia.device(), call::EP_POST, &mut message);
        errno(outcome, expected).with_context(|| format!("segments of {size}"))?;
    }
    for (size, expected) in refusals(KDAPL_EVENT_SIZE_MIN as usize) {
        for call in [call::EVD_WAIT, call::EVD_DEQUEUE] {
            let mut message = kdapl_evd_wait {
                handle: evd.handle().0,
                threshold: 1,
                max_events: 1,
                events: room.as_ptr() as u64,
                event_size: size as u32,
                ..Default::default()
            };
            let outcome = raw::call(end.ia.device(), call, &mut message);
            errno(outcome, expected).with_context(|| format!("events of {size}"))?;
        }
    }
    same("events", evd.query()?.queued, 1)?;
    ensure!(end.ep.status()?.recv_idle, "a DTO was posted");
    Ok(())
}

fn segment_sizes(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (client, server) = (&pair.client, &pair.server);
    let bytes = client.scramble(context);
    for size in [24, 64, 4096] {
        server.receive(0, 128, 1)?;
        let segments = [client.lmr.segment(0, 64), client.lmr.segment(128, 64)];
        let mut iov = segments.map(|segment| sized(&segment, size)).concat();
        let mut message = kdapl_ep_post {
            handle: client.ep.handle().0,
            dto: kdapl_dto {
                operation: KDAPL_DTO_SEND,
                cookie: 2,
                iov: iov.as_ptr() as u64,
                iov_count: 2,
                iov_size: size as u32,
                ..Default::default()
            },
            ..Default::default()
        };
        raw::call(client.ia.device(), call::EP_POST, &mut message)
            .with_context(|| format!("{size} bytes"))?;
        done(&context.next(&client.request)?, DtoOperation::Send, 128, 2)?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 128, 1)?;
        let arrived = server.lmr.buffer().to_vec(0, 128);
        ensure!(
            arrived[..64] == bytes[..64] && arrived[64..] == bytes[128..192],
            "the message differs"
        );
        iov[2 * size - 1] = 1;
        errno(raw::call(client.ia.device(), call::EP_POST, &mut message), libc::E2BIG)?;
    }
    ensure!(client.ep.status()?.request_idle, "a DTO was posted");
    Ok(())
}

fn event_sizes(context: &Context) -> Result<()> {
    let evd = software(context, 8)?;
    for size in [EVENT, EVENT + 8, 200, 4096] {
        (0..2).try_for_each(|number| evd.post_se(0x5000 + number))?;
        let mut room = vec![0xa5_u8; 3 * size + 8];
        let mut message = kdapl_evd_wait {
            handle: evd.handle().0,
            max_events: 3,
            events: room.as_mut_ptr() as u64,
            event_size: size as u32,
            ..Default::default()
        };
        raw::call(evd.device(), call::EVD_DEQUEUE, &mut message)?;
        same("taken and left", (message.taken, message.nmore), (2, 0))?;
        for (number, event) in (0..2_u64).zip(room.chunks(size)) {
            let at = std::mem::offset_of!(kdapl_event, cookie);
            same("cookie", &event[at..at + 8], &(0x5000 + number).to_ne_bytes()[..])?;
            ensure!(
                event[EVENT..].iter().all(|byte| *byte == 0),
                "the event does not end in zeros"
            );
        }
        ensure!(
            room[2 * size..].iter().all(|byte| *byte == 0xa5),
            "more than the events was written"
        );
    }
    Ok(())
}

fn reserved_words(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    for word in 0..kdapl_ep_attr::default().reserved.len() {
        let mut attr = kdapl_ep_attr::default();
        attr.reserved[word] = 1 << word;
        // Also in a message without attributes.
        for flags in [0, KDAPL_EP_HAS_ATTR] {
            let mut message = kdapl_ep_create { flags, attr, ..Default::default() };
            errno(raw::call(end.ia.device(), call::EP_CREATE, &mut message), libc::EINVAL)?;
        }
        let mut message = kdapl_ep_modify { handle: end.ep.handle().0, attr, ..Default::default() };
        errno(raw::call(end.ia.device(), call::EP_MODIFY, &mut message), libc::EINVAL)?;
    }
    let dto = kdapl_dto { operation: KDAPL_DTO_RECEIVE, reserved: 1, ..Default::default() };
    let mut message = kdapl_ep_post { handle: end.ep.handle().0, dto, ..Default::default() };
    errno(raw::call(end.ia.device(), call::EP_POST, &mut message), libc::EINVAL)?;
    ensure!(end.ep.status()?.recv_idle, "a receive was posted");
    Ok(())
}

fn addresses(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    let evd = ia.create_evd(libkdapl::EvdFlags::CR, 4)?;
    let own = ia.query()?.raw.address;
    let used = if own.sa[0] == libc::AF_INET as u8 { 8 } else { 28 };
    ensure!(own.sa[used..].iter().all(|byte| *byte == 0), "the address does not end in zeros");
    let mut address = own;
    address.sa[used..].fill(0xff);
    let mut csp = kdapl_csp { address, evd: evd.handle().0, ..Default::default() };
    raw::call(ia.device(), call::CSP_CREATE, &mut csp)?;
    ensure!(
        csp.address.sa[used..].iter().all(|byte| *byte == 0),
        "the address does not end in zeros"
    );
    // The address of InfiniBand has 48 bytes. It fits, but its family is not supported yet.
    const AF_IB: u16 = 27;
    address.sa[..2].copy_from_slice(&AF_IB.to_ne_bytes());
    let mut connect = kdapl_ep_common_connect {
        handle: end.ep.handle().0,
        remote_address: address,
        timeout_ns: 1_000_000,
        ..Default::default()
    };
    let outcome = raw::call(ia.device(), call::EP_COMMON_CONNECT, &mut connect);
    refused_as(outcome, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_MALFORMED)
}

/// Makes a call twice with different bytes in all fields that are only output; `inside` are the
/// input fields. Fails if the answers differ: such a byte was left by the caller.
fn answers<M: Message>(
    device: &Device,
    call: Call<M>,
    message: &M,
    inside: &[std::ops::Range<usize>],
) -> Result<Vec<u8>> {
    let send = |pattern: u8| -> Result<Vec<u8>> {
        let right = Bytes::of(message);
        let mut bytes = Bytes::of(message);
        bytes.as_mut()[raw::HEADER..].fill(pattern);
        for range in inside {
            bytes.as_mut()[range.clone()].copy_from_slice(&right.as_ref()[range.clone()]);
        }
        same(call.name(), raw::send_sized(device, call, &mut bytes), Ok(0))?;
        Ok(bytes.as_ref().to_vec())
    };
    let (one, other) = (send(0x5a)?, send(0xa5)?);
    let differ = one.iter().zip(&other).position(|(one, other)| one != other);
    ensure!(differ.is_none(), "{}: byte {differ:?} is left by the caller", call.name());
    Ok(one)
}

fn every_byte(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (end, ia) = (&pair.client, &pair.client.ia);
    let device = ia.device();
    macro_rules! field {
        ($message:ident.$field:ident) => {{
            let start = std::mem::offset_of!($message, $field);
            let size = size_of_val(&$message::default().$field);
            start..start + size
        }};
    }
    macro_rules! asks {
        ($call:ident: $message:ident { $($field:ident: $value:expr),* } $(, $zero:ident)*) => {
            answers(
                device,
                call::$call,
                &$message { $($field: $value,)* ..Default::default() },
                &[$(field!($message.$field),)* $(field!($message.$zero),)*],
            )
        };
    }
    let evd = ia.create_evd(libkdapl::EvdFlags::SOFTWARE, 4)?;
    let requests = ia.create_evd(libkdapl::EvdFlags::CR, 4)?;
    let cno = ia.create_cno(None)?;
    let srq = ia.create_srq(&end.pz, 4, 1)?;
    let psp = ia.create_psp(context.port(), &requests)?;
    let csp = ia.create_csp(None, &requests)?;
    let whole = asks!(IA_QUERY: kdapl_ia_query {})?;
    for name in [field!(kdapl_ia_query.adapter_name), field!(kdapl_ia_query.netdev_name)] {
        let bytes = &whole[name];
        let end =
            bytes.iter().position(|byte| *byte == 0).context("the name has no terminating NUL")?;
        ensure!(bytes[end..].iter().all(|byte| *byte == 0), "bytes after the name are not zero");
    }
    asks!(DEVICE_GET: kdapl_device { index: 0 })?;
    asks!(PORT_GET: kdapl_port { device: 0, port: 1, address_index: 0 })?;
    asks!(EVD_QUERY: kdapl_evd_query { handle: evd.handle().0 })?;
    asks!(CNO_QUERY: kdapl_cno_query { handle: cno.handle().0 }, pad)?;
    asks!(LMR_QUERY: kdapl_lmr_query { handle: end.lmr.handle().0 }, pad)?;
    asks!(SRQ_QUERY: kdapl_srq_query { handle: srq.handle().0 })?;
    asks!(PSP_QUERY: kdapl_psp_query { handle: psp.handle().0 })?;
    asks!(CSP_QUERY: kdapl_csp { handle: csp.handle().0 }, pad)?;
    asks!(EP_GET_STATUS: kdapl_ep_status { handle: end.ep.handle().0 }, pad)?;
    asks!(EP_PRIVATE_DATA: kdapl_ep_private_data { handle: end.ep.handle().0 }, pad)?;
    let attr = field!(kdapl_ep_query.attr);
    for mask in [0, KDAPL_EP_FIELD_ALL] {
        let answer = asks!(EP_QUERY: kdapl_ep_query { handle: end.ep.handle().0, mask: mask })?;
        let reserved = &answer[attr.clone()][std::mem::offset_of!(kdapl_ep_attr, reserved)..];
        ensure!(reserved.iter().all(|byte| *byte == 0), "reserved words are not zero");
    }
    let other = End::new(ia, Shape::default())?;
    let listener = crate::end::Listener::new(context, &pair.server.ia)?;
    other.ep.connect(context.server_address(), listener.port, Some(context.patience()), &[7; 9])?;
    let cr: Cr = listener.request(context)?;
    let device = pair.server.ia.device();
    let answer = answers(
        device,
        call::CR_QUERY,
        &kdapl_cr_query { handle: cr.handle().0, ..Default::default() },
        &[field!(kdapl_cr_query.handle), field!(kdapl_cr_query.pad)],
    )?;
    let data = &answer[field!(kdapl_cr_query.private_data)];
    ensure!(
        data[..9] == [7; 9] && data[9..].iter().all(|byte| *byte == 0),
        "bytes after the data are not zero"
    );
    Ok(())
}
