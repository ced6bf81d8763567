// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ports of the target, as configfs describes them.

use crate::{
    bindings,
    wire, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    str::CString, //
};

/// Largest in-capsule data.
const MAX_INLINE: usize = if 16 << 10 > PAGE_SIZE {
    16 << 10
} else {
    PAGE_SIZE
};

/// Depth of I/O queues that the administrator has not chosen.
const DEFAULT_DEPTH: i32 = 128;

/// Pointer to a port, for the requests of its queues.
///
/// The core frees a port after it has flushed its work queue, on which queues are released.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortRef(*mut bindings::nvmet_port);

// SAFETY: The pointer is only passed to the core.
unsafe impl Send for PortRef {}
// SAFETY: As above.
unsafe impl Sync for PortRef {}

impl PortRef {
    pub(super) fn new(port: *mut bindings::nvmet_port) -> Self {
        Self(port)
    }

    pub(super) fn as_ptr(self) -> *mut bindings::nvmet_port {
        self.0
    }
}

/// Settings of a port.
pub(crate) struct Settings {
    /// Number of the port.
    pub(crate) id: u16,
    /// Address to listen at.
    pub(crate) address: CString,
    /// Connection qualifier to listen for.
    pub(crate) service: u16,
    /// Number of bytes of in-capsule data of I/O queues.
    pub(crate) inline: usize,
}

/// Returns the text of a field, which ends with the field or a NUL.
fn text(field: &[u8]) -> Result<&str> {
    let bytes = field.split(|byte| *byte == 0).next().unwrap_or(&[]);
    Ok(core::str::from_utf8(bytes).map_err(|_| EINVAL)?.trim())
}

impl Settings {
    /// Reads the settings of a port, and stores those that it lacks or that are too large.
    ///
    /// # Errors
    ///
    /// EINVAL for an address of another family, or a malformed one.
    ///
    /// # Safety
    ///
    /// `port` is valid, and no other thread changes it: the core adds it.
    pub(super) unsafe fn of(port: *mut bindings::nvmet_port) -> Result<Self> {
        // SAFETY: By the safety requirement.
        let port = unsafe { &mut *port };
        let family = u32::from(port.disc_addr.adrfam);
        if family != bindings::NVMF_ADDR_FAMILY_IP4 && family != bindings::NVMF_ADDR_FAMILY_IP6 {
            pr_err!("address family {family} is not supported\n");
            return Err(EINVAL);
        }
        let inline = usize::try_from(port.inline_data_size).unwrap_or(PAGE_SIZE);
        port.inline_data_size = inline.min(MAX_INLINE) as i32;
        if port.max_queue_size < 0 {
            port.max_queue_size = DEFAULT_DEPTH;
        }
        port.max_queue_size = port.max_queue_size.min(wire::MAX_DEPTH.into());
        let address = text(&port.disc_addr.traddr)?;
        Ok(Self {
            id: u16::from_le(port.disc_addr.portid),
            address: CString::try_from_fmt(fmt!("{address}"))?,
            service: text(&port.disc_addr.trsvcid)?.parse().map_err(|_| EINVAL)?,
            inline: inline.min(MAX_INLINE),
        })
    }
}
