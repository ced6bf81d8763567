// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Reads the calls and their messages from the ioctl header itself.
//!
//! Fields of nested structs are flattened: `attr.max_recv_dtos` is a field of `struct
//! kdapl_ep_create`. The name of a field decides its use, in [`kinds`](crate::kinds). So a change
//! of the header needs at most a line there.

use crate::kinds::{self, Kind};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Joins the header of all requests with the headers that it includes.
macro_rules! header {
    ($($part:literal)+) => {
        concat!(
            $(include_str!(concat!("../../../../include/uapi/rdma/kdapl/", $part, ".h")),)+
            include_str!("../../../../include/uapi/rdma/kdapl.h")
        )
    };
}

const HEADER: &str = header! {
    "common" "device" "ia" "event" "evd" "mapped_events" "cno" "ep" "connect" "dto" "mapped_posts"
    "service" "cr" "lmr" "rmr" "srq" "uring"
};

/// A number, address or byte array in a message.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name, with the names of the structs around it.
    pub path: String,
    /// Offset in the message in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Use of the field.
    pub kind: Kind,
}

/// A struct of the header.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Size in bytes.
    pub size: usize,
    /// Fields in order.
    pub fields: Vec<Field>,
}

impl Layout {
    /// Returns the index of a field.
    #[must_use]
    pub fn field(&self, path: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.path == path)
    }
}

/// The action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The ioctl with this number.
    Ioctl(u32),
    /// Another action, an index of [`kinds::SYSTEM`].
    System(usize),
}

/// A call and its arguments.
#[derive(Clone, Debug)]
pub struct Call {
    /// Name in the header, without `KDAPL_`.
    pub name: String,
    /// The action.
    pub action: Action,
    /// The arguments.
    pub layout: Layout,
}

/// All calls and types of programs.
#[derive(Debug)]
pub struct Abi {
    /// All calls, beginning with those of the header.
    pub calls: Vec<Call>,
    /// Structs that messages point to.
    pub structs: HashMap<String, Layout>,
    /// Constants of the header.
    pub constants: HashMap<String, u64>,
}

impl Abi {
    /// Returns the only instance.
    pub fn get() -> &'static Self {
        static ABI: OnceLock<Abi> = OnceLock::new();
        ABI.get_or_init(|| parse(HEADER))
    }

    /// Returns the index of a call.
    #[must_use]
    pub fn call(&self, name: &str) -> Option<usize> {
        self.calls.iter().position(|call| call.name == name)
    }

    /// Returns the struct that a pointer points to, or `None` if it points to bytes.
    #[must_use]
    pub fn element(&self, name: &str) -> Option<&Layout> {
        self.structs.get(name)
    }

    /// Returns a constant of the header.
    #[must_use]
    pub fn constant(&self, name: &str) -> u64 {
        self.constants.get(name).copied().unwrap_or_default()
    }
}

/// A declaration in a struct: type, name, number of array elements.
type Declaration = (String, String, Option<usize>);

fn parse(header: &str) -> Abi {
    let text = without_comments(header);
    let constants = constants_of(&text);
    let raw = structs_of(&text, &constants);
    let mut calls: Vec<Call> = text.lines().filter_map(|line| ioctl_of(line, &raw)).collect();
    for (index, (name, arguments)) in kinds::SYSTEM.iter().enumerate() {
        let fields = arguments.iter().enumerate().map(|(at, (path, kind))| Field {
            path: (*path).to_string(),
            offset: at * 8,
            size: 8,
            kind: *kind,
        });
        let layout = Layout { size: arguments.len() * 8, fields: fields.collect() };
        calls.push(Call { name: (*name).to_string(), action: Action::System(index), layout });
    }
    let structs = raw.keys().map(|name| (name.clone(), layout_of(name, name, &raw))).collect();
    Abi { calls, structs, constants }
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        out.push_str(&rest[..start]);
        let end = rest[start..].find("*/").map_or(rest.len(), |end| start + end + 2);
        rest = &rest[end..];
    }
    out.push_str(rest);
    out.replace("\\\n", " ")
}

fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

fn constants_of(text: &str) -> HashMap<String, u64> {
    let mut constants = HashMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("#define") {
            continue;
        }
        if let (Some(name), Some(value)) = (words.next(), words.next().and_then(number)) {
            constants.insert(name.to_string(), value);
        }
    }
    constants
}

fn structs_of(text: &str, constants: &HashMap<String, u64>) -> HashMap<String, Vec<Declaration>> {
    let mut structs = HashMap::new();
    for part in text.split("\nstruct ").skip(1) {
        let Some((name, rest)) = part.split_once('{') else { continue };
        let body = rest.split('}').next().unwrap_or_default();
        let fields = body.split(';').filter_map(|line| declaration(line, constants)).collect();
        structs.insert(name.trim().to_string(), fields);
    }
    structs
}

