// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a consumer says when it connects, as numbers.

use super::{
    Connect,
    Qos, //
};
use crate::{
    dat::{
        ia::Ia,
        PrivateData, //
    },
    model::code::{
        DatError,
        DatResult,
        Kind, //
    },
};
use kdapl_bindings as uapi;

/// What the calls that connect say of the connection.
pub(crate) struct Wish {
    pub(crate) private_data_size: u32,
    pub(crate) timeout_us: u32,
    pub(crate) qos: u32,
    pub(crate) flags: u32,
    /// Position of the time-out among the arguments; the private data's size follows it.
    pub(crate) argument: u8,
}

impl Wish {
    /// With room for the private data, which are to be read yet.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER for a time-out of 0 (`argument`), for more private data than a request carries (the
    /// next one) or for an unknown quality of service; MODEL_NOT_SUPPORTED for several paths.
    pub(crate) fn examine(&self, ia: &Ia) -> DatResult<Connect> {
        let multipath = match self.flags {
            0 => false,
            uapi::KDAPL_CONNECT_MULTIPATH_REQUESTED => true,
            // No device has several paths.
            _ => return Err(Kind::ModelNotSupported.into()),
        };
        let qos = Qos::from_bits(self.qos)?;
        if self.timeout_us == 0 {
            return Err(DatError::invalid_parameter(self.argument));
        }
        let (limit, _, _) = ia.attr().max_private_data;
        let size = self.argument.wrapping_add(1);
        Ok(Connect {
            timeout: (self.timeout_us != uapi::KDAPL_TIMEOUT_INFINITE).then_some(self.timeout_us),
            qos,
            multipath,
            data: PrivateData::with_len(self.private_data_size, limit, size)?,
            data_argument: size,
        })
    }
}
