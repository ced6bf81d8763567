// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Interface Adapters: the devices, and an open one.

use crate::address;
use crate::cno::Cno;
use crate::ep::{Ep, EpConfig};
use crate::error::Result;
use crate::evd::Evd;
use crate::flags::{EvdFlags, Extensions, Privileges};
use crate::lmr::Lmr;
use crate::object::{Handle, Pz};
use crate::raw::{self, call, Buffer, Device};
use crate::service::{Csp, Psp, PspOptions, Rsp};
use crate::sys::*;
use crate::{Close, EpAttr, Type};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// What carries the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// InfiniBand.
    InfiniBand,
    /// RDMA over Converged Ethernet, in hardware or soft-RoCE.
    RoCE,
    /// RDMA over TCP.
    IWarp,
    /// A kind that this library does not know.
    Other(u32),
}

impl From<u32> for Transport {
    fn from(raw: u32) -> Self {
        match raw {
            KDAPL_TRANSPORT_IB => Self::InfiniBand,
            KDAPL_TRANSPORT_ROCE => Self::RoCE,
            KDAPL_TRANSPORT_IWARP => Self::IWarp,
            other => Self::Other(other),
        }
    }
}

/// An RDMA device, as [`devices`] lists it.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// Name of the RDMA device; [`Ia::open`] takes it.
    pub name: String,
    /// Name of its network device; [`Ia::open`] takes it too.
    pub netdev: String,
    /// The address of its IA, if it has one.
    pub address: Option<IpAddr>,
    /// Its GUID in host byte order.
    pub node_guid: u64,
    /// What carries the data.
    pub transport: Transport,
    /// Whether the port is up.
    pub port_active: bool,
    /// Whether only processes with `CAP_SYS_RAWIO` may open it: its driver does not protect
    /// memory from peers.
    pub restricted: bool,
    /// The version of the ioctl interface that the module speaks.
    pub abi_version: u32,
}

