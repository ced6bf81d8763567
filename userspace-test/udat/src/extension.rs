// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `dat_extension_op`: the InfiniBand extensions of DAT 2.0.
//!
//! The arguments of an operation arrive as a C variable argument list. The macros of
//! `dat_ib_extensions.h` define the arguments of each operation; those of a macro are numbered for
//! DAT_INVALID_PARAMETER, as those of a function are.

use crate::abi::*;
use crate::ep::Ep;
use crate::foreign::{self, put, with_segments, Arguments};
use crate::ia::{self, Ia};
use crate::object::find;
use crate::origin::Origin;
use crate::ret::{Result, Ret};
use libkdapl::{
    CompletionFlags, Dto, DtoEvent, DtoOperation, DtoStatus, Extensions, Segment, Type,
};
use std::mem::offset_of;

/// Returns the value of `extension_supported` for these extensions.
pub fn supported(extensions: Extensions) -> DAT_EXTENSION {
    match extensions {
        Extensions(0) => DAT_EXTENSION_NONE,
        Extensions(_) => DAT_EXTENSION_IB,
    }
}

/// Version in `dat_ib_extensions.h`.
pub const VERSION: DAT_COUNT = DAT_IB_EXTENSION_VERSION as DAT_COUNT;

/// Returns the names of the attributes that announce these extensions to programs.
pub fn attributes(extensions: Extensions) -> Vec<&'static str> {
    let names = [
        (Extensions::IMMED_DATA, "DAT_IB_IMMED_DATA"),
        (Extensions::FETCH_AND_ADD, "DAT_IB_FETCH_AND_ADD"),
        (Extensions::CMP_AND_SWAP, "DAT_IB_CMP_AND_SWAP"),
    ];
    let there = names.into_iter().filter(|(extension, _)| extensions.contains(*extension));
    there.map(|(_, name)| name).collect()
}

// Layout that `event_data` relies on.
const _: () = assert!(
    offset_of!(DAT_IB_EXTENSION_EVENT_DATA, type_) == 0
        && offset_of!(DAT_IB_EXTENSION_EVENT_DATA, status) == 4
        && offset_of!(DAT_IB_EXTENSION_EVENT_DATA, val) == 8
);

/// Returns the extension data of a completion event.
pub fn event_data(dto: &DtoEvent) -> [u64; 8] {
    let kind = match dto.operation {
        DtoOperation::FetchAdd => DAT_IB_FETCH_AND_ADD,
        DtoOperation::CmpSwap => DAT_IB_CMP_AND_SWAP,
        DtoOperation::RdmaWriteImmed => DAT_IB_RDMA_WRITE_IMMED,
        DtoOperation::RecvMsgImmed => DAT_IB_RECV_IMMED_DATA,
        _ => DAT_IB_RDMA_WRITE_IMMED_DATA,
    };
    let status = match dto.status {
        DtoStatus::Success => DAT_OP_SUCCESS,
        _ => DAT_IB_OP_ERR,
    };
    let mut words = [0; 8];
    words[0] = u64::from(kind) | (u64::from(status) << 32);
    words[1] = dto.immed_data.unwrap_or(0).into();
    words
}

/// Posts the DTO that `dto` makes of the single segment of an atomic operation. `argument` is the
/// segment's position in the macro.
fn post_atomic(
    handle: DAT_HANDLE,
    (iov, argument): (*mut DAT_LMR_TRIPLET, u16),
    dto: impl FnOnce(&Segment) -> Result<Dto<'_>>,
) -> Result<()> {
    let ep = find::<Ep>(handle)?;
    with_segments(iov, 1, (argument, argument), |segments| match segments {
        [only] => Ok(ep.dat.post_dto(&dto(only)?)?),
        _ => Err(Ret::argument(argument)),
    })
}

