// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Interface Adapters (IAs).

use super::{
    evd::must_be_in_thread,
    export::{
        count,
        export,
        raw_address,
        CText,
        Namespace,
        Out, //
    },
    region::MEM_TYPES,
    registry::Adapter, //
};
use crate::{
    dat::{
        ia::{
            close_flag,
            Ia,
            Opener, //
        },
        prelude::*, //
    },
    model::{
        code,
        completion::CompletionFlags,
        handle::KernelHandle, //
    },
    rdma::device::Transport,
    sys::net::NetRef, //
};
use kdapl_bindings as bindings;
use kernel::ffi::{
    c_char,
    c_void, //
};

/// Length of a name in bytes, including the NUL.
const DAT_NAME_LEN: usize = bindings::DAT_NAME_MAX_LENGTH as usize;

/// Converts a name to its C form: truncated if necessary, and NUL-terminated.
fn name(bytes: &[u8]) -> [c_char; DAT_NAME_LEN] {
    let mut name = [0; DAT_NAME_LEN];
    for (to, from) in name.iter_mut().zip(bytes).take(DAT_NAME_LEN - 1) {
        *to = *from as c_char;
    }
    name
}

/// Formats a vendor ID as `0x` and eight hexadecimal digits.
fn vendor(id: u32) -> [c_char; DAT_NAME_LEN] {
    let mut digits = [0_u8; 10];
    for (character, digit) in digits.iter_mut().rev().zip(0..8) {
        let nibble = (id >> (4 * digit)) & 0xf;
        *character = *b"0123456789abcdef".get(nibble as usize).unwrap_or(&b'0');
    }
    digits[..2].copy_from_slice(b"0x");
    name(&digits)
}

fn attr(ia: &Ia) -> bindings::DAT_IA_ATTR {
    let attr = ia.attr();
    // Drivers encode the firmware version in one word. The upper half is taken for the major
    // version.
    let (major, minor) = ((attr.fw_version >> 32) as u32, attr.fw_version as u32);
    let size = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    bindings::DAT_IA_ATTR {
        adapter_name: name(&attr.adapter_name),
        vendor_name: vendor(attr.vendor_id),
        hardware_version_major: attr.hw_version,
        hardware_version_minor: 0,
        firmware_version_major: major,
        firmware_version_minor: minor,
        ia_address_ptr: raw_address(&raw const attr.address),
        max_eps: count(attr.max_eps),
        max_dto_per_ep: count(attr.max_dto_per_ep),
        max_rdma_read_per_ep_in: count(attr.max_read_in),
        max_rdma_read_per_ep_out: count(attr.max_read_out),
        max_evds: count(attr.max_evds),
        max_evd_qlen: count(attr.max_evd_qlen),
        max_iov_segments_per_dto: count(attr.max_iov),
        max_lmrs: count(attr.max_lmrs),
        max_lmr_block_size: size(attr.max_lmr_size),
        max_lmr_virtual_address: u64::MAX,
        max_pzs: count(attr.max_pzs),
        max_message_size: size(attr.max_message_size),
        max_rdma_size: size(attr.max_message_size),
        max_rmrs: count(attr.max_rmrs),
        max_rmr_size: size(attr.max_rmr_size),
        max_srqs: count(attr.max_srqs),
        max_ep_per_srq: if attr.max_srqs == 0 {
            0
        } else {
            count(attr.max_eps)
        },
        max_recv_per_srq: count(attr.max_recv_per_srq),
        max_iov_segments_per_srq: count(attr.max_srq_iov),
        max_iov_segments_per_rdma_read: count(attr.max_read_iov),
        max_iov_segments_per_rdma_write: count(attr.max_iov),
        zb_supported: bindings::DAT_TRUE as i32,
        reserved_lmr_supported: bindings::DAT_TRUE as i32,
        extension_supported: match attr.extensions.bits() {
            0 => bindings::DAT_EXTENSION_NONE,
            1.. => bindings::DAT_EXTENSION_IB,
        },
    }
}

