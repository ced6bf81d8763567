// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The memory of a program: an area to register and unmap, and the bytes of each message.

use super::mapped::{WINDOWS, WINDOWS_BYTES};
use crate::abi::{Abi, Action, Field, Layout};
use crate::kinds::{Kind, Resource};
use crate::program::{value_of, Fields, Step, Value, Way};
use crate::text::pointed_at;
use std::cell::Cell;

/// Address of the area.
pub const AREA: u64 = 0x2000_0000;
/// Length of the area.
pub const AREA_BYTES: u64 = 64 * 4096;
/// Address of the messages of the first lane. Those of the others follow.
const SCRATCH: u64 = 0x3000_0000;
/// Bytes for the messages of each lane.
const SCRATCH_BYTES: u64 = 16 * 4096;
/// Address of the messages of commands, which stay in use while a command waits.
const COMMANDS: u64 = 0x3800_0000;
/// Bytes for the message of a command, and number of such messages of a lane.
const COMMAND_BYTES: u64 = 4 * 4096;
const LANE_COMMANDS: u64 = 16;

/// Maps memory for area and messages.
pub fn map() {
    map_at(AREA, AREA_BYTES);
    let lanes = u64::from(crate::program::LANES);
    map_at(SCRATCH, SCRATCH_BYTES * lanes);
    map_at(COMMANDS, COMMAND_BYTES * LANE_COMMANDS * lanes);
    map_at(WINDOWS, WINDOWS_BYTES);
}

/// Returns the memory for the message of a step: address and length.
fn place_of(step: &Step) -> (u64, u64) {
    thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    let lane = u64::from(step.lane);
    if step.way == Way::Ioctl {
        return (SCRATCH + SCRATCH_BYTES * lane, SCRATCH_BYTES);
    }
    let number = NEXT.get();
    NEXT.set((number + 1) % LANE_COMMANDS);
    (COMMANDS + COMMAND_BYTES * (LANE_COMMANDS * lane + number), COMMAND_BYTES)
}

/// Maps new, zeroed memory at an address, and replaces earlier mappings.
pub fn map_at(address: u64, length: u64) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: no other object of this process lies at these low addresses; see `inside()`.
    unsafe { libc::mmap(address as *mut _, length as usize, prot, flags, -1, 0) };
}

/// Returns the part of a range in the area. All other memory belongs to the runner.
#[must_use]
pub fn inside(address: u64, length: u64) -> Option<(u64, u64)> {
    let start = (address & !4095).max(AREA);
    let end = address.saturating_add(length).min(AREA + AREA_BYTES);
    (start < end).then(|| (start, end - start))
}

/// The message of a step, in memory that the kernel reads.
pub struct Message {
    /// Its address.
    pub address: u64,
    /// Size of the message and of the data that it points to.
    size: u64,
}

impl Message {
    /// Writes the message of a step and the data that it points to into the lane's memory. Limits
    /// its time-out to `longest` nanoseconds, unless it is endless.
    pub fn new(step: &Step, slots: &dyn Fn(Resource, u8) -> u64, longest: u64) -> Self {
        let (address, room) = place_of(step);
        let mut writer = Writer { base: address, bytes: Vec::new(), slots };
        writer.message(&step.call().layout, &step.fields);
        writer.wait(step, longest);
        writer.bytes.truncate(room as usize);
        // SAFETY: `map()` mapped this memory, no step unmaps it, and it belongs to this thread.
        unsafe {
            std::ptr::write_bytes(address as *mut u8, 0, 8192);
            let bytes = &writer.bytes;
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
        }
        Self { address, size: writer.bytes.len() as u64 }
    }

    /// Reads a field that the kernel may have written.
    #[must_use]
    pub fn read(&self, field: &Field) -> u64 {
        self.read_at(self.address + field.offset as u64, field.size).unwrap_or_default()
    }

    /// Reads a number in the message or in the data that it points to.
    fn read_at(&self, at: u64, size: usize) -> Option<u64> {
        let size = size.min(8);
        let offset = at.checked_sub(self.address)?;
        if offset.checked_add(size as u64)? > self.size {
            return None;
        }
        let mut bytes = [0; 8];
        // SAFETY: the number lies in the written bytes, which are mapped.
        unsafe { std::ptr::copy_nonoverlapping(at as *const u8, bytes.as_mut_ptr(), size) };
        Some(u64::from_le_bytes(bytes))
    }

    /// Returns the connection requests among the dequeued events.
    pub fn requests(&self, events: Option<u64>, taken: u64) -> impl Iterator<Item = u64> + '_ {
        let event = Abi::get().element("kdapl_event");
        let member = move |at: u64, path: &str| {
            let layout = event?;
            let field = &layout.fields[layout.field(path)?];
            self.read_at(at.checked_add(field.offset as u64)?, field.size)
        };
        let request = Abi::get().constant("KDAPL_EVENT_CONNECTION_REQUEST");
        let start = events.unwrap_or(0);
        let size = event.map_or(0, |layout| layout.size as u64);
        (0..taken.min(64)).filter_map(move |n| {
            let at = start.checked_add(n * size)?;
            (member(at, "number")? == request).then(|| member(at, "object"))?
        })
    }
}

/// Returns the number of an ioctl with the size that its message claims.
#[must_use]
pub fn request_of(step: &Step) -> Option<u32> {
    let Action::Ioctl(request) = step.call().action else { return None };
    let layout = &step.call().layout;
    Some(match value_of(layout, &step.fields, "hdr.size") {
        Some(Value::Number(size)) => (request & !(0x3fff << 16)) | ((*size as u32 & 0x3fff) << 16),
        _ => request,
    })
}

