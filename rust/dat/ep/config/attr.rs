// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoint attributes (`DAT_EP_ATTR`): defaults, and checks of a consumer's request.

use crate::{
    compat,
    dat::{
        base::IaAttr,
        prelude::*, //
    },
    model::{
        completion::WakeMode,
        handle::Direction,
        keepalive,
        retry::LONGEST_MS, //
    },
    rdma::qp::{
        Capacity,
        ReadDepth, //
    },
};
use kdapl_bindings::{
    KDAPL_KEEPALIVE_MAX,
    KDAPL_KEEPALIVE_MIN,
    KDAPL_KEEPALIVE_NONE,
    KDAPL_PEER_TIMEOUT_MAX,
    KDAPL_PEER_TIMEOUT_NONE,
    KDAPL_RDMA_READS_DEFAULT, //
};

// The header tells consumers these times.
const _: () = assert!(KDAPL_KEEPALIVE_MIN == keepalive::MIN_MS);
const _: () = assert!(KDAPL_PEER_TIMEOUT_MAX == LONGEST_MS);

/// Default number of DTOs in flight in each direction.
const DEFAULT_DTOS: u32 = 256;

/// Default number of segments of a DTO.
const DEFAULT_IOV: u32 = 4;

/// Default number of RDMA reads in flight in each direction.
const DEFAULT_READS: u32 = 16;

/// Expands a macro for all attributes, each with its bit in `DAT_EP_PARAM_MASK`.
macro_rules! with_attributes {
    ($then:ident) => {
        $then! {
            max_message_size: KDAPL_EP_FIELD_MAX_MESSAGE_SIZE,
            max_rdma_size: KDAPL_EP_FIELD_MAX_RDMA_SIZE,
            service_type: KDAPL_EP_FIELD_SERVICE_TYPE,
            qos: KDAPL_EP_FIELD_QOS,
            recv_completion_flags: KDAPL_EP_FIELD_RECV_COMPLETION_FLAGS,
            request_completion_flags: KDAPL_EP_FIELD_REQUEST_COMPLETION_FLAGS,
            max_recv_dtos: KDAPL_EP_FIELD_MAX_RECV_DTOS,
            max_request_dtos: KDAPL_EP_FIELD_MAX_REQUEST_DTOS,
            max_recv_iov: KDAPL_EP_FIELD_MAX_RECV_IOV,
            max_request_iov: KDAPL_EP_FIELD_MAX_REQUEST_IOV,
            max_rdma_read_in: KDAPL_EP_FIELD_MAX_RDMA_READ_IN,
            max_rdma_read_out: KDAPL_EP_FIELD_MAX_RDMA_READ_OUT,
            max_rdma_read_iov: KDAPL_EP_FIELD_MAX_RDMA_READ_IOV,
            max_rdma_write_iov: KDAPL_EP_FIELD_MAX_RDMA_WRITE_IOV,
            peer_timeout_ms: KDAPL_EP_FIELD_PEER_TIMEOUT,
            keepalive_ms: KDAPL_EP_FIELD_KEEPALIVE,
        }
    };
}
pub(crate) use with_attributes;

/// Attributes of an Endpoint. Zero in a number asks for the default, except in the numbers of RDMA
/// reads, where it means none and [`KDAPL_RDMA_READS_DEFAULT`] asks for the default.
#[derive(Clone, Copy, Default)]
pub(crate) struct EpAttr {
    pub(crate) max_message_size: u64,
    pub(crate) max_rdma_size: u64,
    pub(crate) service_type: u32,
    pub(crate) qos: u32,
    pub(crate) recv_completion_flags: u32,
    pub(crate) request_completion_flags: u32,
    pub(crate) max_recv_dtos: u32,
    pub(crate) max_request_dtos: u32,
    pub(crate) max_recv_iov: u32,
    pub(crate) max_request_iov: u32,
    pub(crate) max_rdma_read_in: u32,
    pub(crate) max_rdma_read_out: u32,
    pub(crate) max_rdma_read_iov: u32,
    pub(crate) max_rdma_write_iov: u32,
    /// Milliseconds after which a connection to a peer that does not answer is broken, or
    /// [`KDAPL_PEER_TIMEOUT_NONE`]. Without effect over iWARP.
    pub(crate) peer_timeout_ms: u32,
    /// Milliseconds of silence after which an idle connection is broken, or
    /// [`KDAPL_KEEPALIVE_NONE`].
    pub(crate) keepalive_ms: u32,
}

/// Returns the module parameter `peer_timeout_ms`, as an attribute.
fn default_peer_timeout_ms() -> u32 {
    match compat::parameter::<u32>(crate::module_parameters::peer_timeout_ms.value()) {
        0 => KDAPL_PEER_TIMEOUT_NONE,
        time => time.min(KDAPL_PEER_TIMEOUT_MAX),
    }
}

/// Returns the module parameter `keepalive_ms`, as an attribute.
fn default_keepalive_ms() -> u32 {
    match compat::parameter::<u32>(crate::module_parameters::keepalive_ms.value()) {
        0 => KDAPL_KEEPALIVE_NONE,
        time => time.clamp(keepalive::MIN_MS, KDAPL_KEEPALIVE_MAX),
    }
}

