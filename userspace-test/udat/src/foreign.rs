// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory of the program: pointers that calls read and write through, and memory whose address the
//! program is given.
//!
//! A C program that makes a call guarantees that each pointer that is not null refers to the type
//! in the call's prototype. Each `unsafe` block here relies on this guarantee, and on nothing else
//! unless it says so.
#![allow(unsafe_code)]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the callers are calls of a C library, whose pointers come from a C program"
)]

use crate::abi::{
    __va_list_tag, DAT_CONTEXT, DAT_EVD_HANDLE, DAT_EVENT, DAT_LMR_TRIPLET, DAT_NAMED_ATTR,
    DAT_OS_WAIT_PROXY_AGENT, DAT_REGION_DESCRIPTION, DAT_RMR_TRIPLET,
};
use crate::ret::{Result, Ret};
use libkdapl::{Buffer, Segment, Subtype, Type};
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_void, CStr, CString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::ptr::NonNull;

/// Refuses a null pointer; `argument` is its position in the call, counted from 1.
pub fn wanted<T>(pointer: *const T, argument: u16) -> Result<()> {
    if pointer.is_null() {
        return Err(Ret::argument(argument));
    }
    Ok(())
}

/// Writes a mandatory result.
pub fn put<T>(to: *mut T, argument: u16, value: T) -> Result<()> {
    wanted(to, argument)?;
    put_if(to, value);
    Ok(())
}

/// Writes an optional result.
pub fn put_if<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: By the program's guarantee, `to` is valid for writes until the call returns.
        unsafe { to.write(value) };
    }
}

/// Reads an argument that is passed by address.
pub fn get<T: Copy>(from: *const T, argument: u16) -> Result<T> {
    wanted(from, argument)?;
    // SAFETY: By the program's guarantee, `from` is valid for reads.
    Ok(unsafe { from.read() })
}

/// Like [`get`], but returns `None` for null.
pub fn get_if<T: Copy>(from: *const T) -> Option<T> {
    get(from, 1).ok()
}

// `with_segments` relies on `DAT_LMR_TRIPLET` and `Segment` having the same layout.
const _: () = assert!(
    size_of::<DAT_LMR_TRIPLET>() == size_of::<Segment>()
        && std::mem::offset_of!(DAT_LMR_TRIPLET, virtual_address)
            == std::mem::offset_of!(Segment, address)
        && std::mem::offset_of!(DAT_LMR_TRIPLET, segment_length)
            == std::mem::offset_of!(Segment, length)
        && std::mem::offset_of!(DAT_LMR_TRIPLET, lmr_context)
            == std::mem::offset_of!(Segment, context)
);

/// Calls `body` with the `count` segments at `from`.
pub fn with_segments<R>(
    from: *const DAT_LMR_TRIPLET,
    count: i32,
    arguments: (u16, u16),
    body: impl FnOnce(&[Segment]) -> Result<R>,
) -> Result<R> {
    let count = usize::try_from(count).map_err(|_| Ret::argument(arguments.0))?;
    if count == 0 {
        return body(&[]);
    }
    wanted(from, arguments.1)?;
    // SAFETY: By the program's guarantee, there are `count` triplets at `from`, which do not change
    // until the call returns. Their layout is that of `Segment`, as asserted above.
    body(unsafe { std::slice::from_raw_parts(from.cast(), count) })
}

/// Reads the segment of the peer's memory at `from`.
pub fn remote(from: *const DAT_RMR_TRIPLET, argument: u16) -> Result<Segment> {
    let triplet = get(from, argument)?;
    Ok(Segment {
        address: triplet.virtual_address,
        length: triplet.segment_length,
        context: triplet.rmr_context,
    })
}

/// Copies the `count` bytes at `from`.
pub fn bytes(from: *const c_void, count: i32, arguments: (u16, u16)) -> Result<Vec<u8>> {
    let count = usize::try_from(count).map_err(|_| Ret::argument(arguments.0))?;
    if count == 0 {
        return Ok(Vec::new());
    }
    wanted(from, arguments.1)?;
    // SAFETY: By the program's guarantee, there are `count` bytes at `from`.
    Ok(unsafe { std::slice::from_raw_parts(from.cast::<u8>(), count) }.to_vec())
}

