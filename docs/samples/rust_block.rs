// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A disk in memory, and its client: consumers of kDAPL in the kernel, in Rust. The client sends a
//! request that names its memory. The server moves the block by RDMA, and answers. `kdapl_block.c`
//! is the same in C, and either client works with either server. This tests a server at 10.7.0.1:
//!     insmod kdapl_rust_block.ko address=0x0a070002 port=7300 peer=0x0a070001
#![forbid(unsafe_code)]

use core::borrow::Borrow;
use core::net::{IpAddr, Ipv4Addr};
use kdat::{Access, Buffer, Completion, Connection, Cr, Dto, Ep, Evd, Event, Ia, Operation};
use kdat::{Psp, Pz, Remote, Streams};
use kernel::{prelude::*, str::CString};
use zerocopy_derive::{Immutable, KnownLayout};

module! {
    type: Block,
    name: "kdapl_rust_block",
    description: "kDAPL sample: a disk in memory and its client, in Rust",
    license: "Dual BSD/GPL",
    imports_ns: ["KDAPL"],
    params: {
        address: u32 { default: 0x0a070001, description: "IPv4 address of the RDMA device", },
        port: u32 { default: 7300, description: "connection qualifier to listen for", },
        peer: u32 { default: 0, description: "IPv4 address of a server to test, or 0", },
        peer_port: u32 { default: 7300, description: "its connection qualifier", },
    },
}

/// Value of a parameter, which Linux 7.2 borrows.
fn parameter(value: impl Borrow<u32>) -> u32 {
    *value.borrow()
}

const BLOCK: usize = 4096;
const BLOCKS: u32 = 16;
const MESSAGE: usize = size_of::<Request>();
const PATIENCE_US: u32 = 30_000_000;

/// Request of a client, which names its memory. The answer is an empty message.
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Request {
    is_write: u32,
    block: u32,
    memory: Remote,
}

/// Connection of the server, which has one request at a time.
struct Client {
    ep: Ep,
    messages: KVec<Buffer>,
    data: Option<Buffer>,
    at: usize,
}

impl Client {
    /// Starts to move the block of a request.
    fn begin(&mut self, message: &Buffer, disk: &[u8]) -> Option<()> {
        let request = Request::read_from_bytes(message).ok()?;
        let mut data = self.data.take()?;
        self.at = (request.block as usize).checked_mul(BLOCK)?;
        data.copy_from_slice(disk.get(self.at..)?.get(..BLOCK)?);
        let dto = match request.is_write {
            0 => Dto::write(data, BLOCK, request.memory),
            _ => Dto::read(data, BLOCK, request.memory),
        };
        self.ep.post(dto).ok()
    }

    /// Takes the next step of the request. `None` ends the connection.
    fn completed(&mut self, dto: Completion, disk: &mut [u8]) -> Option<()> {
        let buffer = dto.buffer?;
        match dto.operation {
            Operation::Receive => self.begin(&buffer, disk)?,
            Operation::Read => disk[self.at..self.at + BLOCK].copy_from_slice(&buffer),
            _ => {}
        }
        if let Operation::Receive | Operation::Send = dto.operation {
            return self.messages.push(buffer, GFP_KERNEL).ok();
        }
        self.data = Some(buffer);
        // The receive of the next request comes before the answer.
        self.ep.post(Dto::receive(self.messages.pop()?)).ok()?;
        self.ep.post(Dto::send(self.messages.pop()?, 0)).ok()
    }
}

/// All of the server: it consists of upcalls, one at a time, so that it needs no lock.
struct Server {
    pz: Pz,
    disk: KVVec<u8>,
    clients: KVec<Client>,
}

impl Server {
    fn accept(&mut self, evd: &Evd, request: Cr) -> kdat::Result {
        let ep = self.pz.create_ep(evd.into(), None)?;
        let (messages, data) = (self.pz.buffers(3, MESSAGE)?, self.pz.buffer(BLOCK)?);
        ep.post(Dto::receive(self.pz.buffer(MESSAGE)?))?;
        request.accept(&ep, &[])?;
        let client = Client {
            ep,
            messages,
            data: Some(data),
            at: 0,
        };
        Ok(self.clients.push(client, GFP_KERNEL)?)
    }