/// Returns the requested keepalive time, or the default for 0. `has_room` says whether the queue
/// pair can have room for the probes.
fn choose_keepalive(asked: u32, has_room: bool) -> DatResult<u32> {
    match asked {
        KDAPL_KEEPALIVE_NONE => Ok(KDAPL_KEEPALIVE_NONE),
        0 if has_room => Ok(default_keepalive_ms()),
        0 => Ok(KDAPL_KEEPALIVE_NONE),
        KDAPL_KEEPALIVE_MIN..=KDAPL_KEEPALIVE_MAX if has_room => Ok(asked),
        1.. => Err(DatError::Invalid(Arg::Attr)),
    }
}

/// Returns the requested time-out for a silent peer, or the default for 0.
fn choose_peer_timeout(asked: u32) -> DatResult<u32> {
    match asked {
        0 => Ok(default_peer_timeout_ms()),
        KDAPL_PEER_TIMEOUT_NONE | ..=KDAPL_PEER_TIMEOUT_MAX => Ok(asked),
        _ => Err(DatError::Invalid(Arg::Attr)),
    }
}

/// Returns the requested number, or the default for 0, within the limit.
fn choose(asked: u32, default: u32, limit: u32) -> DatResult<u32> {
    match asked {
        0 => Ok(default.min(limit)),
        1.. if asked <= limit => Ok(asked),
        1.. => Err(DatError::Invalid(Arg::Attr)),
    }
}

/// As [`choose`], for a number of RDMA reads.
fn choose_reads(asked: u32, limit: u32) -> DatResult<u32> {
    match asked {
        KDAPL_RDMA_READS_DEFAULT => Ok(DEFAULT_READS.min(limit)),
        _ if asked <= limit => Ok(asked),
        _ => Err(DatError::Invalid(Arg::Attr)),
    }
}

impl EpAttr {
    /// Returns the request of a consumer that supplies no attributes.
    fn defaults() -> Self {
        Self {
            max_rdma_read_in: KDAPL_RDMA_READS_DEFAULT,
            max_rdma_read_out: KDAPL_RDMA_READS_DEFAULT,
            ..Self::default()
        }
    }

    /// Returns these attributes, with those that `mask` names taken from `other`.
    pub(in crate::dat::ep) fn changed(mut self, mask: u64, other: &Self) -> Self {
        macro_rules! change {
            ($($name:ident: $bit:ident,)+) => {
                $(if mask & u64::from(kdapl_bindings::$bit) != 0 {
                    self.$name = other.$name;
                })+
            };
        }
        with_attributes!(change);
        self
    }

    /// Returns the attributes that a consumer gets for the requested ones on this adapter.
    ///
    /// Message and RDMA sizes are informational: the device limits a transfer. So is the quality of
    /// service: a connect call has its own.
    ///
    /// # Errors
    ///
    /// - INVALID_PARAMETER (attributes) beyond the adapter's limits, or for impossible completion
    ///   flags.
    /// - MODEL_NOT_SUPPORTED for an unknown service type or quality of service.
    pub(in crate::dat::ep) fn resolve(asked: Option<Self>, ia: &IaAttr) -> DatResult<Self> {
        let asked = asked.unwrap_or_else(Self::defaults);
        if asked.service_type != 0 {
            return Err(Kind::ModelNotSupported.into());
        }
        Qos::from_bits(asked.qos)?;
        let invalid = DatError::Invalid(Arg::Attr);
        WakeMode::of_receives(asked.recv_completion_flags).ok_or(invalid)?;
        WakeMode::of_requests(asked.request_completion_flags).ok_or(invalid)?;
        let size = |asked: u64| match asked {
            0 => Ok(ia.max_message_size),
            1.. if asked <= ia.max_message_size => Ok(asked),
            1.. => Err(invalid),
        };
        let iov = ia.max_iov;
        let max_request_dtos = choose(asked.max_request_dtos, DEFAULT_DTOS, ia.max_dto_per_ep)?;
        let longest = ia.max_dto_per_ep.saturating_sub(keepalive::MAX_PROBES);
        let has_room = max_request_dtos <= longest;
        Ok(Self {
            max_message_size: size(asked.max_message_size)?,
            max_rdma_size: size(asked.max_rdma_size)?,
            max_recv_dtos: choose(asked.max_recv_dtos, DEFAULT_DTOS, ia.max_dto_per_ep)?,
            max_request_dtos,
            max_recv_iov: choose(asked.max_recv_iov, DEFAULT_IOV, iov)?,
            max_request_iov: choose(asked.max_request_iov, DEFAULT_IOV, iov)?,
            max_rdma_read_in: choose_reads(asked.max_rdma_read_in, ia.max_read_in)?,
            max_rdma_read_out: choose_reads(asked.max_rdma_read_out, ia.max_read_out)?,
            max_rdma_read_iov: choose(asked.max_rdma_read_iov, DEFAULT_IOV, ia.max_read_iov)?,
            max_rdma_write_iov: choose(asked.max_rdma_write_iov, DEFAULT_IOV, iov)?,
            peer_timeout_ms: choose_peer_timeout(asked.peer_timeout_ms)?,
            keepalive_ms: choose_keepalive(asked.keepalive_ms, has_room)?,
            ..asked
        })
    }

