// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connection qualifiers and their transport in a connection request.
//!
//! A DAT connection qualifier has 64 bits; a port of `rdma_cm` has 16. A qualifier up to 65535 is
//! used as the port, so the peer may be any program that uses `rdma_cm`. A request for a larger
//! qualifier goes to one port that all kDAPL service points share. A header in front of the
//! consumer's private data then carries the qualifier:
//!
//! ```text
//!   byte 0         2         3        4                   12
//!   +--------------+---------+--------+-------------------+--------------------- - -
//!   | 'K' 'D'      | version | length | qualifier         | the consumer's data
//!   +--------------+---------+--------+-------------------+--------------------- - -
//! ```
//!
//! The fields are in network byte order. `length` is the number of bytes of the consumer's data,
//! since a transport may pad private data.

/// Port that all qualifiers above 65535 share: `KDAPL_SHARED_PORT`.
///
/// `rdma_cm` requires `CAP_NET_BIND_SERVICE` in the initial user namespace for ports below 1024, so
/// an ordinary user cannot bind it before kDAPL does.
pub(crate) const SHARED_PORT: u16 = 299;

/// Length of the header in bytes.
pub(crate) const OVERHEAD: usize = 12;

/// First bytes of the header: magic and version.
const HEAD: [u8; 3] = [b'K', b'D', 1];

/// A connection qualifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Qualifier {
    /// A port of `rdma_cm`; not 0.
    Port(u16),
    /// A qualifier above 65535, reached through the shared port.
    Extended(u64),
}

impl Qualifier {
    /// Converts the number that a consumer passed; `None` for 0, which is no valid qualifier.
    pub(crate) fn new(raw: u64) -> Option<Self> {
        match u16::try_from(raw) {
            Ok(0) => None,
            Ok(port) => Some(Self::Port(port)),
            Err(_) => Some(Self::Extended(raw)),
        }
    }

    /// Returns the number that a consumer knows.
    pub(crate) fn raw(self) -> u64 {
        match self {
            Self::Port(port) => port.into(),
            Self::Extended(raw) => raw,
        }
    }

    /// Returns the port that a connection request for this qualifier is sent to.
    pub(crate) fn port(self) -> u16 {
        match self {
            Self::Port(port) => port,
            Self::Extended(_) => SHARED_PORT,
        }
    }

    /// Returns the number of bytes of a request's private data that the header uses.
    pub(crate) fn overhead(self) -> usize {
        match self {
            Self::Port(_) => 0,
            Self::Extended(_) => OVERHEAD,
        }
    }

    /// Writes the private data of a connection request into `out`: the header, if there is one, and
    /// the consumer's `data`.
    ///
    /// Returns the number of bytes written; `None` if `out` is too short, or if `data` is longer
    /// than the header's length field allows.
    pub(crate) fn encode(self, data: &[u8], out: &mut [u8]) -> Option<usize> {
        let body = match self {
            Self::Port(_) => &mut *out,
            Self::Extended(raw) => {
                let (header, body) = out.split_at_mut_checked(OVERHEAD)?;
                let length = u8::try_from(data.len()).ok()?;
                let fields = HEAD.into_iter().chain([length]).chain(raw.to_be_bytes());
                for (to, from) in header.iter_mut().zip(fields) {
                    *to = from;
                }
                body
            }
        };
        for (to, from) in body.get_mut(..data.len())?.iter_mut().zip(data) {
            *to = *from;
        }
        data.len().checked_add(self.overhead())
    }
}

/// Parses the private data of a request that arrived at the shared port. Returns the qualifier and
/// the consumer's data.
///
/// Returns `None` unless `bytes` begin with a header that [`Qualifier::encode`] can write.
pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<{ HEAD.len() }>()?;
    let (&length, rest) = rest.split_first()?;
    let (raw, body) = rest.split_first_chunk::<8>()?;
    let raw = u64::from_be_bytes(*raw);
    if *head != HEAD || Qualifier::new(raw) != Some(Qualifier::Extended(raw)) {
        return None;
    }
    Some((raw, body.get(..usize::from(length))?))
}
