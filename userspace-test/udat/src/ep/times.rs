// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Time-outs of an Endpoint. They are no attributes of DAT, so they are named attributes of the
//! provider.

use crate::abi::*;
use crate::foreign::{self, Named};
use crate::ret::{Result, Ret};
use libkdapl::sys::{KDAPL_EP_FIELD_KEEPALIVE, KDAPL_EP_FIELD_PEER_TIMEOUT, KDAPL_KEEPALIVE_NONE};
use libkdapl::{EpAttr, EpFields};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

const PEER_TIMEOUT: &str = "KDAPL_PEER_TIMEOUT_MS";
const KEEPALIVE: &str = "KDAPL_KEEPALIVE_MS";
/// Value of an attribute that is switched off.
const NONE: &str = "none";
/// `DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR`.
const SPECIFIC: u64 = 0x4000_0000;

/// Names of both attributes, with their bits in the kernel's mask.
const FIELDS: [(&str, EpFields); 2] = [
    (PEER_TIMEOUT, EpFields(KDAPL_EP_FIELD_PEER_TIMEOUT)),
    (KEEPALIVE, EpFields(KDAPL_EP_FIELD_KEEPALIVE)),
];

/// Checks whether DAT's mask has the attributes.
pub fn are_in(fields: EpFields) -> bool {
    fields.contains(EpFields(SPECIFIC))
}

/// Returns DAT's mask without the attributes.
pub fn without(fields: EpFields) -> EpFields {
    EpFields(fields.0 & !SPECIFIC)
}

/// Returns the mask with the kernel's bits of the attributes in place of DAT's.
pub fn expand(fields: EpFields) -> EpFields {
    if !are_in(fields) {
        return fields;
    }
    FIELDS.iter().fold(without(fields), |fields, (_, field)| fields | *field)
}

fn number(value: &str, argument: u16) -> Result<u32> {
    match value {
        NONE => Ok(KDAPL_KEEPALIVE_NONE),
        _ => value.parse().map_err(|_| Ret::argument(argument)),
    }
}

/// Adds the program's named attributes to `attr`. Returns their bits in the kernel's mask.
/// `argument` is the position of `from` among the arguments of the call.
pub fn add(attr: &mut EpAttr, from: &DAT_EP_ATTR, argument: u16) -> Result<EpFields> {
    let list =
        foreign::named(from.ep_provider_specific, from.ep_provider_specific_count, argument)?;
    let mut fields = EpFields(0);
    for (name, value) in list {
        let value = number(&value, argument)?;
        match name.as_str() {
            PEER_TIMEOUT => attr.peer_timeout_ms = value,
            KEEPALIVE => attr.keepalive_ms = value,
            _ => return Err(Ret::argument(argument)),
        }
        let known = FIELDS.iter().find(|(known, _)| *known == name);
        fields = known.map_or(fields, |(_, field)| fields | *field);
    }
    Ok(fields)
}

/// Lists of both values that queries have returned, for ever: a program may pass what it got from a
/// query to another call, also after the Endpoint was freed.
static LISTS: Mutex<BTreeMap<[u32; 2], &'static Named>> = Mutex::new(BTreeMap::new());

fn list(values: [u32; 2]) -> &'static Named {
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    lists.entry(values).or_insert_with(|| {
        let texts = values.map(|value| match value {
            KDAPL_KEEPALIVE_NONE => NONE.to_string(),
            _ => value.to_string(),
        });
        let named = Named::new(&[(PEER_TIMEOUT, &texts[0]), (KEEPALIVE, &texts[1])]);
        Box::leak(Box::new(named))
    })
}

/// Writes the attributes to the result of a query.
pub fn put(attr: &EpAttr, to: &mut DAT_EP_ATTR) {
    let named = list([attr.peer_timeout_ms, attr.keepalive_ms]);
    to.ep_provider_specific_count = named.count();
    to.ep_provider_specific = named.address();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(list: &Named) -> DAT_EP_ATTR {
        DAT_EP_ATTR {
            ep_provider_specific_count: list.count(),
            ep_provider_specific: list.address(),
            ..Default::default()
        }
    }

    #[test]
    fn times_survive_the_way_there_and_back() {
        for (peer_timeout_ms, keepalive_ms) in [(0, 6000), (30_000, KDAPL_KEEPALIVE_NONE)] {
            let attr = EpAttr { peer_timeout_ms, keepalive_ms, ..Default::default() };
            let mut dat = DAT_EP_ATTR::default();
            put(&attr, &mut dat);
            let mut back = EpAttr::default();
            let fields = add(&mut back, &dat, 6).unwrap();
            assert_eq!((back.peer_timeout_ms, back.keepalive_ms), (peer_timeout_ms, keepalive_ms));
            assert_eq!(fields, FIELDS[0].1 | FIELDS[1].1);
        }
    }

    #[test]
    fn other_names_and_values_are_refused() {
        for (name, value) in [("KDAPL_KEEPALIVE", "7000"), (KEEPALIVE, "-1"), (KEEPALIVE, "")] {
            let list = Named::new(&[(name, value)]);
            assert_eq!(add(&mut EpAttr::default(), &with(&list), 6), Err(Ret::argument(6)));
        }
    }

    #[test]
    fn a_name_alone_changes_its_own_attribute() {
        let list = Named::new(&[(KEEPALIVE, "7000")]);
        let mut attr = EpAttr { peer_timeout_ms: 3, ..Default::default() };
        assert_eq!(add(&mut attr, &with(&list), 3), Ok(FIELDS[1].1));
        assert_eq!((attr.peer_timeout_ms, attr.keepalive_ms), (3, 7000));
    }
}
