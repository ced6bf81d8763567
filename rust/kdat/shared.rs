// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory that peers may access.

use crate::{
    bindings,
    dto::Remote,
    error::{
        Error,
        Result, //
    },
    memory::{
        Region,
        LOCAL, //
    },
    pz::Pz, //
};
use kernel::{
    page::PAGE_SIZE,
    sync::Arc, //
};

/// Accesses that peers may make to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing before an [`Rmr`](crate::Rmr) is bound to it.
    Bind,
    /// Read it.
    Read,
    /// Write to it.
    Write,
    /// Read it and write to it.
    ReadWrite,
}

impl Access {
    /// Returns the least local privileges. A device that lets peers write requires those to write.
    pub(crate) fn local(self) -> u32 {
        match self {
            Self::Bind | Self::Read => bindings::DAT_MEM_PRIV_LOCAL_READ_FLAG,
            Self::Write | Self::ReadWrite => LOCAL,
        }
    }

    /// Returns the remote privileges.
    pub(crate) fn privileges(self) -> u32 {
        let (read, write) = (
            bindings::DAT_MEM_PRIV_REMOTE_READ_FLAG,
            bindings::DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
        );
        match self {
            Self::Bind => 0,
            Self::Read => read,
            Self::Write => write,
            Self::ReadWrite => read | write,
        }
    }
}

/// Memory that peers may access. This side copies from and to it, or uses parts of it for DTOs.
/// Clones are the same memory.
#[derive(Clone)]
pub struct Shared(pub(crate) Arc<Region>);

impl Shared {
    pub(crate) fn new(pz: &Pz, size: usize, access: Access) -> Result<Self> {
        Ok(Self(Region::new(pz, size, LOCAL | access.privileges())?))
    }

    pub(crate) fn again(&self, pz: &Pz, access: Access) -> Result<Self> {
        Ok(Self(self.0.again(pz, LOCAL | access.privileges())?))
    }

    /// Returns the memory as the peer has to name it, with the context 0 for [`Access::Bind`].
    pub fn remote(&self) -> Remote {
        Remote {
            address: self.0.at(0).addr().get() as u64,
            length: u32::try_from(self.0.len()).unwrap_or(u32::MAX),
            context: self.0.rmr_context,
        }
    }

    /// Checks that a part lies within the memory.
    ///
    /// # Errors
    ///
    /// LENGTH_ERROR.
    pub(crate) fn check(&self, offset: usize, length: usize) -> Result {
        match offset.checked_add(length) {
            Some(end) if end <= self.0.len() => Ok(()),
            _ => Err(Error::new(bindings::DAT_LENGTH_ERROR, 0)),
        }
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Returns `length` bytes at `offset` for DTOs of this side.
    ///
    /// # Errors
    ///
    /// LENGTH_ERROR for a part that is not within the memory.
    pub fn part(&self, offset: usize, length: usize) -> Result<Part> {
        self.check(offset, length)?;
        Ok(Part {
            region: self.0.clone(),
            offset,
            length,
        })
    }

    /// Returns how many of `length` bytes at `offset` a DTO with so many segments left can have,
    /// and how many of its segments they take: one for each page of memory that may not be
    /// contiguous for the device.
    pub fn fitting(&self, offset: usize, length: usize, segments: usize) -> (usize, usize) {
        if !self.0.is_scattered() {
            return if segments > 0 { (length, 1) } else { (0, 0) };
        }
        let start = self.0.at(offset).addr().get() % PAGE_SIZE;
        let room = segments.saturating_mul(PAGE_SIZE).saturating_sub(start);
        let bytes = length.min(room);
        (bytes, (start + bytes).div_ceil(PAGE_SIZE))
    }

    /// Copies bytes out of the memory. Those that a peer changes meanwhile may be old or new.
    ///
    /// # Errors
    ///
    /// LENGTH_ERROR for a part that is not within the memory.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result {
        self.check(offset, bytes.len())?;
        let from = self.0.at(offset).as_ptr();
        // SAFETY: The part lies within the region, which this value keeps. memcpy() is C code, for
        // which a change by the device or by another thread is no undefined behaviour.
        unsafe {
            kernel::bindings::memcpy(bytes.as_mut_ptr().cast(), from.cast(), bytes.len());
        }
        Ok(())
    }

    /// Copies bytes into the memory.
    ///
    /// # Errors
    ///
    /// As of [`Self::read`].
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result {
        self.check(offset, bytes.len())?;
        let to = self.0.at(offset).as_ptr();
        // SAFETY: As above.
        unsafe { kernel::bindings::memcpy(to.cast(), bytes.as_ptr().cast(), bytes.len()) };
        Ok(())
    }
}

/// Part of a [`Shared`] for a DTO. There are no references to its bytes, so that a device may
/// access them at any time.
#[derive(Clone)]
pub struct Part {
    region: Arc<Region>,
    offset: usize,
    length: usize,
}

impl Part {
    /// Returns the segment.
    pub(crate) fn segment(&self) -> Result<bindings::DAT_LMR_TRIPLET> {
        let length = u32::try_from(self.length);
        Ok(bindings::DAT_LMR_TRIPLET {
            virtual_address: self.region.at(self.offset).addr().get() as u64,
            segment_length: length.map_err(|_| Error::new(bindings::DAT_LENGTH_ERROR, 0))?,
            lmr_context: self.region.lmr_context,
        })
    }
}
