// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! RDMA devices and Interface Adapters (IAs).

use crate::address;
use crate::cno::Cno;
use crate::ep::{Ep, EpConfig};
use crate::error::{Error, Result};
use crate::evd::Evd;
use crate::flags::{EvdFlags, Extensions, Privileges};
use crate::lmr::Lmr;
use crate::object::{Handle, Pz};
use crate::port::{self, PortInfo};
use crate::raw::{self, call, Buffer, Device};
use crate::rmr::Rmr;
use crate::service::{Csp, Psp, PspOptions, Rsp};
use crate::srq::Srq;
use crate::sys::*;
use crate::{Close, EpAttr, Subtype, Type};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Transport of an RDMA device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// InfiniBand.
    InfiniBand,
    /// RDMA over Converged Ethernet, in hardware or soft-RoCE.
    RoCE,
    /// RDMA over TCP.
    IWarp,
    /// A transport that this library does not know.
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
    /// Name of the network device of an IA of that name.
    pub netdev: String,
    /// Address of an IA of that name, if the device has one.
    pub address: Option<IpAddr>,
    /// GUID in host byte order.
    pub node_guid: u64,
    /// Transport.
    pub transport: Transport,
    /// The port of that IA is up.
    pub port_active: bool,
    /// All ports, with their addresses. Empty if the module is older than this library.
    pub ports: Vec<PortInfo>,
    /// Only processes with `CAP_SYS_RAWIO` may open the device, because its driver does not protect
    /// memory from peers.
    pub restricted: bool,
    /// Version of the module's ioctl interface.
    pub abi_version: u32,
}

