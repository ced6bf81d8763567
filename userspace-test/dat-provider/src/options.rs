// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The parameters of a line of `dat.conf`.

use crate::qualifier::Mapping;

/// What `"rxe0 1 qualifiers=daplofa strict"` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// An RDMA device or its network device; the first one that has an address if it is empty.
    pub device: String,
    pub mapping: Mapping,
    /// `DAT_QUEUE_EMPTY` has its error class, as the specification says. Programs that were written
    /// against other providers compare with the bare number.
    pub strict: bool,
}

impl Options {
    /// Device, port (which is not looked at: a device has one here), options.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for (place, word) in text.split_whitespace().enumerate() {
            match (place, word) {
                (_, "strict") => options.strict = true,
                (_, "qualifiers=kdapl") => options.mapping = Mapping::Kdapl,
                (_, "qualifiers=daplofa") => options.mapping = Mapping::Daplofa,
                (0, device) if !device.contains('=') => options.device = device.into(),
                (1, port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {}
                _ => {
                    return Err(format!("'{word}' in \"{text}\" is no parameter of this provider"))
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_what_they_say() {
        let plain = Options { device: "rxe0".into(), ..Options::default() };
        assert_eq!(Options::parse("rxe0 1"), Ok(plain.clone()));
        assert_eq!(Options::parse(" rxe0"), Ok(plain.clone()));
        assert_eq!(Options::parse(""), Ok(Options::default()));
        let all = Options { mapping: Mapping::Daplofa, strict: true, ..plain };
        assert_eq!(Options::parse("rxe0 0 qualifiers=daplofa strict"), Ok(all.clone()));
        assert_eq!(Options::parse("rxe0 qualifiers=daplofa strict"), Ok(all));
    }

    #[test]
    fn what_is_none_is_named() {
        for text in ["rxe0 1 speed=fast", "rxe0 x", "rxe0 1 2", "qualifier=daplofa"] {
            let word = text.split_whitespace().last().unwrap();
            assert!(Options::parse(text).unwrap_err().contains(word), "{text}");
        }
    }
}
