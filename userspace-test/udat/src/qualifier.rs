// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Transport of a connection qualifier, which has 64 bits.

/// Header that the private data of a reject begin with if the peer uses Debian's provider: version
/// 2.0 of DAT, version 2.0 of the provider.
const REJECT_HEADER: [u8; 4] = [2, 0, 2, 0];

/// Mapping of connection qualifiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// kDAPL's mapping: up to 65535 a qualifier is a port; above, the request carries it.
    #[default]
    Kdapl,
    /// Mapping of Debian's provider (`libdaplofa`): each qualifier is a port, which several
    /// qualifiers share.
    Daplofa,
}

impl Mapping {
    /// Returns the qualifier for the kernel.
    pub fn to_kernel(self, qualifier: u64) -> u64 {
        match self {
            Self::Daplofa if qualifier > 0xffff => qualifier % 32_001 + 33_534,
            _ => qualifier,
        }
    }

    /// Returns the private data of a reject with the program's `data`.
    pub fn reject(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Kdapl => data.to_vec(),
            Self::Daplofa => [&REJECT_HEADER, data].concat(),
        }
    }

    /// Returns the program's part of the private data of a reject.
    pub fn rejected(self, data: &[u8]) -> &[u8] {
        match self {
            Self::Kdapl => data,
            Self::Daplofa => data.get(REJECT_HEADER.len()..).unwrap_or(&[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mapping::{Daplofa, Kdapl};

    #[test]
    fn ports_stay_and_the_rest_is_folded_as_the_peer_does() {
        for port in [1, 45_248, 65_535] {
            assert_eq!((Kdapl.to_kernel(port), Daplofa.to_kernel(port)), (port, port));
        }
        assert_eq!(Kdapl.to_kernel(0x0aff_ab1e), 0x0aff_ab1e);
        // 65536 = 2 * 32001 + 1534; 0xaffab1e = 5766 * 32001 + 9880.
        assert_eq!(Daplofa.to_kernel(65_536), 33_534 + 1534);
        assert_eq!(Daplofa.to_kernel(0x0aff_ab1e), 33_534 + 9880);
        assert!((1..=65_535).contains(&Daplofa.to_kernel(u64::MAX)));
    }

    #[test]
    fn the_data_of_a_reject_comes_out_as_it_went_in() {
        for mapping in [Kdapl, Daplofa] {
            for data in [&b""[..], b"no"] {
                assert_eq!(mapping.rejected(&mapping.reject(data)), data);
            }
            assert_eq!(mapping.rejected(&[]), b"");
        }
        assert_eq!(Daplofa.reject(b"no"), *b"\x02\0\x02\0no");
    }
}
