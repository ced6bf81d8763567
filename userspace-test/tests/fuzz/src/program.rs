// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A program: calls with their arguments, spread over lanes.
//!
//! ```text
//!   lane 0        the first thread; starts the others when its START, FORK say so, or at its end
//!   lanes 1 to 3  threads of the same process
//!   lanes 4, 5    threads of the other process, which FORK makes
//! ```

use crate::abi::{Abi, Call, Layout};
use crate::kinds::Resource;

/// Threads, of both processes.
pub const LANES: u8 = 6;
/// The first lane of the second process.
pub const FORKED: u8 = 4;
/// Descriptors of `/dev/kdapl` in each process.
pub const FILES: u8 = 4;
/// Steps of a program at most.
pub const STEPS: usize = 64;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number.
    Number(u64),
    /// What an earlier step made.
    Slot(Resource, u8),
    /// One of a few addresses, with a port.
    Address(u8, u16),
    /// The field's own bytes.
    Text(Vec<u8>),
    /// The address of bytes.
    Bytes(Vec<u8>),
    /// The address of structs.
    Structs(Vec<Fields>),
}

/// Fields that are not as they would be by default, by their index in the layout.
pub type Fields = Vec<(usize, Value)>;

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Which thread makes it.
    pub lane: u8,
    /// Which descriptor it is made on.
    pub file: u8,
    /// The how many-th allocation fails in it; 0: none.
    pub fail: u32,
    /// Index of the call.
    pub call: usize,
    /// Where what it makes is kept.
    pub out: u8,
    /// Its arguments.
    pub fields: Fields,
}

impl Step {
    /// A call on the first descriptor by the first thread.
    #[must_use]
    pub fn new(call: usize) -> Self {
        Self { lane: 0, file: 0, fail: 0, call, out: 0, fields: Vec::new() }
    }

    /// What is called.
    #[must_use]
    pub fn call(&self) -> &'static Call {
        &Abi::get().calls[self.call]
    }
}

/// The value of a field, if it has one of its own.
#[must_use]
pub fn value_of<'a>(layout: &Layout, fields: &'a Fields, path: &str) -> Option<&'a Value> {
    let index = layout.field(path)?;
    fields.iter().find(|(field, _)| *field == index).map(|(_, value)| value)
}

/// Calls in the order of the text; each lane makes its own in that order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    /// The calls.
    pub steps: Vec<Step>,
}