fn rdma_write_immed(handle: DAT_HANDLE, arguments: &mut impl Arguments) -> Result<()> {
    // The upper half of the register of a narrower argument is undefined; the casts discard it.
    let (count, iov) = (arguments.next() as DAT_COUNT, arguments.pointer());
    let (cookie, remote) = (arguments.next(), arguments.pointer::<DAT_RMR_TRIPLET>());
    let immed_data = arguments.next() as u32;
    let flags = CompletionFlags(arguments.next() as u32);
    let ep = find::<Ep>(handle)?;
    with_segments(iov, count, (2, 3), |segments| {
        let remote = foreign::remote(remote, 5)?;
        let dto = Dto::rdma_write_immed(segments, remote, immed_data, cookie, flags);
        Ok(ep.dat.post_dto(&dto)?)
    })
}

fn fetch_and_add(handle: DAT_HANDLE, arguments: &mut impl Arguments) -> Result<()> {
    let (add, iov) = (arguments.next(), arguments.pointer());
    let (cookie, remote) = (arguments.next(), arguments.pointer::<DAT_RMR_TRIPLET>());
    let flags = CompletionFlags(arguments.next() as u32);
    post_atomic(handle, (iov, 3), |segment| {
        let remote = foreign::remote(remote, 5)?;
        Ok(Dto::fetch_and_add(add, segment, remote, cookie, flags))
    })
}

fn cmp_and_swap(handle: DAT_HANDLE, arguments: &mut impl Arguments) -> Result<()> {
    let (compare, swap) = (arguments.next(), arguments.next());
    let iov = arguments.pointer();
    let (cookie, remote) = (arguments.next(), arguments.pointer::<DAT_RMR_TRIPLET>());
    let flags = CompletionFlags(arguments.next() as u32);
    post_atomic(handle, (iov, 4), |segment| {
        let remote = foreign::remote(remote, 6)?;
        Ok(Dto::cmp_and_swap(compare, swap, segment, remote, cookie, flags))
    })
}

/// Opens an adapter for a query, and returns its attributes.
fn open_query(
    origin: impl FnOnce() -> Result<Origin>,
    arguments: &mut impl Arguments,
) -> Result<()> {
    let ia_handle = arguments.pointer::<DAT_IA_HANDLE>();
    let (ia_mask, ia_attr) = (arguments.next(), arguments.pointer::<DAT_IA_ATTR>());
    let (provider_mask, provider_attr) =
        (arguments.next(), arguments.pointer::<DAT_PROVIDER_ATTR>());
    let ia = ia::open_query(origin, ia_handle)?;
    let query = || {
        if ia_mask != 0 {
            put(ia_attr, 4, ia::attr::ia(&ia))?;
        }
        if provider_mask != 0 {
            put(provider_attr, 6, ia::attr::provider(&ia))?;
        }
        Ok(())
    };
    query().inspect_err(|_| {
        ia::close(ia.cell.handle(), DAT_CLOSE_ABRUPT_FLAG);
    })
}

/// Carries out an operation. `open` makes the origin of an IA that is opened for a query.
pub fn operate(
    handle: DAT_HANDLE,
    operation: i32,
    arguments: &mut impl Arguments,
    open: impl FnOnce() -> Result<Origin>,
) -> Result<()> {
    let operation = u32::try_from(operation).map_err(|_| Ret::argument(2))?;
    match operation {
        DAT_IB_FETCH_AND_ADD_OP => fetch_and_add(handle, arguments),
        DAT_IB_CMP_AND_SWAP_OP => cmp_and_swap(handle, arguments),
        DAT_IB_RDMA_WRITE_IMMED_OP => rdma_write_immed(handle, arguments),
        DAT_IB_UD_SEND_OP => find::<Ep>(handle).and(Err(Ret::UNSUPPORTED)),
        DAT_IB_OPEN_QUERY_OP => open_query(open, arguments),
        DAT_IB_CLOSE_QUERY_OP => {
            find::<Ia>(handle)?;
            match ia::close(handle, DAT_CLOSE_ABRUPT_FLAG) {
                0 => Ok(()),
                code => Err(Ret(code)),
            }
        }
        _ => Err(Ret::of(Type::NOT_IMPLEMENTED)),
    }
}
