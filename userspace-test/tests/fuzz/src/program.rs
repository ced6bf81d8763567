// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A program: calls with their arguments, in lanes.
//!
//! ```text
//!   lane 0        the first thread; its START and FORK start the others, or its end does
//!   lanes 1 to 3  threads of the same process
//!   lanes 4, 5    threads of the other process, which FORK creates
//! ```

use crate::abi::{Abi, Call, Layout};
use crate::kinds::Resource;

/// Number of threads in both processes.
pub const LANES: u8 = 6;
/// The first lane of the second process.
pub const FORKED: u8 = 4;
/// Descriptors of `/dev/kdapl` in each process.
pub const FILES: u8 = 4;
/// Limits the steps of a program.
pub const STEPS: usize = 64;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number.
    Number(u64),
    /// An object that an earlier step created.
    Slot(Resource, u8),
    /// One of a few addresses, with a port.
    Address(u8, u16),
    /// Bytes in the field itself.
    Text(Vec<u8>),
    /// The address of bytes.
    Bytes(Vec<u8>),
    /// The address of structs.
    Structs(Vec<Fields>),
}

/// Fields with a value other than the default, by their index in the layout.
pub type Fields = Vec<(usize, Value)>;

/// The way in which an ioctl is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Way {
    /// By `ioctl(2)`.
    #[default]
    Ioctl,
    /// As a command of the lane's io_uring.
    Command,
    /// As a command that posts several completions, with provided buffers.
    Stream,
    /// As a command that a thread of io_uring executes.
    Worker,
    /// As a command on which the next one depends.
    Linked,
}

/// All ways, and their names in a program's text.
pub const WAYS: [(Way, &str); 5] = [
    (Way::Ioctl, "ioctl"),
    (Way::Command, "command"),
    (Way::Stream, "stream"),
    (Way::Worker, "worker"),
    (Way::Linked, "linked"),
];

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The thread that makes the call.
    pub lane: u8,
    /// The descriptor of the call.
    pub file: u8,
    /// Number of the allocation that fails in the call; 0: none.
    pub fail: u32,
    /// How the call is made, if it is an ioctl.
    pub way: Way,
    /// Index of the call.
    pub call: usize,
    /// Slot for the created object.
    pub out: u8,
    /// Its arguments.
    pub fields: Fields,
}

impl Step {
    /// Creates a call of the first thread on the first descriptor.
    #[must_use]
    pub fn new(call: usize) -> Self {
        Self { lane: 0, file: 0, fail: 0, way: Way::Ioctl, call, out: 0, fields: Vec::new() }
    }

    /// Returns the called function.
    #[must_use]
    pub fn call(&self) -> &'static Call {
        &Abi::get().calls[self.call]
    }
}

/// Returns the value of a field if it has one.
#[must_use]
pub fn value_of<'a>(layout: &Layout, fields: &'a Fields, path: &str) -> Option<&'a Value> {
    let index = layout.field(path)?;
    fields.iter().find(|(field, _)| *field == index).map(|(_, value)| value)
}

/// Calls in the order of the text. Each lane makes its own calls in that order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    /// The calls.
    pub steps: Vec<Step>,
}