/// Collects bytes for the address `base`.
struct Writer<'a> {
    base: u64,
    bytes: Vec<u8>,
    slots: &'a dyn Fn(Resource, u8) -> u64,
}

impl Writer<'_> {
    /// Reserves room for a struct. Returns its offset.
    fn reserve(&mut self, size: usize) -> usize {
        let at = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(at + size, 0);
        at
    }

    /// Limits a time-out. An absolute one counts from now.
    fn wait(&mut self, step: &Step, longest: u64) {
        let layout = &step.call().layout;
        let Some(field) = layout.field("timeout_ns").map(|at| &layout.fields[at]) else { return };
        let Some(Value::Number(asked)) = value_of(layout, &step.fields, "timeout_ns") else {
            return;
        };
        let absolute =
            matches!(value_of(layout, &step.fields, "hdr.flags"), Some(Value::Number(1)));
        if *asked < FOR_EVER {
            let duration = (*asked).min(longest);
            self.number(field.offset, field, if absolute { now() + duration } else { duration });
        }
    }

    fn message(&mut self, layout: &Layout, fields: &Fields) {
        let at = self.reserve(layout.size);
        self.fields(at, layout, fields);
    }

    fn fields(&mut self, at: usize, layout: &Layout, fields: &Fields) {
        for (index, field) in layout.fields.iter().enumerate() {
            let value = fields.iter().find(|(known, _)| *known == index).map(|(_, value)| value);
            let place = at + field.offset;
            match value {
                Some(value) => self.value(place, field, value),
                None => self.number(place, field, default(layout, fields, field)),
            }
        }
    }

    fn number(&mut self, at: usize, field: &Field, number: u64) {
        let size = field.size.min(8);
        self.bytes[at..at + size].copy_from_slice(&number.to_le_bytes()[..size]);
    }

    fn value(&mut self, at: usize, field: &Field, value: &Value) {
        match value {
            Value::Number(number) => self.number(at, field, *number),
            Value::Slot(resource, slot) => {
                let number = (self.slots)(*resource, *slot);
                self.number(at, field, number);
            }
            Value::Address(which, port) => self.copy(at, field, &address(*which, *port)),
            Value::Text(bytes) => self.copy(at, field, bytes),
            Value::Bytes(bytes) => {
                let to = self.reserve(bytes.len());
                self.bytes[to..to + bytes.len()].copy_from_slice(bytes);
                self.number(at, field, self.base + to as u64);
            }
            Value::Structs(structs) => {
                let Some(layout) = pointed_at(field.kind) else { return };
                let to = self.reserve(layout.size * structs.len());
                self.number(at, field, self.base + to as u64);
                for (count, fields) in structs.iter().enumerate() {
                    self.fields(to + count * layout.size, layout, fields);
                }
            }
        }
    }

    fn copy(&mut self, at: usize, field: &Field, bytes: &[u8]) {
        let size = field.size.min(bytes.len());
        self.bytes[at..at + size].copy_from_slice(&bytes[..size]);
    }
}

/// `KDAPL_TIMEOUT_INFINITE`.
const FOR_EVER: u64 = i64::MAX as u64;

/// Returns the nanoseconds of CLOCK_MONOTONIC.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the valid default of a field.
fn default(layout: &Layout, fields: &Fields, field: &Field) -> u64 {
    match field.kind {
        Kind::Size => layout.size as u64,
        Kind::Version => Abi::get().constant("KDAPL_ABI_VERSION"),
        Kind::Slot(Resource::Fd) => u64::MAX,
        Kind::ElementSize(name) => Abi::get().element(name).map_or(0, |layout| layout.size as u64),
        Kind::Count(name) => {
            let prefix = field.path.rfind('.').map_or("", |dot| &field.path[..=dot]);
            let pointer = format!("{prefix}{name}");
            match value_of(layout, fields, &pointer) {
                Some(Value::Bytes(bytes)) => bytes.len() as u64,
                Some(Value::Structs(structs)) => structs.len() as u64,
                _ => 0,
            }
        }
        _ => 0,
    }
}

/// Returns one of several addresses; 1 is the device's.
fn address(which: u8, port: u16) -> Vec<u8> {
    let v4 = |ip: [u8; 4]| {
        let mut bytes = (libc::AF_INET as u16).to_le_bytes().to_vec();
        bytes.extend(port.to_be_bytes());
        bytes.extend(ip);
        bytes
    };
    let v6 = |ip: [u16; 8]| {
        let mut bytes = (libc::AF_INET6 as u16).to_le_bytes().to_vec();
        bytes.extend(port.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(ip.iter().flat_map(|part| part.to_be_bytes()));
        bytes
    };
    match which {
        0 => Vec::new(),
        1 => v4(crate::host::ADDRESS.octets()),
        2 => v4([10, 9, 0, 77]),
        3 => v4([127, 0, 0, 1]),
        4 => v6([0, 0, 0, 0, 0, 0, 0, 1]),
        5 => v6([0xfd09, 0, 0, 0, 0, 0, 0, 1]),
        6 => v6([0, 0, 0, 0, 0, 0xffff, 0x0a09, 1]),
        7 => v6([0xfd09, 6, 0, 0, 0, 0, 0, 1]),
        _ => [0x34, 0x12].into_iter().chain([0xff; 26]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{inside, AREA, AREA_BYTES};

    #[test]
    fn a_step_reaches_no_memory_outside_of_the_area() {
        assert_eq!(inside(0, u64::MAX), Some((AREA, AREA_BYTES)));
        assert_eq!(inside(AREA + 5, 10), Some((AREA, 15)));
        assert_eq!(inside(AREA + AREA_BYTES, 10), None);
        assert_eq!(inside(u64::MAX - 5, 100), None);
    }
}
