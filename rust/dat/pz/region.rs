// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory that an LMR context names, and its addressing in work requests.

use crate::{
    dat::{
        base::Segment,
        prelude::*, //
    },
    rdma::{
        kernel_memory::KernelMemory,
        wr::SgList, //
    },
};

/// Access of the kernel and the device to memory.
#[derive(Clone, Copy)]
pub(in crate::dat) enum Sharing {
    /// Both access the same memory, without further calls.
    Shared,
    /// The device may have a copy.
    MayBeCopied,
}

/// Memory that an LMR context names.
pub(in crate::dat) struct Region {
    /// Start address in the consumer's memory.
    pub(in crate::dat) address: u64,
    /// Length in bytes.
    pub(in crate::dat) length: u64,
    /// Receives and RDMA reads may write to this memory.
    pub(in crate::dat) writable: bool,
    pub(in crate::dat) memory: Memory,
    /// The LMR is being freed.
    pub(in crate::dat) is_hidden: bool,
}

/// Addressing of a region's memory in work requests.
pub(in crate::dat) enum Memory {
    /// Consumer's addresses, with the LMR context as the local key.
    Registered,
    /// Addresses of the device.
    Kernel(KernelMemory),
    /// Addresses of the device, or the consumer's with the key of a region.
    Keyed(Keyed),
    /// Consumer's addresses, with a local key.
    Fast(Fast),
}

/// Memory that a request has registered.
pub(in crate::dat) struct Fast {
    pub(in crate::dat) lkey: u32,
    /// Peers may write to the memory.
    pub(in crate::dat) is_open: bool,
    /// The device has the memory itself. Otherwise it may have a copy.
    pub(in crate::dat) is_shared: bool,
}

/// Kernel memory that is registered for peers.
pub(in crate::dat) struct Keyed {
    pub(in crate::dat) memory: KernelMemory,
    /// Local key of the region.
    pub(in crate::dat) lkey: u32,
}

impl Keyed {
    /// Adds a segment to a work request, as one entry.
    ///
    /// Uses DMA addresses for contiguous memory, and the region's key otherwise: a peer may
    /// invalidate the key.
    #[inline]
    fn add_to(&self, list: &mut SgList, segment: &Segment, offset: u64) -> Result {
        if self.memory.is_contiguous(offset, segment.length) {
            return self.memory.push(list, offset, segment.length);
        }
        list.push(segment.address, segment.length, self.lkey)
    }
}

impl Memory {
    /// Returns the memory if it is memory of the kernel.
    pub(in crate::dat) fn of_kernel(&self) -> Option<&KernelMemory> {
        match self {
            Self::Registered | Self::Fast(_) => None,
            Self::Kernel(memory) => Some(memory),
            Self::Keyed(keyed) => Some(&keyed.memory),
        }
    }
}

impl Region {
    /// Returns the memory of a segment that the region contains, unless its LMR is being freed.
    pub(super) fn find(&self, address: u64, length: u32) -> Option<Sharing> {
        if self.is_hidden || !self.holds(address, length) {
            return None;
        }
        match &self.memory {
            Memory::Fast(fast) if !fast.is_shared => Some(Sharing::MayBeCopied),
            _ => Some(Sharing::Shared),
        }
    }

    /// Returns whether the region contains a segment.
    pub(super) fn holds(&self, address: u64, length: u32) -> bool {
        match address.checked_sub(self.address) {
            Some(offset) => offset
                .checked_add(u64::from(length))
                .is_some_and(|end| end <= self.length),
            None => false,
        }
    }

    /// Returns whether the LMR was created with the privilege for an access. This side may always
    /// read: programs such as Debian's `dtest` send from LMRs without LOCAL_READ.
    pub(super) fn allows(&self, to: Use) -> bool {
        match to {
            Use::Read => true,
            Use::Write | Use::WaitingReceive => self.writable,
        }
    }

    /// Adds a segment of this region to a work request.
    #[inline(always)]
    pub(super) fn add_to(&self, list: &mut SgList, segment: &Segment) -> Result {
        let offset = segment.address.saturating_sub(self.address);
        match &self.memory {
            Memory::Registered => list.push(segment.address, segment.length, segment.context),
            Memory::Kernel(memory) => memory.push(list, offset, segment.length),
            Memory::Keyed(keyed) => keyed.add_to(list, segment, offset),
            Memory::Fast(fast) if fast.is_open => {
                list.push(segment.address, segment.length, fast.lkey)
            }
            Memory::Fast(fast) => list.push_private(segment.address, segment.length, fast.lkey),
        }
    }
}

/// Calls `add` for the segments of a work request. Returns the number of their bytes.
///
/// A segment of length 0 uses no memory, so its context is not checked.
///
/// # Errors
///
/// Those of `add`.
#[inline(always)]
pub(in crate::dat) fn add_segments(
    segments: &[Segment],
    mut add: impl FnMut(&Segment) -> DatResult,
) -> DatResult<u64> {
    let mut length = 0_u64;
    for segment in segments {
        if segment.length == 0 {
            continue;
        }
        add(segment)?;
        length = length.saturating_add(u64::from(segment.length));
    }
    Ok(length)
}

/// Access of a DTO to local memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::dat) enum Use {
    /// Send or RDMA write: the device reads the memory.
    Read,
    /// Receive or RDMA read: the device writes to the memory.
    Write,
    /// Receive that has waited for a connection. `dat_lmr_free` finds it, and then fails, so that
    /// hidden memory stays.
    WaitingReceive,
}

impl Use {
    /// Returns the error of an access to memory that no LMR has.
    #[cold]
    pub(super) fn violates_protection(self) -> DatError {
        let subtype = match self {
            Self::Read => Subtype::ProtectionRead,
            Self::Write | Self::WaitingReceive => Subtype::ProtectionWrite,
        };
        DatError::new(Kind::ProtectionViolation, subtype)
    }

    /// Returns the error of an access for which the LMR has no privilege.
    #[cold]
    pub(super) fn violates_privileges(self) -> DatError {
        let subtype = match self {
            Self::Read => Subtype::PrivilegesRead,
            Self::Write | Self::WaitingReceive => Subtype::PrivilegesWrite,
        };
        DatError::new(Kind::PrivilegesViolation, subtype)
    }
}