fn provider_attr(ia: &Ia) -> bindings::DAT_PROVIDER_ATTR {
    let (connect, accept, reject) = ia.attr().max_private_data;
    let is_iwarp = ia.attr().transport == Transport::Iwarp;
    bindings::DAT_PROVIDER_ATTR {
        provider_name: name(b"kdapl"),
        dapl_version_major: bindings::DAT_VERSION_MAJOR,
        dapl_version_minor: bindings::DAT_VERSION_MINOR,
        lmr_mem_types_supported: MEM_TYPES,
        dat_qos_supported: bindings::DAT_QOS_HIGH_THROUGHPUT
            | bindings::DAT_QOS_LOW_LATENCY
            | bindings::DAT_QOS_ECONOMY
            | bindings::DAT_QOS_PREMIUM,
        completion_flags_supported: CompletionFlags::ALL_OF_KERNEL,
        is_thread_safe: bindings::DAT_TRUE as i32,
        max_private_data_size: count(connect.min(accept).min(reject)),
        supports_multipath: bindings::DAT_FALSE as i32,
        fmr_supported: i32::from(ia.attr().max_rmrs != 0),
        lmr_for_fmr_scope: bindings::DAT_LMR_SCOPE_PZ,
        rdma_write_for_rdma_read_req: i32::from(is_iwarp),
    }
}

/// Opens an IA in a network namespace.
///
/// # Errors
///
/// INVALID_PARAMETER (asynchronous EVD, IA) for NULL; INVALID_HANDLE (asynchronous EVD) for a
/// handle of another one; those of [`Ia::open`].
fn open(
    name: &[u8],
    net: NetRef,
    qlen: i32,
    async_evd: &Out<*mut c_void>,
    ia: &Out<*mut c_void>,
) -> DatResult {
    async_evd.needed(Arg::AsyncEvd)?;
    ia.needed(Arg::Handle)?;
    if async_evd.has_handle() {
        // Each IA creates its own asynchronous EVD; it cannot share one.
        return Err(DatError::new(
            Kind::InvalidHandle,
            Subtype::InvalidHandleEvdAsync,
        ));
    }
    let adapter = Adapter::open(|| Ia::open(Opener::Kernel, name, qlen, net))?;
    async_evd.put(adapter.raw(adapter.ia.async_evd_handle()));
    ia.put_handle(adapter.handle());
    Ok(())
}

export! {
    /// `dat_ia_openv`.
    fn dat_ia_openv(
        name: CText,
        qlen: i32,
        async_evd: Out<*mut c_void>,
        ia: Out<*mut c_void>,
        major: u32,
        minor: u32,
        _is_thread_safe: i32,
    ) {
        let not_found = |subtype| Err(DatError::new(Kind::ProviderNotFound, subtype));
        if major != bindings::DAT_VERSION_MAJOR {
            return not_found(Subtype::MajorNotFound);
        }
        if minor > bindings::DAT_VERSION_MINOR {
            return not_found(Subtype::MinorNotFound);
        }
        open(name.bytes(), NetRef::initial()?, qlen, &async_evd, &ia)
    }

    /// `kdapl_ia_open_net`.
    fn kdapl_ia_open_net(
        name: CText,
        net: Namespace,
        qlen: i32,
        async_evd: Out<*mut c_void>,
        ia: Out<*mut c_void>,
    ) {
        open(name.bytes(), net.get()?, qlen, &async_evd, &ia)
    }

    /// `dat_ia_query`.
    fn dat_ia_query(
        ia: KernelHandle,
        async_evd: Out<*mut c_void>,
        _mask: u64,
        result: Out<bindings::DAT_IA_ATTR>,
        _provider_mask: u64,
        provider: Out<bindings::DAT_PROVIDER_ATTR>,
    ) {
        let adapter = Adapter::of(ia)?;
        async_evd.put(adapter.raw(adapter.ia.async_evd_handle()));
        result.put(attr(&adapter.ia));
        provider.put(provider_attr(&adapter.ia));
        Ok(())
    }

    /// `dat_ia_close`.
    fn dat_ia_close(ia: KernelHandle, flags: u32) {
        must_be_in_thread(Subtype::InvalidStateIaInUse)?;
        Adapter::of(ia)?.close(close_flag(flags)?)
    }

    /// `dat_get_handle_type`.
    fn dat_get_handle_type(handle: KernelHandle, kind: Out<u32>) {
        kind.needed(Arg::HandleType)?;
        let invalid = DatError::new(Kind::InvalidHandle, Subtype::InvalidHandle1);
        let found = Adapter::kind_of(handle).ok_or(invalid)?;
        // `HandleKind` counts from 1, `DAT_HANDLE_TYPE` from 0.
        kind.put(found.number().saturating_sub(1));
        Ok(())
    }

    /// `dat_strerror`.
    fn dat_strerror(value: u32, major: Out<*const c_char>, minor: Out<*const c_char>) {
        major.needed(Arg::Major)?;
        minor.needed(Arg::Minor)?;
        let names = code::names(value).ok_or(DatError::Invalid(Arg::Code))?;
        major.put(names.0.as_char_ptr());
        minor.put(names.1.as_char_ptr());
        Ok(())
    }
}
