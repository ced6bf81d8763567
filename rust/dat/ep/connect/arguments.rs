// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Arguments of the calls that connect, as numbers.

use crate::{
    dat::{
        base::{
            IaAttr,
            PrivateData, //
        },
        ep::{
            Connect,
            Qos, //
        },
        prelude::*, //
    },
    model::ep::ReadyGate,
    sys::wait::Deadline, //
};
use kdapl_bindings as uapi;

/// Arguments that all calls that connect have in common.
pub(crate) struct ConnectArguments {
    pub(crate) private_data_size: u32,
    /// Time at which the attempt ends, or the error of an invalid time-out.
    pub(crate) deadline: DatResult<Deadline>,
    pub(crate) qos: u32,
    pub(crate) flags: u32,
    pub(crate) gate: ReadyGate,
}

impl ConnectArguments {
    /// Checks the arguments. The result has room for the private data, which the caller reads next.
    ///
    /// # Errors
    ///
    /// - The error of the deadline.
    /// - INVALID_PARAMETER (size of the private data) for more than a request carries.
    /// - MODEL_NOT_SUPPORTED for an unknown quality of service, or if several paths are required.
    pub(crate) fn examine(&self, ia: &IaAttr) -> DatResult<Connect> {
        let multipath = match self.flags {
            0 => false,
            uapi::KDAPL_CONNECT_MULTIPATH_REQUESTED => true,
            // The other flag requires several paths, which no device has.
            _ => return Err(Kind::ModelNotSupported.into()),
        };
        let qos = Qos::from_bits(self.qos)?;
        let deadline = self.deadline?;
        let (limit, _, _) = ia.max_private_data;
        Ok(Connect {
            deadline,
            qos,
            multipath,
            gate: self.gate,
            data: PrivateData::with_len(self.private_data_size, limit)?,
        })
    }
}
