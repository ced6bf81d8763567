// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Wire format of NVMe over RDMA: private data of connections, and the parts of a capsule that a
//! transport reads. Numbers are little-endian.
//!
//! A command capsule is 64 bytes, and in-capsule data may follow. A response capsule is 16 bytes.
//! Both are messages (SEND). The target moves other data by RDMA.
//!
//! Spec: NVMe RDMA Transport 1.0; NVM Express Base 2.0 §4.1.2 (SGL descriptors).
//! C header: [`include/linux/nvme-rdma.h`](srctree/include/linux/nvme-rdma.h)

/// Connection qualifier that targets usually have.
pub(crate) const PORT: u16 = 4420;

/// Size of a command, which a capsule begins with.
pub(crate) const COMMAND_SIZE: usize = 64;

/// Size of a completion, which is all of a response capsule.
pub(crate) const COMPLETION_SIZE: usize = 16;

/// Depth of an admin queue.
pub(crate) const ADMIN_DEPTH: u16 = 32;

/// Largest depth of an I/O queue.
pub(crate) const MAX_DEPTH: u16 = 256;

/// Format of all private data.
const FORMAT: u16 = 0;

/// Size of the private data of a connection request.
const REQUEST_SIZE: usize = 32;

/// Returns the number at an offset, which the caller keeps within the bytes.
fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

/// Stores a number at an offset. One beyond the end is left out.
fn put_u16(bytes: &mut [u8], offset: usize, number: u16) {
    if let Some(place) = bytes
        .get_mut(offset..)
        .and_then(|rest| rest.first_chunk_mut())
    {
        *place = number.to_le_bytes();
    }
}

/// Private data of a connection request: the host asks for a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectRequest {
    /// Queue identifier; 0 is the admin queue.
    pub(crate) qid: u16,
    /// Receives of the host (HRQSIZE).
    pub(crate) host_receives: u16,
    /// Last index of the host's send queue (HSQSIZE), one less than its depth.
    pub(crate) host_last_send: u16,
    /// Controller of an I/O queue, or 0.
    pub(crate) controller: u16,
}

impl ConnectRequest {
    /// Decodes the private data. InfiniBand and RoCE have padded them with zeros.
    ///
    /// # Errors
    ///
    /// Status of the reject.
    pub(crate) fn parse(data: &[u8]) -> Result<Self, Reject> {
        let field = |offset| u16_at(data, offset).ok_or(Reject::InvalidLength);
        if data.len() < REQUEST_SIZE {
            return Err(Reject::InvalidLength);
        }
        if field(0)? != FORMAT {
            return Err(Reject::InvalidFormat);
        }
        Ok(Self {
            qid: field(2)?,
            host_receives: field(4)?,
            host_last_send: field(6)?,
            controller: field(8)?,
        })
    }

    /// Encodes the private data.
    pub(crate) fn to_bytes(self) -> [u8; REQUEST_SIZE] {
        let mut bytes = [0; REQUEST_SIZE];
        put_u16(&mut bytes, 0, FORMAT);
        put_u16(&mut bytes, 2, self.qid);
        put_u16(&mut bytes, 4, self.host_receives);
        put_u16(&mut bytes, 6, self.host_last_send);
        put_u16(&mut bytes, 8, self.controller);
        bytes
    }

    /// Returns the depths of the target's queue.
    ///
    /// # Errors
    ///
    /// Status of the reject if they are 0 or too large.
    pub(crate) fn depths(&self) -> Result<Depths, Reject> {
        let most = match self.qid {
            0 => ADMIN_DEPTH,
            _ => MAX_DEPTH,
        };
        let commands = self.host_last_send.checked_add(1);
        let responses = Some(self.host_receives);
        let at_most = |depth: Option<u16>| depth.filter(|depth| (1..=most).contains(depth));
        Ok(Depths {
            commands: at_most(commands).ok_or(Reject::InvalidSends)?,
            responses: at_most(responses).ok_or(Reject::InvalidReceives)?,
        })
    }
}

/// Depths of a target's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depths {
    /// Commands that the host may have outstanding: receives of the target.
    pub(crate) commands: u16,
    /// Responses that the host has receives for.
    pub(crate) responses: u16,
}