fn declaration(line: &str, constants: &HashMap<String, u64>) -> Option<Declaration> {
    let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "struct").collect();
    let [kind, name] = words[..] else { return None };
    let Some((name, count)) = name.split_once('[') else {
        return Some((kind.to_string(), name.to_string(), None));
    };
    let count = count.trim_end_matches(']');
    let count = number(count).or_else(|| constants.get(count).copied())?;
    Some((kind.to_string(), name.to_string(), Some(count as usize)))
}

fn ioctl_of(line: &str, raw: &HashMap<String, Vec<Declaration>>) -> Option<Call> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["#define", name, macro_call, number_text, "struct", message] = words[..] else {
        return None;
    };
    let direction = match macro_call {
        "_IOWR(KDAPL_IOC_MAGIC," => 3,
        "_IOW(KDAPL_IOC_MAGIC," => 1,
        "_IOR(KDAPL_IOC_MAGIC," => 2,
        _ => return None,
    };
    let name = name.strip_prefix("KDAPL_")?.to_string();
    let layout = layout_of(message.trim_end_matches(')'), &name, raw);
    let number = number(number_text.trim_end_matches(','))? as u32;
    let request = (direction << 30) | ((layout.size as u32) << 16) | (0xda << 8) | number;
    Some(Call { name, action: Action::Ioctl(request), layout })
}

/// Returns the layout of a struct, as C defines it.
fn layout_of(name: &str, call: &str, raw: &HashMap<String, Vec<Declaration>>) -> Layout {
    let mut fields = Vec::new();
    let (size, _) = place(name, call, "", 0, raw, &mut fields);
    Layout { size, fields }
}

/// Appends the fields of a struct at offset `base`. Returns its size and alignment.
fn place(
    name: &str,
    call: &str,
    prefix: &str,
    base: usize,
    raw: &HashMap<String, Vec<Declaration>>,
    fields: &mut Vec<Field>,
) -> (usize, usize) {
    let (mut at, mut alignment) = (0usize, 1);
    for (kind, field, count) in raw.get(name).into_iter().flatten() {
        let path = format!("{prefix}{field}");
        let (size, align) = match scalar(kind) {
            Some(size) => (size, size),
            None => place(kind, call, "", 0, raw, &mut Vec::new()),
        };
        at = at.next_multiple_of(align.max(1));
        let whole = size * count.unwrap_or(1);
        if scalar(kind).is_some() || kinds::whole(kind) {
            let kind = kinds::of(call, kind, &path, whole);
            fields.push(Field { path, offset: base + at, size: whole, kind });
        } else {
            place(kind, call, &format!("{path}."), base + at, raw, fields);
        }
        at += whole;
        alignment = alignment.max(align);
    }
    (at.next_multiple_of(alignment), alignment)
}

fn scalar(kind: &str) -> Option<usize> {
    Some(match kind {
        "__u8" | "__s8" => 1,
        "__u16" | "__s16" | "__be16" => 2,
        "__u32" | "__s32" | "__be32" => 4,
        "__u64" | "__s64" | "__be64" | "__aligned_u64" => 8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Abi, Action};

    /// Compares the layout of every call with that of C and bindgen.
    #[test]
    fn every_call_of_the_header_is_known_with_its_size() {
        let abi = Abi::get();
        let mut read: Vec<u32> = abi
            .calls
            .iter()
            .filter_map(|call| match call.action {
                Action::Ioctl(request) => Some(request),
                Action::System(_) => None,
            })
            .collect();
        use libkdapl::raw::call;
        let mut known: Vec<u32> = call::ALL.iter().map(|call| call.1).collect();
        // As ioctls, these two are refused.
        known.extend([call::URING_CANCEL.request(), call::URING_STREAM.request()]);
        read.sort_unstable();
        known.sort_unstable();
        assert_eq!(read, known);
    }

    #[test]
    fn fields_have_the_offsets_that_bindgen_sees() {
        use libkdapl::sys::*;
        use std::mem::offset_of;
        let abi = Abi::get();
        let at = |call: &str, path: &str| {
            let layout = &abi.calls[abi.call(call).unwrap()].layout;
            layout.fields[layout.field(path).unwrap()].offset
        };
        assert_eq!(at("EP_CREATE", "handle"), offset_of!(kdapl_ep_create, handle));
        assert_eq!(at("EP_CONNECT", "conn_qual"), offset_of!(kdapl_ep_connect, conn_qual));
        assert_eq!(
            at("EP_POST", "dto.remote.context"),
            offset_of!(kdapl_ep_post, dto.remote.context)
        );
        assert_eq!(at("EVD_WAIT", "events"), offset_of!(kdapl_evd_wait, events));
    }
}