/// Returns the RDMA devices of this machine, in the kernel's order.
///
/// # Errors
/// [`Error::Open`](crate::Error::Open) if the module is not loaded or the caller may not use it.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    let device = Device::open()?;
    let mut found = Vec::new();
    for index in 0.. {
        let mut message = kdapl_device { index, ..Default::default() };
        match raw::call(&device, call::DEVICE_GET, &mut message) {
            Ok(()) => found.push(DeviceInfo::new(&message, port::ports(&device, index)?)),
            Err(error) if error.kind() == Some(Type::PROVIDER_NOT_FOUND) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

impl DeviceInfo {
    fn new(message: &kdapl_device, ports: Vec<PortInfo>) -> Self {
        Self {
            name: text(&message.name),
            netdev: text(&message.netdev),
            address: address::decode(&message.address).map(|a| a.ip()),
            node_guid: message.node_guid,
            transport: message.transport.into(),
            port_active: message.port_active != 0,
            ports,
            restricted: message.flags & u64::from(KDAPL_DEVICE_RESTRICTED) != 0,
            abi_version: message.abi_version,
        }
    }
}

/// Names and limits of an open IA.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // The fields are those of `struct kdapl_ia_query`.
pub struct IaQuery {
    pub adapter_name: String,
    pub netdev_name: String,
    pub address: Option<SocketAddr>,
    pub async_evd: Handle,
    /// Number of the device's port.
    pub port: u32,
    pub transport: Transport,
    pub extensions: Extensions,
    /// The kernel's answer, with the limits.
    pub raw: kdapl_ia_query,
}

/// An open Interface Adapter: one open file of `/dev/kdapl`.
///
/// Clones share the file. It is closed when the last clone and the last object created from it are
/// dropped. The kernel then destroys all remaining objects.
#[derive(Clone, Debug)]
pub struct Ia {
    device: Arc<Device>,
    handle: Handle,
    async_evd: Evd,
}

impl Ia {
    /// Opens an IA. The asynchronous EVD has at least `async_evd_qlen` entries (1 or more).
    ///
    /// `name` is an RDMA device (`rxe0`), a network device (`eth0.100`) or an IP address
    /// (`10.7.0.1`, `fe80::1%eth0`), optionally with a port (`mlx5_0/2`) and with a network device
    /// or an address of it (`mlx5_0/2@eth0.100`). With an address the IA listens there only, and
    /// connects from there. Otherwise it listens at all addresses that the name leaves.
    ///
    /// # Errors
    /// `PROVIDER_NOT_FOUND` for an unknown name, `INVALID_PARAMETER` for the length,
    /// [`Error::Open`](crate::Error::Open) if the module is not loaded.
    pub fn open(name: &str, async_evd_qlen: i32) -> Result<Self> {
        let device = Arc::new(Device::open()?);
        // The kernel would take the name up to the NUL.
        if name.contains('\0') {
            let code = Type::PROVIDER_NOT_FOUND.code(Subtype::NAME_NOT_REGISTERED);
            return Err(Error::dat(call::IA_OPEN.name(), code));
        }
        let mut message =
            kdapl_ia_open { abi_version: KDAPL_ABI_VERSION, async_evd_qlen, ..Default::default() };
        // A name that is too long is sent without its NUL. The kernel refuses it.
        let room = message.name.len().min(name.len());
        message.name[..room].copy_from_slice(&name.as_bytes()[..room]);
        raw::call(&device, call::IA_OPEN, &mut message)?;
        let async_evd = Evd::of_ia(&device, message.async_evd);
        Ok(Self { device, handle: Handle(message.ia), async_evd })
    }

    /// Returns the kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Returns the open file, for raw calls.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns the EVD for asynchronous errors.
    #[must_use]
    pub fn async_evd(&self) -> &Evd {
        &self.async_evd
    }

    /// Returns names and limits.
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
            port: message.port,
            transport: message.transport.into(),
            extensions: Extensions(message.extensions),
            raw: message,
        })
    }

    /// Closes the IA. Later calls of its clones fail.
    ///
    /// # Errors
    /// [`Close::Graceful`]: `INVALID_STATE` while objects exist.
    pub fn close(&self, how: Close) -> Result<()> {
        let mut message = kdapl_ia_close { flags: how as u32, ..Default::default() };
        raw::call(&self.device, call::IA_CLOSE, &mut message)
    }

    /// Creates a protection zone.
    ///
    /// # Errors
    /// `INSUFFICIENT_RESOURCES` if a limit is exceeded.
    pub fn create_pz(&self) -> Result<Pz> {
        Pz::create(&self.device)
    }

    /// Creates an EVD of at least `qlen` entries, fed by the streams in `flags`.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` for a length outside 1 .. `max_evd_qlen`, or for no or unknown flags.
    pub fn create_evd(&self, flags: EvdFlags, qlen: i32) -> Result<Evd> {
        Evd::create(&self.device, flags, qlen, -1)
    }

    /// Like [`create_evd`](Self::create_evd), with a completion vector for the EVD's completions,
    /// below `completion_vectors`. A completion vector is an interrupt that the driver has bound to
    /// a CPU. -1 selects the vector of the calling CPU.
    ///
    /// # Errors
    /// Those of [`create_evd`](Self::create_evd), and `INVALID_PARAMETER` (argument 6) if there is
    /// no such vector.
    pub fn create_evd_on(&self, flags: EvdFlags, qlen: i32, vector: i32) -> Result<Evd> {
        Evd::create(&self.device, flags, qlen, vector)
    }

    /// Creates a CNO. Each trigger signals `agent`, an eventfd.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` (argument 2) if the file is no eventfd.
    pub fn create_cno(&self, agent: Option<BorrowedFd<'_>>) -> Result<Cno> {
        Cno::create(&self.device, agent)
    }

    /// Creates a CNO with a [file](Cno::file) to poll (`dat_cno_fd_create`).
    ///
    /// # Errors
    /// `INSUFFICIENT_RESOURCES` if the process has too many open files.
    pub fn create_cno_fd(&self) -> Result<(OwnedFd, Cno)> {
        let cno = self.create_cno(None)?;
        Ok((cno.file()?.into(), cno))
    }

    /// Creates an unconnected endpoint. `recv` and `request` are the EVDs for its completions,
    /// `connection` is the EVD for its connection events. All three may be the same EVD.
    ///
    /// # Errors
    /// `INVALID_HANDLE` with the subtype of the unsuitable argument, `INVALID_PARAMETER` for
    /// attributes that exceed the device's limits.
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
            srq: None,
            attr,
        })
    }

    /// Creates an endpoint. It is unconnected, or unconfigured if `config` lacks the PZ.
    ///
    /// # Errors
    /// Those of [`create_ep`](Self::create_ep).
    pub fn create_ep_with(&self, config: &EpConfig<'_>) -> Result<Ep> {
        Ep::create(&self.device, config)
    }

    /// Creates a PSP, which listens for `conn_qual`. Requests arrive on `evd`. Up to 65535,
    /// `conn_qual` is a port to which any `rdma_cm` program can connect; above, only peers with
    /// kDAPL can.
    ///
    /// # Errors
    /// `CONN_QUAL_IN_USE`; `CONN_QUAL_UNAVAILABLE` for a port that the caller may not use;
    /// `INVALID_HANDLE/EVD_CR`; `INVALID_PARAMETER`.
    pub fn create_psp(&self, conn_qual: u64, evd: &Evd) -> Result<Psp> {
        self.create_psp_with(evd, &PspOptions { conn_qual: Some(conn_qual), ..Default::default() })
    }

    /// Like [`create_psp`](Self::create_psp), with options. Without a qualifier, the kernel chooses
    /// a free one.
    ///
    /// # Errors
    /// Those of [`create_psp`](Self::create_psp), and `INVALID_PARAMETER` for the backlog.
    pub fn create_psp_with(&self, evd: &Evd, options: &PspOptions) -> Result<Psp> {
        Psp::create(&self.device, evd, options)
    }

    /// Creates an RSP, which listens for one request for `conn_qual`. The request arrives on `evd`.
    /// `ep` is reserved for it and cannot be used otherwise until then. Without `ep`, the request
    /// comes with a new endpoint.
    ///
    /// # Errors
    /// Those of [`create_psp`](Self::create_psp); `INVALID_STATE` unless `ep` is unconnected.
    pub fn create_rsp(&self, conn_qual: u64, evd: &Evd, ep: Option<&Ep>) -> Result<Rsp> {
        Rsp::create(&self.device, conn_qual, evd, ep)
    }

    /// Creates a CSP, which listens at `address`, an address of the IA's network device. `None`
    /// selects the IA's address; port 0 selects a free port. Requests arrive on `evd`.
    ///
    /// # Errors
    /// `PORT_IN_USE`, `INVALID_ADDRESS`, `COMM_NOT_SUPPORTED`, `INVALID_HANDLE/EVD_CR`.
    pub fn create_csp(&self, address: Option<SocketAddr>, evd: &Evd) -> Result<Csp> {
        Csp::create(&self.device, address, evd)
    }

    /// Creates an SRQ for `max_recv_dtos` receives of at most `max_recv_iov` segments in regions of
    /// `pz`.
    ///
    /// # Errors
    /// `MODEL_NOT_SUPPORTED` if the device has no SRQs, `INVALID_PARAMETER` (argument 3) for 0 or
    /// above the device's limits.
    pub fn create_srq(&self, pz: &Pz, max_recv_dtos: u32, max_recv_iov: u32) -> Result<Srq> {
        Srq::create(&self.device, pz, max_recv_dtos, max_recv_iov)
    }

    /// Registers all of `buffer`, which stays mapped until the region is freed.
    ///
    /// # Errors
    /// `INSUFFICIENT_RESOURCES` over the limit on locked memory, `INVALID_PARAMETER` for unknown
    /// privileges, `MODEL_NOT_SUPPORTED` for `REMOTE_ATOMIC` if the device has no atomic
    /// operations.
    pub fn register(
        &self,
        pz: &Pz,
        buffer: impl Into<Arc<Buffer>>,
        privileges: Privileges,
    ) -> Result<Lmr> {
        Lmr::register(&self.device, pz, buffer.into(), privileges, KDAPL_VA_TYPE_VA)
    }

    /// As [`register`](Self::register). The region's segments count addresses from 0 on, so that a
    /// peer learns no address of the program. The buffer begins at a page boundary.
    ///
    /// # Errors
    /// Those of [`register`](Self::register); `INVALID_ADDRESS/UNSUPPORTED` if the buffer does not
    /// begin at a page boundary; `MODEL_NOT_SUPPORTED` if the driver has no such regions: see
    /// `zb_supported` of [`query`](Self::query).
    pub fn register_zero_based(
        &self,
        pz: &Pz,
        buffer: impl Into<Arc<Buffer>>,
        privileges: Privileges,
    ) -> Result<Lmr> {
        Lmr::register(&self.device, pz, buffer.into(), privileges, KDAPL_VA_TYPE_ZB)
    }

    /// Creates an RMR, which is not bound yet.
    ///
    /// # Errors
    /// `MODEL_NOT_SUPPORTED` if the device cannot bind memory; `INSUFFICIENT_RESOURCES`.
    pub fn create_rmr(&self, pz: &Pz) -> Result<Rmr> {
        Rmr::create(&self.device, pz)
    }
}

/// Returns the text before the first NUL.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