    /// Returns the time-out for a silent peer in milliseconds; `None` without one.
    pub(in crate::dat::ep) fn peer_timeout_ms(&self) -> Option<u32> {
        Some(self.peer_timeout_ms).filter(|time| *time != KDAPL_PEER_TIMEOUT_NONE)
    }

    /// Returns the wake-up mode of a direction: which completions wake a waiter.
    pub(in crate::dat::ep) fn mode(&self, direction: Direction) -> WakeMode {
        let mode = match direction {
            Direction::Receive => WakeMode::of_receives(self.recv_completion_flags),
            Direction::Request => WakeMode::of_requests(self.request_completion_flags),
        };
        // The flags were checked by [`EpAttr::resolve`].
        mode.unwrap_or(WakeMode::Threshold)
    }

    /// Returns the keepalive time in milliseconds; `None` for none.
    pub(in crate::dat::ep) fn keepalive(&self) -> Option<u32> {
        Some(self.keepalive_ms).filter(|time| *time != KDAPL_KEEPALIVE_NONE)
    }

    /// Returns the number of requests that the send queue has room for: those of the consumer, and
    /// the probes of the keepalive.
    pub(in crate::dat::ep) fn max_send_wr(&self) -> u32 {
        let probes = self.keepalive().map_or(0, |_| keepalive::MAX_PROBES);
        self.max_request_dtos.saturating_add(probes)
    }

    /// Returns whether `other` needs the same completion queues, with as many entries.
    pub(in crate::dat::ep) fn needs_same_cqs(&self, other: &Self) -> bool {
        self.max_recv_dtos == other.max_recv_dtos
            && self.max_send_wr() == other.max_send_wr()
            && self.mode(Direction::Receive) == other.mode(Direction::Receive)
    }

    /// Returns the capacity of a queue pair for these attributes.
    pub(in crate::dat::ep) fn capacity(&self) -> Capacity {
        Capacity {
            max_send_wr: self.max_send_wr(),
            max_recv_wr: self.max_recv_dtos,
            max_send_sge: self
                .max_request_iov
                .max(self.max_rdma_read_iov)
                .max(self.max_rdma_write_iov),
            max_recv_sge: self.max_recv_iov,
        }
    }

    /// Returns these attributes, with the numbers of RDMA reads of a connection.
    pub(in crate::dat::ep) fn with_read_depth(self, depth: ReadDepth) -> Self {
        Self {
            max_rdma_read_in: depth.responder.into(),
            max_rdma_read_out: depth.initiator.into(),
            ..self
        }
    }

    /// Returns the numbers of RDMA reads to agree on with the peer.
    pub(in crate::dat::ep) fn read_depth(&self) -> ReadDepth {
        let depth = |reads: u32| u8::try_from(reads).unwrap_or(u8::MAX);
        ReadDepth {
            responder: depth(self.max_rdma_read_in),
            initiator: depth(self.max_rdma_read_out),
        }
    }
}

/// Quality of service that a connection requests of the network (`DAT_QOS`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Qos {
    /// The network's default.
    BestEffort,
    /// Throughput is more important than latency.
    HighThroughput,
    /// Latency is more important than throughput.
    LowLatency,
    /// Lower priority than the default.
    Economy,
    /// Higher priority than the default.
    Premium,
}

impl Qos {
    /// # Errors
    ///
    /// MODEL_NOT_SUPPORTED for a combination of bits, or for an unknown bit.
    pub(crate) fn from_bits(bits: u32) -> DatResult<Self> {
        match bits {
            kdapl_bindings::KDAPL_QOS_BEST_EFFORT => Ok(Self::BestEffort),
            kdapl_bindings::KDAPL_QOS_HIGH_THROUGHPUT => Ok(Self::HighThroughput),
            kdapl_bindings::KDAPL_QOS_LOW_LATENCY => Ok(Self::LowLatency),
            kdapl_bindings::KDAPL_QOS_ECONOMY => Ok(Self::Economy),
            kdapl_bindings::KDAPL_QOS_PREMIUM => Ok(Self::Premium),
            _ => Err(Kind::ModelNotSupported.into()),
        }
    }

    /// Returns the service type from which `rdma_cm` derives traffic class and service level: a
    /// Differentiated Services field. `None` leaves it to the administrator's default.
    pub(in crate::dat::ep) fn service_type(self) -> Option<u8> {
        match self {
            Self::BestEffort => None,
            // AF11 and CS1 of RFC 4594, EF of RFC 3246, AF21.
            Self::HighThroughput => Some(0x28),
            Self::Economy => Some(0x20),
            Self::Premium => Some(0xb8),
            Self::LowLatency => Some(0x48),
        }
    }
}
