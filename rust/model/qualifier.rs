// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connection qualifiers: what a peer asks for, and how that travels.
//!
//! DAT's qualifiers have 64 bits, `rdma_cm`'s ports 16. Up to 65535 a qualifier is a port, and any
//! `rdma_cm` program may be the peer. Above, the request goes to one port that all of kDAPL
//! shares, and a header before the consumer's private data names the service point:
//!
//! ```text
//!   byte 0         2         3        4                   12
//!   +--------------+---------+--------+-------------------+--------------------- - -
//!   | 'K' 'D'      | version | length | qualifier         | the consumer's data
//!   +--------------+---------+--------+-------------------+--------------------- - -
//! ```
//!
//! Network byte order. The length is that of the consumer's data: a transport may pad them.

/// The port that all qualifiers above 65535 share: `KDAPL_SHARED_PORT`.
///
/// `rdma_cm` wants `CAP_NET_BIND_SERVICE` of the first user namespace for ports below 1024, so no
/// ordinary user can take it before kDAPL does.
pub(crate) const SHARED_PORT: u16 = 299;

/// Bytes of the header.
pub(crate) const OVERHEAD: usize = 12;

/// What the header begins with: magic and version.
const HEAD: [u8; 3] = [b'K', b'D', 1];

/// A connection qualifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Qualifier {
    /// A port of `rdma_cm`, not 0.
    Port(u16),
    /// A service point behind the shared port: above 65535.
    Wide(u64),
}

impl Qualifier {
    /// Takes what a consumer gave; `None` for 0, which qualifies nothing.
    pub(crate) fn new(raw: u64) -> Option<Self> {
        match u16::try_from(raw) {
            Ok(0) => None,
            Ok(port) => Some(Self::Port(port)),
            Err(_) => Some(Self::Wide(raw)),
        }
    }

    /// The port that a request for it is sent to.
    pub(crate) fn port(self) -> u16 {
        match self {
            Self::Port(port) => port,
            Self::Wide(_) => SHARED_PORT,
        }
    }

    /// Bytes of a request's private data that it takes.
    pub(crate) fn overhead(self) -> usize {
        match self {
            Self::Port(_) => 0,
            Self::Wide(_) => OVERHEAD,
        }
    }

    /// Writes the private data of a request for it: a header, if it needs one, and the consumer's
    /// `data`. Returns how much of `out` that is; `None` if `out` has not as much, or if the data
    /// are longer than a header can say.
    pub(crate) fn frame(self, data: &[u8], out: &mut [u8]) -> Option<usize> {
        let body = match self {
            Self::Port(_) => &mut *out,
            Self::Wide(raw) => {
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

/// Which qualifier a request at the shared port is for, and the consumer's data.
///
/// `None` if there is no such header, or none that [`Qualifier::frame`] makes.
pub(crate) fn unframe(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<{ HEAD.len() }>()?;
    let (&length, rest) = rest.split_first()?;
    let (raw, body) = rest.split_first_chunk::<8>()?;
    let raw = u64::from_be_bytes(*raw);
    if *head != HEAD || Qualifier::new(raw) != Some(Qualifier::Wide(raw)) {
        return None;
    }
    Some((raw, body.get(..usize::from(length))?))
}