/// Private data of an accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectReply {
    /// Receives of the target (CRQSIZE).
    pub(crate) target_receives: u16,
}

impl ConnectReply {
    /// Decodes the private data.
    ///
    /// # Errors
    ///
    /// As a target's status: they are too short, or of another format.
    pub(crate) fn parse(data: &[u8]) -> Result<Self, Reject> {
        let field = |offset| u16_at(data, offset).ok_or(Reject::InvalidLength);
        if field(0)? != FORMAT {
            return Err(Reject::InvalidFormat);
        }
        Ok(Self {
            target_receives: field(2)?,
        })
    }

    /// Encodes the private data.
    pub(crate) fn to_bytes(self) -> [u8; REQUEST_SIZE] {
        let mut bytes = [0; REQUEST_SIZE];
        put_u16(&mut bytes, 0, FORMAT);
        put_u16(&mut bytes, 2, self.target_receives);
        bytes
    }
}

/// Private data of a reject: the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Reject {
    /// The private data of the request are too short.
    InvalidLength = 1,
    /// They have another format.
    InvalidFormat = 2,
    /// The queue identifier is not valid.
    InvalidQueue = 3,
    /// The depth of the host's send queue is not valid.
    InvalidSends = 4,
    /// The number of the host's receives is not valid.
    InvalidReceives = 5,
    /// A resource is exhausted.
    NoResources = 6,
    /// The number of RDMA reads that the host accepts is not valid.
    InvalidReadsIn = 7,
    /// The number of RDMA reads that the host starts is not valid.
    InvalidReadsOut = 8,
    /// The controller is not valid.
    InvalidController = 9,
}

impl Reject {
    /// Decodes the private data of a reject. `None` if they are not of this format.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        if u16_at(data, 0)? != FORMAT {
            return None;
        }
        Some(match u16_at(data, 2)? {
            1 => Self::InvalidLength,
            2 => Self::InvalidFormat,
            3 => Self::InvalidQueue,
            4 => Self::InvalidSends,
            5 => Self::InvalidReceives,
            6 => Self::NoResources,
            7 => Self::InvalidReadsIn,
            8 => Self::InvalidReadsOut,
            9 => Self::InvalidController,
            _ => return None,
        })
    }

    /// Encodes the private data.
    pub(crate) fn to_bytes(self) -> [u8; 4] {
        let mut bytes = [0; 4];
        put_u16(&mut bytes, 0, FORMAT);
        put_u16(&mut bytes, 2, self as u16);
        bytes
    }
}

/// Status of a completion: a status code, and whether the host shall not retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u16);

impl Status {
    /// DNR: the host shall not retry.
    const DO_NOT_RETRY: u16 = 0x4000;

    /// A field of the command is not valid.
    pub(crate) const INVALID_FIELD: Self = Self(0x02 | Self::DO_NOT_RETRY);
    /// The data were not moved.
    pub(crate) const DATA_TRANSFER_ERROR: Self = Self(0x04);
    /// An internal error, as memory that is exhausted.
    pub(crate) const INTERNAL: Self = Self(0x06);
    /// The type of the SGL descriptor is not supported.
    pub(crate) const SGL_INVALID_TYPE: Self = Self(0x11 | Self::DO_NOT_RETRY);
    /// The in-capsule data do not lie within the capsule.
    pub(crate) const SGL_INVALID_OFFSET: Self = Self(0x16 | Self::DO_NOT_RETRY);
}

/// Descriptor of a command's data (SGL 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sgl {
    /// Data within the capsule, after the command.
    InCapsule {
        /// Offset from the end of the command.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// Memory of the host.
    Keyed {
        /// Address of the first byte.
        address: u64,
        /// Number of bytes, of 24 bits.
        length: u32,
        /// Key of the host's region.
        key: u32,
        /// The response shall invalidate the key.
        invalidate: bool,
    },
}

/// Offset of the descriptor in a command.
const SGL_OFFSET: usize = 24;

/// Size of a descriptor.
pub(crate) const SGL_SIZE: usize = 16;

/// Type of a descriptor, its upper four bits: a data block, and a keyed data block.
const DATA_BLOCK: u8 = 0x0;
const KEYED_DATA_BLOCK: u8 = 0x4;

