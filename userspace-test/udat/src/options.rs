// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Parameters of an adapter: in a line of `dat.conf`, or in the name that `libkdat` opens.

use crate::qualifier::Mapping;

/// Parsed parameters, for example of `"rxe0 1 qualifiers=daplofa strict"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Name of the IA: RDMA device, network device or address, with the port. If empty, the first
    /// device with an address.
    pub device: String,
    pub mapping: Mapping,
    /// Return `DAT_QUEUE_EMPTY` with its error class, as the specification requires. Programs
    /// written for other providers compare with the bare number.
    pub strict: bool,
}

impl Options {
    /// Parses name, port and options. Port 0 stands for any, as in the lines of other providers.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for (place, word) in text.split_whitespace().enumerate() {
            match (place, word) {
                (_, "strict") => options.strict = true,
                (_, "qualifiers=kdapl") => options.mapping = Mapping::Kdapl,
                (_, "qualifiers=daplofa") => options.mapping = Mapping::Daplofa,
                (0, device) if !device.contains('=') => options.device = device.into(),
                (1, "0") => {}
                (1, port) if is_number(port) && takes_port(&options.device) => {
                    options.device = with_port(&options.device, port);
                }
                _ => return Err(format!("'{word}' in \"{text}\" is no parameter of an adapter")),
            }
        }
        Ok(options)
    }
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a port may follow a name: it names a device, and no port.
fn takes_port(name: &str) -> bool {
    !name.is_empty() && !name.contains('/')
}

/// Adds a port to a name: before the address or network device after an `@`, if there is one.
fn with_port(name: &str, port: &str) -> String {
    match name.rsplit_once('@') {
        Some((device, place)) => format!("{device}/{port}@{place}"),
        None => format!("{name}/{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_what_they_say() {
        let plain = Options { device: "rxe0".into(), ..Options::default() };
        assert_eq!(Options::parse("rxe0 0"), Ok(plain.clone()));
        let named = |name: &str| Ok(Options { device: name.into(), ..Options::default() });
        assert_eq!(Options::parse("rxe0 2"), named("rxe0/2"));
        assert_eq!(Options::parse("rxe0@eth0.5 2"), named("rxe0/2@eth0.5"));
        assert_eq!(Options::parse("10.7.0.1"), named("10.7.0.1"));
        assert_eq!(Options::parse(" rxe0"), Ok(plain.clone()));
        assert_eq!(Options::parse(""), Ok(Options::default()));
        let all = Options { mapping: Mapping::Daplofa, strict: true, ..plain };
        assert_eq!(Options::parse("rxe0 0 qualifiers=daplofa strict"), Ok(all.clone()));
        assert_eq!(Options::parse("rxe0 qualifiers=daplofa strict"), Ok(all));
    }

    #[test]
    fn what_is_none_is_named() {
        for text in [
            "rxe0 1 speed=fast",
            "rxe0 x",
            "rxe0 1 2",
            "qualifier=daplofa",
            "strict 1",
            "rxe0/2 1",
            "rxe0/2@eth0 1",
        ] {
            let word = text.split_whitespace().last().unwrap();
            assert!(Options::parse(text).unwrap_err().contains(word), "{text}");
        }
    }
}