/// The RDMA devices of this machine, in the kernel's order; maybe none.
///
/// # Errors
/// [`Error::Open`](crate::Error::Open) if the module is not loaded or may not be used.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    let device = Device::open()?;
    let mut found = Vec::new();
    for index in 0.. {
        let mut message = kdapl_device { index, ..Default::default() };
        match raw::call(&device, call::DEVICE_GET, &mut message) {
            Ok(()) => found.push(DeviceInfo::from(&message)),
            Err(error) if error.kind() == Some(Type::PROVIDER_NOT_FOUND) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

impl From<&kdapl_device> for DeviceInfo {
    fn from(message: &kdapl_device) -> Self {
        Self {
            name: text(&message.name),
            netdev: text(&message.netdev),
            address: address::decode(&message.address).map(|a| a.ip()),
            node_guid: message.node_guid,
            transport: message.transport.into(),
            port_active: message.port_active != 0,
            restricted: message.flags & u64::from(KDAPL_DEVICE_RESTRICTED) != 0,
            abi_version: message.abi_version,
        }
    }
}

/// Limits and names of an open IA.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // The fields are those of `struct kdapl_ia_query`.
pub struct IaQuery {
    pub adapter_name: String,
    pub netdev_name: String,
    pub address: Option<SocketAddr>,
    pub async_evd: Handle,
    pub transport: Transport,
    pub extensions: Extensions,
    /// All of it, for the limits.
    pub raw: kdapl_ia_query,
}

/// An open Interface Adapter: one open `/dev/kdapl`.
///
/// Clones share it. When the last clone and the last object made from it are
/// gone, the file closes and the kernel tears down whatever is left.
#[derive(Clone, Debug)]
pub struct Ia {
    device: Arc<Device>,
    handle: Handle,
    async_evd: Evd,
}

impl Ia {
    /// Opens the RDMA device `name`, which may also be the name of its network device, with
    /// an asynchronous EVD of at least `async_evd_qlen` entries (1 or more).
    ///
    /// # Errors
    /// `PROVIDER_NOT_FOUND` for an unknown name, `INVALID_PARAMETER` for the length,
    /// [`Error::Open`](crate::Error::Open) without the module.
    pub fn open(name: &str, async_evd_qlen: i32) -> Result<Self> {
        let device = Arc::new(Device::open()?);
        let mut message =
            kdapl_ia_open { abi_version: KDAPL_ABI_VERSION, async_evd_qlen, ..Default::default() };
        // A name that does not fit is sent without its NUL, for the kernel to refuse.
        let room = message.name.len().min(name.len());
        message.name[..room].copy_from_slice(&name.as_bytes()[..room]);
        raw::call(&device, call::IA_OPEN, &mut message)?;
        let async_evd = Evd::of_ia(&device, message.async_evd);
        Ok(Self { device, handle: Handle(message.ia), async_evd })
    }

    /// The kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// The open file, for raw calls.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The EVD on which asynchronous errors arrive.
    #[must_use]
    pub fn async_evd(&self) -> &Evd {
        &self.async_evd
    }

    /// Names and limits.
    ///
    /// # Errors
    /// `INVALID_HANDLE/IA` after [`close`](Self::close).
    pub fn query(&self) -> Result<IaQuery> {
        let mut message = kdapl_ia_query::default();
        raw::call(&self.device, call::IA_QUERY, &mut message)?;
        Ok(IaQuery {
            adapter_name: text(&message.adapter_name),
            netdev_name: text(&message.netdev_name),
            address: address::decode(&message.address),
            async_evd: Handle(message.async_evd),
            transport: message.transport.into(),
            extensions: Extensions(message.extensions),
            raw: message,
        })
    }

    /// Closes the IA, whatever clones there are: their calls fail from then on.
    ///
    /// # Errors
    /// [`Close::Graceful`]: `INVALID_STATE` while objects exist.
    pub fn close(&self, how: Close) -> Result<()> {
        let mut message = kdapl_ia_close { flags: how as u32, ..Default::default() };
        raw::call(&self.device, call::IA_CLOSE, &mut message)
    }

    /// A new protection zone.
    ///
    /// # Errors
    /// `INSUFFICIENT_RESOURCES` over a limit.
    pub fn create_pz(&self) -> Result<Pz> {
        Pz::create(&self.device)
    }

    /// A new event queue of at least `qlen` entries, fed by the streams in `flags`.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` for a length outside 1 .. `max_evd_qlen` or no or unknown flags.
    pub fn create_evd(&self, flags: EvdFlags, qlen: i32) -> Result<Evd> {
        Evd::create(&self.device, flags, qlen, -1)
    }

    /// As [`create_evd`](Self::create_evd), with its completions told by this completion vector: an
    /// interrupt, which the driver has bound to a processor. Of `completion_vectors`; without a wish it
    /// is that of the calling processor.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` (argument 6) for a vector that is not there, besides.
    pub fn create_evd_on(&self, flags: EvdFlags, qlen: i32, vector: i32) -> Result<Evd> {
        Evd::create(&self.device, flags, qlen, vector)
    }

    /// A new notification object; `agent` is an eventfd that is signalled with each trigger.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` (argument 2) for a file that is no eventfd.
    pub fn create_cno(&self, agent: Option<BorrowedFd<'_>>) -> Result<Cno> {
        Cno::create(&self.device, agent)
    }

    /// `dat_cno_fd_create`: a new notification object with a [file](Cno::file) to poll.
    ///
    /// # Errors
    /// `INSUFFICIENT_RESOURCES` if the process may open no more files.
    pub fn create_cno_fd(&self) -> Result<(OwnedFd, Cno)> {
        let cno = self.create_cno(None)?;
        Ok((cno.file()?, cno))
    }

    /// A new, unconnected endpoint. `recv` and `request` take its completions, `connection`
    /// its connection events; they may be one EVD.
    ///
    /// # Errors
    /// `INVALID_HANDLE` with the subtype of the unsuitable argument, `INVALID_PARAMETER` for
    /// attributes over the device's limits.
    pub fn create_ep(
        &self,
        pz: &Pz,
        recv: &Evd,
        request: &Evd,
        connection: &Evd,
        attr: Option<EpAttr>,
    ) -> Result<Ep> {
        self.create_ep_with(&EpConfig {
            pz: Some(pz),
            recv: Some(recv),
            request: Some(request),
            connect: Some(connection),
            attr,
        })
    }

    /// A new endpoint, unconnected, or unconfigured if something is missing in `config`.
    ///
    /// # Errors
    /// As [`create_ep`](Self::create_ep).
    pub fn create_ep_with(&self, config: &EpConfig<'_>) -> Result<Ep> {
        Ep::create(&self.device, config)
    }

    /// Listens for `conn_qual`; requests arrive on `evd`. Up to 65535 it is the port of any
    /// `rdma_cm` program, above only kDAPL's peers can name it.
    ///
    /// # Errors
    /// `CONN_QUAL_IN_USE`, `CONN_QUAL_UNAVAILABLE` for a port that the caller may not use,
    /// `INVALID_HANDLE/EVD_CR`, `INVALID_PARAMETER`.
    pub fn create_psp(&self, conn_qual: u64, evd: &Evd) -> Result<Psp> {
        self.create_psp_with(evd, &PspOptions { conn_qual: Some(conn_qual), ..Default::default() })
    }

    /// [`create_psp`](Self::create_psp) with more to say, or for any free qualifier.
    ///
    /// # Errors
    /// As there, and `INVALID_PARAMETER` for the backlog.
    pub fn create_psp_with(&self, evd: &Evd, options: &PspOptions) -> Result<Psp> {
        Psp::create(&self.device, evd, options)
    }

    /// Listens for one request for `conn_qual`, which arrives on `evd`. `ep` is kept for it, and
    /// can be used for nothing else until then; without one a new endpoint comes with the request.
    ///
    /// # Errors
    /// As [`create_psp`](Self::create_psp); `INVALID_STATE` unless `ep` is unconnected.
    pub fn create_rsp(&self, conn_qual: u64, evd: &Evd, ep: Option<&Ep>) -> Result<Rsp> {
        Rsp::create(&self.device, conn_qual, evd, ep)
    }

    /// Listens at `address`, of this IA's network device; `None` for the IA's own, and port 0 for
    /// any free one. Requests arrive on `evd`.
    ///
    /// # Errors
    /// `PORT_IN_USE`, `INVALID_ADDRESS`, `COMM_NOT_SUPPORTED`, `INVALID_HANDLE/EVD_CR`.
    pub fn create_csp(&self, address: Option<SocketAddr>, evd: &Evd) -> Result<Csp> {
        Csp::create(&self.device, address, evd)
    }

    /// Registers all of `buffer`, which stays mapped until the region is freed.
    ///
    /// # Errors
    /// `INSUFFICIENT_RESOURCES` over the limit on locked memory, `INVALID_PARAMETER` for
    /// unknown privileges, `MODEL_NOT_SUPPORTED` for that of atomic operations where there are none.
    pub fn register(
        &self,
        pz: &Pz,
        buffer: impl Into<Arc<Buffer>>,
        privileges: Privileges,
    ) -> Result<Lmr> {
        Lmr::register(&self.device, pz, buffer.into(), privileges)
    }
}

/// The text before the first NUL.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
