// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Private data of a connection: what one consumer tells the other while connecting.

use crate::{
    dat::prelude::*,
    model::qualifier::{
        Qualifier,
        OVERHEAD,
        SHARED_PORT, //
    },
    rdma::device::Transport, //
};

/// The most that any transport carries, in bytes.
pub(crate) const MAX: usize = 256;

/// Bytes of a consumer.
#[derive(Clone, Copy)]
pub(crate) struct PrivateData {
    bytes: [u8; MAX],
    len: usize,
}

impl PrivateData {
    /// Nothing.
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; MAX],
        len: 0,
    };

    /// A copy of `bytes`, or of as much of them as there is room for.
    pub(crate) fn truncated(bytes: &[u8]) -> Self {
        let mut data = Self::EMPTY;
        for (to, from) in data.bytes.iter_mut().zip(bytes) {
            *to = *from;
            data.len = data.len.wrapping_add(1);
        }
        data
    }

    /// Room for `len` bytes to be filled in.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER for argument `argument` above `limit`.
    pub(crate) fn with_len(len: u32, limit: u32, argument: u8) -> DatResult<Self> {
        let refused = DatError::invalid_parameter(argument);
        if len > limit {
            return Err(refused);
        }
        let len = usize::try_from(len).map_err(|_| refused)?;
        if len > MAX {
            return Err(refused);
        }
        Ok(Self { len, ..Self::EMPTY })
    }

    /// What travels in a request for `qualifier`, of which a transport carries `limit` bytes.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER for argument `argument` if that is not enough.
    pub(crate) fn framed(&self, qualifier: Qualifier, limit: u32, argument: u8) -> DatResult<Self> {
        let mut framed = Self::EMPTY;
        let len = qualifier.encode(self.bytes(), &mut framed.bytes);
        framed.len = len
            .filter(|&len| u32::try_from(len).is_ok_and(|len| len <= limit))
            .ok_or(DatError::invalid_parameter(argument))?;
        Ok(framed)
    }

    /// The data.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    /// The data, to be filled in.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or(&mut [])
    }

    /// The whole buffer: the data, and zeros behind them.
    pub(crate) fn buffer(&self) -> [u8; MAX] {
        self.bytes
    }

    /// How much there is.
    pub(crate) fn size(&self) -> u32 {
        // At most `MAX`.
        self.len as u32
    }
}

/// What a transport carries of the consumer's data in a request, an accept and a reject.
///
/// IB and RoCE have room for 92, 196 and 148 bytes, of which `rdma_cm` takes 36 in a request. They
/// deliver the whole field, zeros behind the data. iWARP delivers what was sent, with 4 bytes of its
/// own in front, and siw counts the sum in one byte: a longer message would arrive as none.
pub(crate) fn limits(transport: Transport) -> (u32, u32, u32) {
    match transport {
        Transport::Ib | Transport::Roce => (56, 196, 148),
        Transport::Iwarp => (251, 251, 251),
    }
}

/// Bytes less in a request for a qualifier that is no port.
pub(crate) const WIDE_QUAL_OVERHEAD: u32 = OVERHEAD as u32;

// The header of the ABI tells them for the sake of its readers.
const _: () = assert!(SHARED_PORT as u32 == kdapl_bindings::KDAPL_SHARED_PORT);
const _: () = assert!(WIDE_QUAL_OVERHEAD == kdapl_bindings::KDAPL_WIDE_QUAL_OVERHEAD);