/// Copies the string at `from`; `None` for null.
pub fn text(from: *const c_char) -> Option<String> {
    if from.is_null() {
        return None;
    }
    // SAFETY: By the program's guarantee, `from` is a NUL-terminated string.
    Some(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}

/// Reads the `count` named attributes at `from`.
pub fn named(
    from: *const DAT_NAMED_ATTR,
    count: i32,
    argument: u16,
) -> Result<Vec<(String, String)>> {
    let count = usize::try_from(count).map_err(|_| Ret::argument(argument))?;
    if count == 0 {
        return Ok(Vec::new());
    }
    wanted(from, argument)?;
    // SAFETY: By the program's guarantee, there are `count` attributes at `from`.
    let list = unsafe { std::slice::from_raw_parts(from, count) };
    let both = |attr: &DAT_NAMED_ATTR| text(attr.name).zip(text(attr.value));
    list.iter().map(|attr| both(attr).ok_or(Ret::argument(argument))).collect()
}

/// Reads the address at `from`, whose length depends on its family.
pub fn address(from: *const libc::sockaddr) -> Result<SocketAddr> {
    let malformed = Ret::new(Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_MALFORMED);
    if from.is_null() {
        return Err(malformed);
    }
    // SAFETY: By the program's guarantee, there is an address at `from`. Every address begins with
    // its family.
    match i32::from(unsafe { std::ptr::addr_of!((*from).sa_family).read_unaligned() }) {
        libc::AF_INET => {
            // SAFETY: As above; this family has the length of `sockaddr_in`.
            let v4 = unsafe { from.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Ok((ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: As above; this family has the length of `sockaddr_in6`.
            let v6 = unsafe { from.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = IpAddr::from(Ipv6Addr::from(v6.sin6_addr.s6_addr));
            let IpAddr::V6(ip) = ip else { return Err(malformed) };
            let port = u16::from_be(v6.sin6_port);
            Ok(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => Err(malformed),
    }
}

/// Returns a context or a cookie, which the program uses as an address or as a number.
pub fn word(context: DAT_CONTEXT) -> u64 {
    // SAFETY: All members of the union have 64 bits, and every bit pattern is a number.
    unsafe { context.as_64 }
}

/// Description of a region by the program.
pub struct Description(DAT_REGION_DESCRIPTION);

// SAFETY: The addresses in it are never dereferenced here.
unsafe impl Send for Description {}
// SAFETY: As above.
unsafe impl Sync for Description {}

impl Description {
    pub fn new(description: DAT_REGION_DESCRIPTION) -> Self {
        Self(description)
    }

    /// Returns the description.
    pub fn get(&self) -> DAT_REGION_DESCRIPTION {
        self.0
    }

    /// Returns the address of the memory, or the handle of the LMR.
    pub fn address(&self) -> *mut c_void {
        // SAFETY: All members of the union begin with an address, and every bit pattern is one.
        unsafe { self.0.for_va }
    }
}

/// Returns the pointer in a software event, as a number.
pub fn software_pointer(event: &DAT_EVENT) -> u64 {
    // SAFETY: All members of the union are plain data, and every bit pattern is an address.
    unsafe { event.event_data.software_event_data.pointer as u64 }
}

/// Calls a proxy agent of the program.
pub fn call_agent(agent: &DAT_OS_WAIT_PROXY_AGENT, evd: DAT_EVD_HANDLE) {
    if let Some(function) = agent.proxy_agent_func {
        // SAFETY: By the program's guarantee, the function may be called with this argument from
        // any thread.
        unsafe { function(agent.instance_data, evd) };
    }
}

/// Wraps `length` bytes of the program at `start`, to be registered.
pub fn region(start: *mut c_void, length: usize) -> Result<Buffer> {
    let malformed = Ret::new(Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_MALFORMED);
    let start = NonNull::new(start.cast()).ok_or(malformed)?;
    // SAFETY: The provider only registers the buffer and never accesses its bytes. The program is
    // responsible for accesses by the device to memory that it registers.
    Ok(unsafe { Buffer::borrowed(start, length) })
}

/// Memory whose address the program is given, and to which it may write.
#[derive(Debug, Default)]
pub struct Lent<T>(Box<UnsafeCell<T>>);

// SAFETY: Only `set` writes to the memory, through a raw pointer, and there is never a reference to
// it. The program reads it; DAT forbids that during a call that changes it.
unsafe impl<T: Send> Send for Lent<T> {}
// SAFETY: As above.
unsafe impl<T: Send> Sync for Lent<T> {}

impl<T> Lent<T> {
    pub fn new(value: T) -> Self {
        Self(Box::new(UnsafeCell::new(value)))
    }

    /// Returns the address, valid as long as this value.
    pub fn address(&self) -> *mut T {
        self.0.get()
    }

    pub fn set(&self, value: T) {
        // SAFETY: The memory belongs to this value and has type `T`. For concurrent accesses see
        // the argument for `Send`.
        unsafe { self.0.get().write(value) };
    }
}

/// Named attributes, in DAT's form.
#[derive(Debug)]
pub struct Named {
    list: Box<[DAT_NAMED_ATTR]>,
    _texts: Vec<CString>,
}

// SAFETY: The pointers refer to the strings in `_texts`, which are never modified.
unsafe impl Send for Named {}
// SAFETY: As above.
unsafe impl Sync for Named {}

impl Named {
    /// Makes the list from names and values. Removes NULs from both.
    pub fn new(attributes: &[(&str, &str)]) -> Self {
        let mut texts = Vec::new();
        let mut keep = |text: &str| {
            let text = CString::new(text.replace('\0', "")).unwrap_or_default();
            let address = text.as_ptr();
            texts.push(text);
            address
        };
        let list = attributes
            .iter()
            .map(|(name, value)| DAT_NAMED_ATTR { name: keep(name), value: keep(value) })
            .collect();
        Self { list, _texts: texts }
    }

    pub fn count(&self) -> i32 {
        self.list.len() as i32
    }

    pub fn address(&self) -> *mut DAT_NAMED_ATTR {
        self.list.as_ptr().cast_mut()
    }
}

/// Copies `text` to one of DAT's name fields, truncated if necessary, with a NUL.
pub fn name_field<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (to, from) in field.iter_mut().zip(text.bytes().take(N - 1)) {
        *to = from as c_char;
    }
    field
}

/// Arguments of a C call after the named ones: integers and pointers.
pub trait Arguments {
    /// Returns the next argument. The upper half of a narrower one is undefined.
    fn next(&mut self) -> u64;

    /// Returns the next argument as a pointer.
    fn pointer<T>(&mut self) -> *mut T {
        self.next() as usize as *mut T
    }
}

/// Variable argument list of a C call, in the x86-64 ABI.
pub struct VaList(NonNull<__va_list_tag>);

impl VaList {
    /// Wraps a list that `va_start` of the C library has initialised.
    pub fn new(list: *mut __va_list_tag) -> Result<Self> {
        NonNull::new(list).map(Self).ok_or(Ret::argument(3))
    }
}

impl Arguments for VaList {
    fn next(&mut self) -> u64 {
        // SAFETY: By the program's guarantee, `va_start` has initialised the list, and only this
        // call uses it.
        let list = unsafe { self.0.as_mut() };
        let word = if list.gp_offset <= 40 {
            let word = list.reg_save_area.wrapping_byte_add(list.gp_offset as usize);
            list.gp_offset += 8;
            word
        } else {
            let word = list.overflow_arg_area;
            list.overflow_arg_area = word.wrapping_byte_add(8);
            word
        };
        // SAFETY: The register save area holds the six argument registers, the overflow area holds
        // the arguments after them. The caller of this function takes no more arguments than the
        // operation's prototype has.
        unsafe { word.cast::<u64>().read() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_from_the_registers_and_then_from_the_stack() {
        let mut saved: Vec<u64> = (0..6).map(|n| n + 100).collect();
        let mut stack: Vec<u64> = (6..9).map(|n| n + 100).collect();
        // The first two registers held handle and operation.
        let mut list = __va_list_tag {
            gp_offset: 16,
            fp_offset: 48,
            overflow_arg_area: stack.as_mut_ptr().cast(),
            reg_save_area: saved.as_mut_ptr().cast(),
        };
        let mut arguments = VaList::new(&mut list).unwrap();
        let taken: Vec<u64> = (0..7).map(|_| arguments.next()).collect();
        assert_eq!(taken, [102, 103, 104, 105, 106, 107, 108]);
    }

    #[test]
    fn addresses_of_both_families_are_read() {
        let v4 = libc::sockaddr_in {
            sin_family: libc::AF_INET as u16,
            sin_port: 0x1234u16.to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from(Ipv4Addr::new(10, 7, 0, 1)).to_be() },
            sin_zero: [0; 8],
        };
        assert_eq!(address(std::ptr::from_ref(&v4).cast()), Ok("10.7.0.1:4660".parse().unwrap()));
        let mut other = v4;
        other.sin_family = 77;
        assert_eq!(address(std::ptr::from_ref(&other).cast()), Err(Ret(0x8012_0063)));
        assert_eq!(address(std::ptr::null()), Err(Ret(0x8012_0063)));
    }

    #[test]
    fn names_end_with_a_nul_however_long_they_are() {
        let field: [c_char; 4] = name_field("kdapl0");
        assert_eq!(field.map(|c| c as u8), *b"kda\0");
    }

    #[test]
    fn null_pointers_are_refused_with_their_argument() {
        assert_eq!(put(std::ptr::null_mut(), 2, 5u32), Err(Ret::argument(2)));
        assert_eq!(bytes(std::ptr::null(), 3, (4, 5)), Err(Ret::argument(5)));
        assert_eq!(bytes(std::ptr::null(), -1, (4, 5)), Err(Ret::argument(4)));
        assert_eq!(bytes(std::ptr::null(), 0, (4, 5)), Ok(vec![]));
    }
}