    fn handle(&mut self, evd: &Evd, event: Event) {
        match event {
            Event::Request(request) => {
                let _ = self
                    .accept(evd, request)
                    .inspect_err(|error| pr_warn!("{error}\n"));
            }
            Event::Dto(dto) if dto.is_success() => {
                let id = dto.ep;
                let client = self.clients.iter_mut().find(|client| client.ep.id() == id);
                let next = client.and_then(|client| client.completed(dto, &mut self.disk));
                if next.is_none() {
                    self.clients.retain(|client| client.ep.id() != id);
                }
            }
            Event::Connection(id, state) if state != Connection::Established => {
                self.clients.retain(|client| client.ep.id() != id);
            }
            _ => {}
        }
    }
}

/// Takes the buffer of the next completion.
fn next(evd: &Evd) -> Result<Buffer> {
    match evd.wait(Some(PATIENCE_US))? {
        Event::Dto(dto) if dto.is_success() => dto.buffer.ok_or(EIO),
        _ => Err(EIO),
    }
}

/// Client: writes all blocks of a server, and reads and compares them.
fn test_server(pz: &Pz, evd: &Evd, server: Ipv4Addr, port: u32) -> Result {
    let ep = pz.create_ep(evd.into(), None)?;
    ep.connect(&IpAddr::V4(server).into(), port.into(), PATIENCE_US, &[])?;
    let Event::Connection(_, Connection::Established) = evd.wait(Some(PATIENCE_US))? else {
        return Err(ENODEV);
    };
    let shared = pz.share(BLOCK, Access::ReadWrite)?;
    let (mut one, mut other) = (pz.buffer(MESSAGE)?, pz.buffer(MESSAGE)?);
    let mut bytes = KVVec::from_elem(0, BLOCK, GFP_KERNEL)?;
    for (is_write, block) in (0..2 * BLOCKS).map(|n| (1 - n / BLOCKS, n % BLOCKS)) {
        bytes.fill((is_write * (block + 1)) as u8);
        shared.write(0, &bytes)?;
        let request = Request {
            is_write,
            block,
            memory: shared.remote(),
        };
        one.copy_from_slice(request.as_bytes());
        ep.post(Dto::receive(other))?;
        ep.post(Dto::send(one, MESSAGE))?;
        (one, other) = (next(evd)?, next(evd)?);
        shared.read(0, &mut bytes)?;
        if bytes.iter().any(|byte| u32::from(*byte) != block + 1) {
            return Err(EIO);
        }
    }
    Ok(())
}

/// Fields are dropped in this order: the close of the adapter ends all upcalls.
struct Block {
    _ia: Ia,
    _psp: Psp,
}

impl kernel::Module for Block {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let [a, b, c, d] = module_parameters::address.value().to_be_bytes();
        let ia = Ia::open(&CString::try_from_fmt(fmt!("{a}.{b}.{c}.{d}"))?, 8)?;
        let streams = Streams::CR | Streams::CONNECTION | Streams::DTO;
        let (pz, evd) = (ia.create_pz()?, ia.create_evd(streams, 256)?);
        let disk = KVVec::from_elem(0, BLOCKS as usize * BLOCK, GFP_KERNEL)?;
        let mut server = Server {
            pz: pz.clone(),
            disk,
            clients: KVec::new(),
        };
        let its_evd = evd.clone();
        evd.set_handler(move |event| server.handle(&its_evd, event))?;
        let psp = ia.listen(parameter(module_parameters::port.value()).into(), &evd)?;
        let peer = parameter(module_parameters::peer.value());
        let peer_port = parameter(module_parameters::peer_port.value());
        if peer != 0 {
            let evd = ia.create_evd(streams, 64)?;
            test_server(&pz, &evd, peer.into(), peer_port)?;
        }
        Ok(Self { _ia: ia, _psp: psp })
    }
}
