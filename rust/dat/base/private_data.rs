// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Private data: bytes that consumers exchange while they connect.

use crate::{
    dat::prelude::*,
    model::qualifier::{
        Qualifier,
        OVERHEAD,
        SHARED_PORT, //
    },
    rdma::device::Transport, //
};

/// Largest number of bytes that any transport carries.
pub(crate) const MAX: usize = 256;

/// Private data of one message.
#[derive(Clone, Copy)]
pub(crate) struct PrivateData {
    bytes: [u8; MAX],
    len: usize,
}

impl PrivateData {
    /// Private data without bytes.
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; MAX],
        len: 0,
    };

    /// Copies `bytes`, up to [`MAX`] of them.
    pub(crate) fn truncated(bytes: &[u8]) -> Self {
        let mut data = Self::EMPTY;
        for (to, from) in data.bytes.iter_mut().zip(bytes) {
            *to = *from;
            data.len = data.len.wrapping_add(1);
        }
        data
    }

    /// Creates a buffer of `len` zero bytes for the caller to fill.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (size of the private data) if `len` is above `limit`.
    pub(crate) fn with_len(len: u32, limit: u32) -> DatResult<Self> {
        let refused = DatError::Invalid(Arg::PrivateDataSize);
        if len > limit {
            return Err(refused);
        }
        let len = usize::try_from(len).map_err(|_| refused)?;
        if len > MAX {
            return Err(refused);
        }
        Ok(Self { len, ..Self::EMPTY })
    }

    /// Adds the header that a request for `qualifier` needs, if any. `limit` is the number of bytes
    /// that the transport carries.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (size of the private data) if the result is longer than `limit`.
    pub(crate) fn framed(&self, qualifier: Qualifier, limit: u32) -> DatResult<Self> {
        let mut framed = Self::EMPTY;
        let len = qualifier.encode(self.bytes(), &mut framed.bytes);
        framed.len = len
            .filter(|&len| u32::try_from(len).is_ok_and(|len| len <= limit))
            .ok_or(DatError::Invalid(Arg::PrivateDataSize))?;
        Ok(framed)
    }

    /// Returns the data.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    /// Returns the data for the caller to fill.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or(&mut [])
    }

    /// Returns the whole buffer: the data, followed by zeros.
    pub(crate) fn buffer(&self) -> [u8; MAX] {
        self.bytes
    }

    /// Returns the number of bytes.
    pub(crate) fn size(&self) -> u32 {
        // `len` is at most `MAX`.
        self.len as u32
    }
}

/// Returns the maximum private data of a request, an accept and a reject, in bytes.
///
/// InfiniBand (IB) and RoCE have fields of 92, 196 and 148 bytes. `rdma_cm` uses 36 bytes of the
/// first. The receiver gets the whole field, with zeros after the data. iWARP delivers exactly the
/// data. It adds 4 bytes in front, and the siw driver stores the sum in one byte: the receiver of a
/// longer message would get no data.
pub(crate) fn limits(transport: Transport) -> (u32, u32, u32) {
    match transport {
        Transport::Ib | Transport::Roce => (56, 196, 148),
        Transport::Iwarp => (251, 251, 251),
    }
}

/// Bytes of private data that the header of a request takes, if the qualifier is not a port.
pub(crate) const WIDE_QUAL_OVERHEAD: u32 = OVERHEAD as u32;

// The uapi header documents these values for its users.
const _: () = assert!(SHARED_PORT as u32 == kdapl_bindings::KDAPL_SHARED_PORT);
const _: () = assert!(WIDE_QUAL_OVERHEAD == kdapl_bindings::KDAPL_WIDE_QUAL_OVERHEAD);
