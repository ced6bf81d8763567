// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Makes the calls of a lane.

use super::errand::Errand;
use super::mapped::{Mapped, Window, Wish};
use super::memory::{self, Message};
use super::process::Process;
use super::ring;
use crate::abi::Action;
use crate::kinds::{Kind, Resource, SYSTEM};
use crate::program::{Step, Value, Way};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Fields that the kernel sets, and their resources.
const OUTPUTS: &[(&str, &str, Resource)] = &[
    ("IA_OPEN", "ia", Resource::Ia),
    ("IA_OPEN", "async_evd", Resource::Evd),
    ("LMR_CREATE", "lmr_context", Resource::Local),
    ("LMR_CREATE", "rmr_context", Resource::Remote),
    ("RMR_BIND", "rmr_context", Resource::Remote),
    // The destination of an RDMA read into an RMR.
    ("RMR_BIND", "rmr_context", Resource::Local),
    ("CNO_FD", "fd", Resource::Fd),
    ("EVD_FD", "fd", Resource::Fd),
    ("CR_QUERY", "local_ep", Resource::Ep),
];

/// Makes a call. The object that it creates goes to the step's slot.
pub fn make(process: &'static Process, step: &Step) {
    if step.fail != 0 {
        fail_nth(step.fail);
    }
    match step.call().action {
        Action::Ioctl(_) => ioctl(process, step),
        Action::System(index) => system(process, step, SYSTEM[index].0),
    }
    if step.fail != 0 {
        fail_nth(0);
    }
}

/// Lets the n-th allocation of this thread fail; 0: none.
fn fail_nth(n: u32) {
    let file = OpenOptions::new().write(true).open("/proc/thread-self/fail-nth");
    // Without fault injection in the kernel no allocation fails.
    let _ = file.and_then(|mut file| file.write_all(n.to_string().as_bytes()));
}

fn ioctl(process: &Process, step: &Step) {
    let Some(request) = memory::request_of(step) else { return };
    let slots = |resource, slot| process.shared.slot(resource, slot);
    let message = Message::new(step, &slots, process.shared.longest_wait());
    let fd = process.file(step.file);
    let failed = match step.way {
        // SAFETY: the kernel reads and writes the message, which is this thread's, and the area,
        // which contains no Rust object. The kernel must check the message: that is under test.
        Way::Ioctl => (unsafe { libc::ioctl(fd, request.into(), message.address) }) != 0,
        way => match ring::command(way, fd, request, message.address) {
            Some(result) => result < 0,
            // It goes on.
            None => return,
        },
    };
    let layout = &step.call().layout;
    let ret = layout.field("hdr.ret").map_or(0, |at| message.read(&layout.fields[at]));
    let how = if failed { 2 } else { usize::from(ret != 0) };
    process.shared.answered(step.call, how);
    if how == 0 {
        keep(process, step, &message);
    }
}

/// Stores the object that a call has created.
fn keep(process: &Process, step: &Step, message: &Message) {
    let call = step.call();
    let read = |path: &str| call.layout.field(path).map(|at| message.read(&call.layout.fields[at]));
    if call.name.ends_with("_CREATE") {
        let handle = call.layout.field("handle").map(|at| &call.layout.fields[at]);
        if let Some((field, Kind::Slot(resource))) = handle.map(|field| (field, field.kind)) {
            process.shared.set_slot(resource, step.out, message.read(field));
        }
    }
    for (_, path, resource) in OUTPUTS.iter().filter(|output| output.0 == call.name) {
        if let Some(value) = read(path) {
            process.shared.set_slot(*resource, step.out, value);
        }
    }
    let taken = read("taken").unwrap_or(0);
    for (request, slot) in message.requests(read("events"), taken).zip(step.out..) {
        process.shared.set_slot(Resource::Cr, slot, request);
    }
}

/// Returns a number among the arguments.
fn argument(process: &Process, step: &Step, path: &str) -> u64 {
    match crate::program::value_of(&step.call().layout, &step.fields, path) {
        Some(Value::Number(number)) => *number,
        Some(Value::Slot(resource, slot)) => process.shared.slot(*resource, *slot),
        _ => 0,
    }
}

fn system(process: &'static Process, step: &Step, name: &str) {
    let argument = |path| argument(process, step, path);
    let range = || memory::inside(argument("address"), argument("length"));
    match name {
        "OPEN" => process.open(step.file),
        "CLOSE" => process.close(step.file),
        "SEND_FILE" => process.send(step.file),
        "TAKE_FILE" => process.take(step.file),
        "FORK" => process.fork(),
        "START" => process.start(argument("lane") as u8),
        "KILL" => kill(process),
        // SAFETY: ends the process at once, as intended.
        "EXIT" => unsafe { libc::_exit(0) },
        "REPLUG" => Errand::Replug.ask(process.shared),
        "LIMIT" => Errand::Limit(argument("which"), argument("value")).ask(process.shared),
        "SLEEP" => std::thread::sleep(Duration::from_nanos(argument("timeout_ns").min(20_000_000))),
        "EVENTFD" => {
            // SAFETY: creates a descriptor.
            let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
            process.shared.set_slot(Resource::Fd, step.out, fd as u64);
        }
        "FD_CLOSE" => close_fd(argument("fd") as i32),
        "FD_POLL" => poll(argument("fd") as i32, argument("timeout_ns")),
        "FD_READ" => read_records(argument("fd") as i32, range()),
        "FD_WRITE" => write_word(argument("fd") as i32, argument("pointer")),
        "POLL" => poll(process.file(step.file), argument("timeout_ns")),
        "READ" => read(process.file(step.file)),
        "MAP_EVENTS" => map_area(process, step, false),
        "MAP_POSTS" => map_area(process, step, true),
        "UNMAP_EVENTS" | "TAKE_EVENTS" | "SCRIBBLE" | "MAP_DTO" => {
            if let Some(window) = Window::at(argument("map")) {
                use_events(process, step, name, window);
            }
        }
        "RING_BUFFERS" => ring::provide(argument("address"), argument("length")),
        "RING_REAP" => ring::reap(),
        "RING_CLOSE" => ring::close(),
        _ => {
            if let Some((address, length)) = range() {
                change_memory(name, address, length, argument("write"));
            }
        }
    }
}