/// Subtype of a descriptor, its lower four bits.
const ADDRESS: u8 = 0x0;
const OFFSET: u8 = 0x1;
const INVALIDATE: u8 = 0xf;

impl Sgl {
    /// Decodes the descriptor of a command.
    ///
    /// # Errors
    ///
    /// Status of the completion.
    pub(crate) fn of_command(command: &[u8; COMMAND_SIZE]) -> Result<Self, Status> {
        let descriptor = command.get(SGL_OFFSET..).and_then(<[u8]>::first_chunk);
        Self::parse(descriptor.ok_or(Status::INVALID_FIELD)?)
    }

    /// Decodes a descriptor.
    ///
    /// # Errors
    ///
    /// Status of the completion.
    pub(crate) fn parse(descriptor: &[u8; SGL_SIZE]) -> Result<Self, Status> {
        let [a, b, c, d, e, f, g, h, l0, l1, l2, x0, x1, x2, x3, kind] = *descriptor;
        let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        match (kind >> 4, kind & 0xf) {
            (DATA_BLOCK, OFFSET) => Ok(Self::InCapsule {
                offset: address,
                length: u32::from_le_bytes([l0, l1, l2, x0]),
            }),
            (KEYED_DATA_BLOCK, subtype @ (ADDRESS | INVALIDATE)) => Ok(Self::Keyed {
                address,
                length: u32::from_le_bytes([l0, l1, l2, 0]),
                key: u32::from_le_bytes([x0, x1, x2, x3]),
                invalidate: subtype == INVALIDATE,
            }),
            (DATA_BLOCK | KEYED_DATA_BLOCK, _) => Err(Status::INVALID_FIELD),
            _ => Err(Status::SGL_INVALID_TYPE),
        }
    }

    /// Encodes the descriptor. The upper bits of a keyed length are left out.
    pub(crate) fn to_bytes(self) -> [u8; SGL_SIZE] {
        match self {
            Self::InCapsule { offset, length } => {
                let [l0, l1, l2, l3] = length.to_le_bytes();
                join(
                    offset,
                    [l0, l1, l2],
                    [l3, 0, 0, 0],
                    (DATA_BLOCK << 4) | OFFSET,
                )
            }
            Self::Keyed {
                address,
                length,
                key,
                invalidate,
            } => {
                let [l0, l1, l2, _] = length.to_le_bytes();
                let subtype = if invalidate { INVALIDATE } else { ADDRESS };
                let kind = (KEYED_DATA_BLOCK << 4) | subtype;
                join(address, [l0, l1, l2], key.to_le_bytes(), kind)
            }
        }
    }
}

/// Joins the fields of a descriptor.
fn join(address: u64, length: [u8; 3], key: [u8; 4], kind: u8) -> [u8; SGL_SIZE] {
    let [a, b, c, d, e, f, g, h] = address.to_le_bytes();
    let ([l0, l1, l2], [k0, k1, k2, k3]) = (length, key);
    [a, b, c, d, e, f, g, h, l0, l1, l2, k0, k1, k2, k3, kind]
}

/// Opcode of commands of NVMe over Fabrics, whose type is another byte.
const FABRICS: u8 = 0x7f;

/// Returns whether the host sends data with a command: by the type of a Fabrics command, and else
/// by its opcode.
pub(crate) fn is_write(command: &[u8; COMMAND_SIZE]) -> bool {
    let [opcode, _, _, _, fabrics_type, ..] = *command;
    let direction = match opcode {
        FABRICS => fabrics_type,
        opcode => opcode,
    };
    direction & 1 != 0
}

/// Checks that in-capsule data lie within the received bytes and the size of the port. Returns
/// their place, from the end of the command on.
///
/// # Errors
///
/// Status of the completion.
pub(crate) fn in_capsule(
    offset: u64,
    length: u32,
    received: usize,
    offered: usize,
) -> Result<(usize, usize), Status> {
    let room = received.saturating_sub(COMMAND_SIZE).min(offered);
    let place = || {
        let (offset, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
        let end = offset.checked_add(length)?;
        (end <= room).then_some((offset, length))
    };
    place().ok_or(Status::SGL_INVALID_OFFSET)
}
