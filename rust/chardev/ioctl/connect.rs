// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The calls that connect an Endpoint.

use super::{
    zero,
    Outcome, //
};
use crate::{
    chardev::client::Client,
    dat::{
        ep::{
            Connect,
            Ep,
            Qos, //
        },
        ia::Ia,
        PrivateData,
    },
    model::code::{
        DatError,
        DatResult,
        Kind,
        Subtype, //
    },
    rdma::addr::SockAddr,
    sys::uapi::read_bytes,
};
use kdapl_bindings as uapi;
use kernel::sync::Arc;

/// What all of them say of the connection.
struct Wish {
    private_data_size: u32,
    timeout_us: u32,
    qos: u32,
    flags: u32,
    /// Position of the time-out among the arguments; the private data's size follows it.
    argument: u8,
}

impl Wish {
    /// With room for the private data, which are to be read yet.
    fn examine(&self, ia: &Ia) -> DatResult<Connect> {
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

/// An address as it came.
fn address(raw: &uapi::kdapl_sockaddr) -> DatResult<SockAddr> {
    SockAddr::from_raw(raw.sa)
        .map_err(|_| DatError::new(Kind::InvalidAddress, Subtype::InvalidAddressMalformed))
}

/// The adapter, and an Endpoint of it.
fn find(client: &Client, handle: u64) -> DatResult<(Arc<Ia>, Arc<Ep>)> {
    let ia = client.ia()?;
    let ep = ia.objects().get(handle)?;
    Ok((ia, ep))
}

/// Reads the private data and calls, if all else is right.
fn carry_out<T>(
    private_data: u64,
    prepared: DatResult<(Connect, T)>,
    call: impl FnOnce(Connect, T) -> DatResult,
) -> Outcome {
    match prepared {
        Ok((mut connect, what)) => {
            read_bytes(private_data, connect.data.bytes_mut())?;
            Ok(call(connect, what))
        }
        Err(error) => Ok(Err(error)),
    }
}

pub(super) fn connect(client: &Client, message: &mut uapi::kdapl_ep_connect) -> Outcome {
    let wish = Wish {
        private_data_size: message.private_data_size,
        timeout_us: message.timeout_us,
        qos: message.qos,
        flags: message.flags,
        argument: 4,
    };
    let prepared = find(client, message.handle).and_then(|(ia, ep)| {
        let connect = wish.examine(&ia)?;
        Ok((connect, (ep, address(&message.remote_address)?)))
    });
    carry_out(message.private_data, prepared, |connect, (ep, remote)| {
        Ep::connect(&ep, remote, message.conn_qual, connect)
    })
}

pub(super) fn dup_connect(client: &Client, message: &mut uapi::kdapl_ep_dup_connect) -> Outcome {
    zero(message.pad)?;
    let wish = Wish {
        private_data_size: message.private_data_size,
        timeout_us: message.timeout_us,
        qos: message.qos,
        flags: 0,
        argument: 3,
    };
    let prepared = find(client, message.handle).and_then(|(ia, ep)| {
        let other = ia
            .objects()
            .get_as::<Ep>(message.dup, Subtype::InvalidHandle2)?;
        Ok((wish.examine(&ia)?, (ep, other)))
    });
    carry_out(message.private_data, prepared, |connect, (ep, other)| {
        Ep::dup_connect(&ep, &other, connect)
    })
}

pub(super) fn common_connect(
    client: &Client,
    message: &mut uapi::kdapl_ep_common_connect,
) -> Outcome {
    let wish = Wish {
        private_data_size: message.private_data_size,
        timeout_us: message.timeout_us,
        qos: uapi::KDAPL_QOS_BEST_EFFORT,
        flags: 0,
        argument: 3,
    };
    let prepared = find(client, message.handle).and_then(|(ia, ep)| {
        let remote = address(&message.remote_address)?;
        if remote.port() == 0 {
            // An address without a port is none of a Common Service Point.
            return Err(DatError::new(
                Kind::InvalidAddress,
                Subtype::InvalidAddressMalformed,
            ));
        }
        Ok((wish.examine(&ia)?, (ep, remote)))
    });
    carry_out(message.private_data, prepared, |connect, (ep, remote)| {
        Ep::connect(&ep, remote, remote.port().into(), connect)
    })
}
