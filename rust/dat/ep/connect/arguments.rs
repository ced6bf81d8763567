// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a consumer says when it connects, as numbers.

use crate::{
    dat::{
        base::{
            Attr,
            PrivateData, //
        },
        ep::{
            Connect,
            Qos, //
        },
        prelude::*, //
    },
    sys::wait::Deadline, //
};
use kdapl_bindings as uapi;

/// What the calls that connect say of the connection.
pub(crate) struct ConnectArguments {
    pub(crate) private_data_size: u32,
    /// When to give up, or what is wrong with that.
    pub(crate) deadline: DatResult<Deadline>,
    pub(crate) qos: u32,
    pub(crate) flags: u32,
    /// Position of the time-out among the arguments; the private data's size follows it.
    pub(crate) argument: u8,
}

impl ConnectArguments {
    /// With room for the private data, which are to be read yet.
    ///
    /// # Errors
    ///
    /// What is wrong with the deadline, INVALID_PARAMETER for more private data than a request carries (behind
    /// `argument`) or for an unknown quality of service; MODEL_NOT_SUPPORTED for several paths.
    pub(crate) fn examine(&self, ia: &Attr) -> DatResult<Connect> {
        let multipath = match self.flags {
            0 => false,
            uapi::KDAPL_CONNECT_MULTIPATH_REQUESTED => true,
            // No device has several paths.
            _ => return Err(Kind::ModelNotSupported.into()),
        };
        let qos = Qos::from_bits(self.qos)?;
        let deadline = self.deadline?;
        let (limit, _, _) = ia.max_private_data;
        let size = self.argument.wrapping_add(1);
        Ok(Connect {
            deadline,
            qos,
            multipath,
            data: PrivateData::with_len(self.private_data_size, limit, size)?,
            data_argument: size,
        })
    }
}
