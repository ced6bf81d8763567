// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Closes and frees objects of the crate `kdat` while upcalls use them. The module is loaded for
//! one scenario, and refuses to load if that fails.
#![forbid(unsafe_code)]

use core::net::{
    IpAddr,
    Ipv4Addr, //
};
use kdat::{
    Buffer,
    Completion,
    Connection,
    Dto,
    Ep,
    Evd,
    Evds,
    Event,
    Handler,
    Ia,
    Operation,
    ParallelHandler,
    Psp,
    Pz,
    Refused,
    Streams, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

module! {
    type: Races,
    name: "kdapl_rust_races",
    description: "Races of the crate kdat",
    license: "Dual BSD/GPL",
    imports_ns: ["KDAPL"],
    params: {
        address: u32 { default: 0x0a070001, description: "IPv4 address of the RDMA device", },
        port: u32 { default: 7300, description: "connection qualifier to listen for", },
        scenario: u32 { default: 0, description: "number of the scenario", },
        rounds: u32 { default: 1, description: "number of repetitions", },
    },
}

const MESSAGE: usize = 512;
const DEPTH: usize = 8;
const PATIENCE_MS: i64 = 30_000;
const STREAMS: fn() -> Streams = || Streams::CR | Streams::CONNECTION | Streams::DTO;

/// Number of handlers that exist.
static HANDLERS: Atomic<i32> = Atomic::new(0);

/// Counts one handler.
struct Counted;

impl Counted {
    fn new() -> Self {
        HANDLERS.fetch_add(1, Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        HANDLERS.fetch_sub(1, Relaxed);
    }
}

/// Counts events, and fails on a buffer whose bytes another owner has changed.
struct Tally {
    messages: Atomic<i32>,
    wrong: Atomic<i32>,
}

impl Tally {
    /// Returns the buffer of a completion.
    fn take(&self, dto: Completion) -> Option<Buffer> {
        let buffer = dto.buffer.filter(|_| dto.status == 0)?;
        self.messages.fetch_add(1, Relaxed);
        if buffer.iter().any(|byte| *byte != buffer[0]) {
            self.wrong.fetch_add(1, Relaxed);
        }
        Some(buffer)
    }
}

/// Posts the DTO of a completion again. The connection may be over.
fn again(ep: &Ep, operation: Operation, mut buffer: Buffer) {
    let _ = if operation == Operation::Send {
        let byte = buffer[0].wrapping_add(1);
        buffer.fill(byte);
        ep.post(Dto::send(buffer, MESSAGE))
    } else {
        ep.post(Dto::receive(buffer))
    };
}

fn receives(pz: &Pz, ep: &Ep) -> kdat::Result {
    let mut list = KVec::new();
    for buffer in pz.buffers(2 * DEPTH, MESSAGE)? {
        list.push(Dto::receive(buffer), GFP_KERNEL)?;
    }
    ep.post_list(&mut list)
}

/// Server: each side sends, and receives.
struct Server {
    pz: Pz,
    evd: Evd,
    eps: KVec<Ep>,
    tally: Arc<Tally>,
    _counted: Counted,
}

impl Handler for Server {
    fn handle(&mut self, event: Event) {
        match event {
            Event::Request(request) => {
                let Ok(ep) = self.pz.create_ep(Evds::from(&self.evd), None) else {
                    return;
                };
                let _ = receives(&self.pz, &ep).and_then(|()| request.accept(&ep, &[]));
                let _ = self.eps.push(ep, GFP_KERNEL);
            }
            Event::Dto(dto) => {
                let (id, operation) = (dto.ep, dto.operation);
                let buffer = self.tally.take(dto);
                let ep = self.eps.iter().find(|ep| ep.id() == id);
                if let (Some(ep), Some(buffer)) = (ep, buffer) {
                    again(ep, operation, buffer);
                }
            }
            Event::Connection(_, Connection::Established) => {}
            Event::Connection(id, _) => self.eps.retain(|ep| ep.id() != id),
            _ => {}
        }
    }
}

/// Client: floods the server.
struct Client {
    ep: Ep,
    pz: Pz,
    tally: Arc<Tally>,
    _counted: Counted,
}

impl Client {
    fn start(&self) -> kdat::Result {
        for buffer in self.pz.buffers(DEPTH, MESSAGE)? {
            self.ep.post(Dto::send(buffer, MESSAGE))?;
        }
        Ok(())
    }
}

impl ParallelHandler for Client {
    fn handle(&self, event: Event) {
        match event {
            Event::Connection(_, Connection::Established) => drop(self.start()),
            Event::Dto(dto) => {
                let operation = dto.operation;
                if let Some(buffer) = self.tally.take(dto) {
                    again(&self.ep, operation, buffer);
                }
            }
            _ => {}
        }
    }
}

/// Adapter with traffic between two Endpoints.
struct Scene {
    ia: Ia,
    pz: Pz,
    evd: Evd,
    psp: Psp,
    tally: Arc<Tally>,
}

fn open() -> Result<Ia> {
    let [a, b, c, d] = module_parameters::address.value().to_be_bytes();
    Ok(Ia::open(&CString::try_from_fmt(fmt!("{a}.{b}.{c}.{d}"))?, 8)?)
}

/// Waits until a condition is true.
fn until(condition: impl Fn() -> bool) -> Result {
    for _ in 0..PATIENCE_MS {
        if condition() {
            return Ok(());
        }
        fsleep(Delta::from_millis(1));
    }
    Err(ETIMEDOUT)
}

fn ensure(condition: bool, what: &str) -> Result {
    if condition {
        return Ok(());
    }
    pr_err!("false: {what}\n");
    Err(EIO)
}

impl Scene {
    fn new() -> Result<Self> {
        let ia = open()?;
        let (pz, evd) = (ia.create_pz()?, ia.create_evd(STREAMS(), 256)?);
        let tally = Tally { messages: Atomic::new(0), wrong: Atomic::new(0) };
        let tally = Arc::new(tally, GFP_KERNEL)?;
        evd.set_handler(Server {
            pz: pz.clone(),
            evd: evd.clone(),
            eps: KVec::new(),
            tally: tally.clone(),
            _counted: Counted::new(),
        })?;
        let psp = ia.listen((*module_parameters::port.value()).into(), &evd)?;
        Ok(Self { ia, pz, evd, psp, tally })
    }

    /// Connects a client, whose handler `wrap` makes.
    fn connect(&self) -> Result<(Client, Evd)> {
        let evd = self.ia.create_evd(STREAMS(), 256)?;
        let ep = self.pz.create_ep(Evds::from(&evd), None)?;
        let address = Ipv4Addr::from(*module_parameters::address.value());
        let port = *module_parameters::port.value();
        ep.connect(&IpAddr::V4(address).into(), port.into(), 30_000_000, &[])?;
        let client =
            Client { ep, pz: self.pz.clone(), tally: self.tally.clone(), _counted: Counted::new() };
        Ok((client, evd))
    }

    /// Connects a client with parallel upcalls, and waits for its traffic.
    fn flood(&self) -> Result {
        let (client, evd) = self.connect()?;
        evd.set_parallel_handler(client)?;
        self.traffic()
    }

    fn traffic(&self) -> Result {
        let before = self.tally.messages.load(Relaxed);
        until(|| self.tally.messages.load(Relaxed).wrapping_sub(before) > 50)
    }
}

/// The adapter is closed first, and the objects are dropped after it.
fn close_first(round: u32) -> Result {
    let scene = Scene::new()?;
    scene.flood()?;
    fsleep(Delta::from_micros((i64::from(round) * 377) % 3000));
    let Scene { ia, pz, evd, psp, tally } = scene;
    drop(ia);
    let messages = tally.messages.load(Relaxed);
    ensure(HANDLERS.load(Relaxed) == 0, "handlers are gone")?;
    let stale = pz.create_ep(Evds::from(&evd), None);
    ensure(stale.is_err(), "the zone is stale")?;
    drop((pz, evd, psp));
    fsleep(Delta::from_millis(5));
    ensure(tally.messages.load(Relaxed) == messages, "no upcall follows")?;
    ensure(tally.wrong.load(Relaxed) == 0, "buffers have one owner")
}

/// All objects are dropped before the adapter, during traffic.
fn close_last(round: u32) -> Result {
    let scene = Scene::new()?;
    scene.flood()?;
    fsleep(Delta::from_micros((i64::from(round) * 377) % 3000));
    let Scene { ia, pz, evd, psp, tally } = scene;
    drop((psp, evd, pz));
    drop(ia);
    ensure(HANDLERS.load(Relaxed) == 0, "handlers are gone")?;
    ensure(tally.wrong.load(Relaxed) == 0, "buffers have one owner")
}

/// An upcall drops its own Endpoint, whose DTOs are outstanding. The next client is served.
fn free_in_upcall(_: u32) -> Result {
    let scene = Scene::new()?;
    for _ in 0..3 {
        let (client, evd) = scene.connect()?;
        let (mut client, mut left) = (Some(client), 40);
        evd.set_handler(move |event: Event| {
            left -= 1;
            if left == 0 {
                client = None;
            } else if let Some(client) = &client {
                ParallelHandler::handle(client, event);
            }
        })?;
        until(|| HANDLERS.load(Relaxed) == 1)?;
    }
    ensure(scene.tally.wrong.load(Relaxed) == 0, "buffers have one owner")?;
    drop(scene);
    ensure(HANDLERS.load(Relaxed) == 0, "handlers are gone")
}

/// A dispatcher is dropped while its upcalls run. Its handler is gone before the adapter.
fn free_dispatcher(_: u32) -> Result {
    let ia = open()?;
    let evd = ia.create_evd(Streams::SOFTWARE, 64)?;
    let calls = Arc::new(Atomic::new(0_i32), GFP_KERNEL)?;
    let (counted, counter) = (Counted::new(), calls.clone());
    evd.set_parallel_handler(move |_: Event| {
        let _counted = &counted;
        fsleep(Delta::from_micros(200));
        counter.fetch_add(1, Relaxed);
    })?;
    ensure(evd.set_handler(|_: Event| {}).is_err(), "there is one handler")?;
    for number in 0..32 {
        evd.post(number)?;
    }
    until(|| calls.load(Relaxed) > 2)?;
    drop(evd);
    ensure(HANDLERS.load(Relaxed) == 0, "the handler is gone")?;
    let made = calls.load(Relaxed);
    fsleep(Delta::from_millis(5));
    ensure(calls.load(Relaxed) == made, "no upcall follows")
}

/// Takes the next completion.
fn completion(evd: &Evd) -> Result<Completion> {
    match evd.wait(Some(30_000_000))? {
        Event::Dto(dto) if dto.is_success() => Ok(dto),
        _ => Err(EIO),
    }
}

/// Two Endpoints without handlers, which are connected.
fn pair(ia: &Ia, pz: &Pz, evds: [&Evd; 2]) -> Result<[Ep; 2]> {
    let psp = ia.listen((*module_parameters::port.value()).into(), evds[1])?;
    let eps = [pz.create_ep(evds[0].into(), None)?, pz.create_ep(evds[1].into(), None)?];
    let address = Ipv4Addr::from(*module_parameters::address.value());
    let port = *module_parameters::port.value();
    eps[0].connect(&IpAddr::V4(address).into(), port.into(), 30_000_000, b"hello")?;
    let Event::Request(request) = evds[1].wait(Some(30_000_000))? else {
        return Err(EIO);
    };
    let mut data = [0; 5];
    ensure(request.private_data(&mut data)? >= 5 && data == *b"hello", "the request has data")?;
    request.accept(&eps[1], b"welcome")?;
    for evd in evds {
        let Event::Connection(_, Connection::Established) = evd.wait(Some(30_000_000))? else {
            return Err(EIO);
        };
    }
    let mut data = [0; 7];
    ensure(eps[0].private_data(&mut data)? >= 7 && data == *b"welcome", "the accept has data")?;
    drop(psp);
    Ok(eps)
}

/// A message of several buffers arrives in several others, and each returns with its context. Posts
/// that are refused return their buffers.
fn segments(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(STREAMS(), 64)?, ia.create_evd(STREAMS(), 64)?];
    let eps = pair(&ia, &pz, [&evds[0], &evds[1]])?;
    let into = Dto::receive(pz.buffer(3)?).with(pz.buffer(8)?, 8)?;
    eps[1].post(into.context(7))?;
    let (mut one, mut two) = (pz.buffer(4)?, pz.buffer(6)?);
    one.copy_from_slice(b"abcd");
    two.copy_from_slice(b"efghij");
    eps[0].post(Dto::send(one, 4).with(two, 5)?.context(8))?;
    let sent = completion(&evds[0])?;
    ensure(sent.context == 8 && sent.more.len() == 1, "the send returns two buffers")?;
    let got = completion(&evds[1])?;
    let (first, rest) = (got.buffer.ok_or(EIO)?, got.more.first().ok_or(EIO)?);
    ensure(got.context == 7 && got.length == 9, "the receive has nine bytes")?;
    ensure(first[..] == *b"abc" && rest[..6] == *b"defghi", "the bytes are in order")?;
    refusals(&ia, &pz, &eps[0], first)
}

/// Posts that are refused return their buffers.
fn refusals(ia: &Ia, pz: &Pz, ep: &Ep, buffer: Buffer) -> Result {
    let kind = |refused: &Refused| refused.error.kind();
    let Err(refused) = ep.post(Dto::send(buffer, 4)) else {
        return Err(EIO);
    };
    ensure(kind(&refused) == kdat::kind::LENGTH_ERROR, "three bytes are not four")?;
    let evd = ia.create_evd(STREAMS(), 64)?;
    let idle = pz.create_ep(Evds::from(&evd), None)?;
    let Err(refused) = idle.post(Dto::send(refused.buffer.ok_or(EIO)?, 3)) else {
        return Err(EIO);
    };
    ensure(kind(&refused) == kdat::kind::INVALID_STATE, "the Endpoint is not connected")?;
    ensure(refused.buffer.is_some_and(|buffer| buffer[..] == *b"abc"), "the buffer is back")?;
    // The third of four has more segments than the Endpoint.
    let mut list = KVec::new();
    for place in 0..4 {
        let mut dto = Dto::send(pz.buffer(1)?, 1);
        for _ in 0..if place == 2 { 5 } else { 0 } {
            dto = dto.with(pz.buffer(1)?, 1)?;
        }
        list.push(dto, GFP_KERNEL)?;
    }
    ensure(ep.post_list(&mut list).is_err(), "the third is refused")?;
    ensure(list.len() == 2, "two were posted")
}

struct Races;

impl kernel::Module for Races {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let scenarios = [close_first, close_last, free_in_upcall, free_dispatcher, segments];
        let number = *module_parameters::scenario.value() as usize;
        let scenario = scenarios.get(number).ok_or(EINVAL)?;
        for round in 0..*module_parameters::rounds.value() {
            scenario(round)?;
        }
        Ok(Self)
    }
}