fn map_area(process: &Process, step: &Step, is_ep: bool) {
    let argument = |path| argument(process, step, path);
    let wish = Wish {
        is_ep,
        object: argument(if is_ep { "ep" } else { "evd" }),
        area: argument("area") & 3,
        pages: argument("pages") & 3,
        protection: (argument("protection") & 7) as i32,
        private: argument("private") & 1 != 0,
    };
    let window = Window::number(step.out);
    window.map(process.file(step.file), &wish);
    process.shared.set_slot(Resource::Map, step.out, window.address());
}

fn use_events(process: &Process, step: &Step, name: &str, window: Window) {
    let argument = |path| argument(process, step, path);
    match name {
        "UNMAP_EVENTS" => window.unmap(argument("first"), argument("pages")),
        "SCRIBBLE" => window.scribble(argument("from"), argument("value"), argument("times")),
        "MAP_DTO" => {
            let dto = Mapped {
                kind: ["operation", "flags"].map(argument),
                local: ["address", "length", "context"].map(argument),
                remote: ["remote_address", "remote_length", "remote_context"].map(argument),
            };
            window.map_dto(&dto, argument("count"));
        }
        _ => {
            for (request, slot) in window.take(argument("count")).into_iter().zip(step.out..) {
                process.shared.set_slot(Resource::Cr, slot, request);
            }
        }
    }
}

fn kill(process: &Process) {
    let pid = process.shared.pids[1 - process.number].load(Relaxed);
    if pid > 1 {
        // SAFETY: the number of a process of this run, or of none.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// Lower descriptors belong to the runner.
fn close_fd(fd: i32) {
    if fd > 2 {
        // SAFETY: no Rust object owns a descriptor of a slot.
        unsafe { libc::close(fd) };
    }
}

fn poll(fd: i32, nanoseconds: u64) {
    let mut polled = libc::pollfd { fd, events: libc::POLLIN | libc::POLLOUT, revents: 0 };
    let most = (nanoseconds / 1_000_000).min(20) as i32;
    // SAFETY: one entry, which is ours.
    unsafe { libc::poll(&mut polled, 1, most) };
}

fn read(fd: i32) {
    let mut bytes = [0u8; 64];
    // SAFETY: the buffer has this length.
    unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
}

/// Reads without sleeping: to the area, or else to memory of its own.
fn read_records(fd: i32, range: Option<(u64, u64)>) {
    let mut bytes = [0_u8; 256];
    let (start, length) = match range {
        Some((address, length)) => (address as *mut libc::c_void, length as usize),
        None => (bytes.as_mut_ptr().cast(), bytes.len()),
    };
    // Two pieces, whose border is in the middle of a record.
    let first = length / 2 + 3;
    let pieces = [(0, first.min(length)), (first.min(length), length)].map(|(from, to)| {
        libc::iovec { iov_base: start.wrapping_byte_add(from), iov_len: to - from }
    });
    // SAFETY: the memory is `bytes`, or lies in the area, which contains no Rust object.
    unsafe { libc::preadv2(fd, pieces.as_ptr(), 2, -1, libc::RWF_NOWAIT) };
}

/// Writes a word without sleeping.
fn write_word(fd: i32, word: u64) {
    let piece = libc::iovec { iov_base: (&raw const word).cast_mut().cast(), iov_len: 8 };
    // SAFETY: the kernel only reads the word.
    unsafe { libc::pwritev2(fd, &piece, 1, -1, libc::RWF_NOWAIT) };
}

/// Changes the memory of the area.
fn change_memory(name: &str, address: u64, length: u64, write: u64) {
    let (at, length) = (address as *mut libc::c_void, length as usize);
    let prot = if write == 0 { libc::PROT_READ } else { libc::PROT_READ | libc::PROT_WRITE };
    // SAFETY: `inside()` has limited the range to the area, which contains no Rust object.
    unsafe {
        match name {
            "MAP" => memory::map_at(address, length as u64),
            "UNMAP" => drop(libc::munmap(at, length)),
            "DISCARD" => drop(libc::madvise(at, length, libc::MADV_DONTNEED)),
            "PROTECT" => drop(libc::mprotect(at, length, prot)),
            // The kernel writes here: a missing page is an error instead of a signal.
            "TOUCH" => drop(libc::getrandom(at, length.min(4096), 0)),
            _ => {}
        }
    }
}
