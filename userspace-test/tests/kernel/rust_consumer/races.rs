// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Closes and frees objects while upcalls use them.

use crate::{
    conn_qual,
    connect_here,
    ensure,
    open,
    streams,
    until, //
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
    Streams, //
};
use kernel::{
    impl_has_work, new_mutex, new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        self,
        Work,
        WorkItem, //
    },
};

/// Bytes of a message.
const MESSAGE: usize = 512;

/// Number of messages of a client that are under way.
const DEPTH: usize = 8;

/// Number of handlers that exist.
pub(crate) static HANDLERS: Atomic<i32> = Atomic::new(0);

/// Counts one handler.
pub(crate) struct Counted;

impl Counted {
    pub(crate) fn new() -> Self {
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

/// Sends a message back, and receives the next one into the buffer of a send. The connection may be
/// over. So no side has more messages under way than the other has receives, as iWARP requires.
fn next(ep: &Ep, operation: Operation, mut buffer: Buffer) {
    let _ = if operation == Operation::Send {
        ep.post(Dto::receive(buffer))
    } else {
        let byte = buffer[0].wrapping_add(1);
        buffer.fill(byte);
        ep.post(Dto::send(buffer, MESSAGE))
    };
}

fn receives(pz: &Pz, ep: &Ep) -> kdat::Result {
    let mut list = KVec::new();
    for buffer in pz.buffers(2 * DEPTH, MESSAGE)? {
        list.push(Dto::receive(buffer), GFP_KERNEL)?;
    }
    ep.post_list(&mut list)
}

/// Server: sends back what it receives.
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
                    next(ep, operation, buffer);
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
                    next(&self.ep, operation, buffer);
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

impl Scene {
    fn new() -> Result<Self> {
        let ia = open()?;
        let (pz, evd) = (ia.create_pz()?, ia.create_evd(streams(), 256)?);
        let tally = Tally { messages: Atomic::new(0), wrong: Atomic::new(0) };
        let tally = Arc::new(tally, GFP_KERNEL)?;
        evd.set_handler(Server {
            pz: pz.clone(),
            evd: evd.clone(),
            eps: KVec::new(),
            tally: tally.clone(),
            _counted: Counted::new(),
        })?;
        let psp = ia.listen(conn_qual(), &evd)?;
        Ok(Self { ia, pz, evd, psp, tally })
    }

    /// Connects a client, whose handler `wrap` makes.
    fn connect(&self) -> Result<(Client, Evd)> {
        let evd = self.ia.create_evd(streams(), 256)?;
        let ep = self.pz.create_ep(Evds::from(&evd), None)?;
        receives(&self.pz, &ep)?;
        connect_here(&ep, &[])?;
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
pub(crate) fn close_first(round: u32) -> Result {
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
pub(crate) fn close_last(round: u32) -> Result {
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
pub(crate) fn free_in_upcall(_: u32) -> Result {
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
pub(crate) fn free_dispatcher(_: u32) -> Result {
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

/// Free of a dispatcher by another thread.
#[pin_data]
struct Free {
    #[pin]
    work: Work<Free>,
    #[pin]
    evd: Mutex<Option<Evd>>,
    is_over: Atomic<i32>,
}

impl Free {
    fn of(evd: Evd) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                work <- new_work!("Free::work"),
                evd <- new_mutex!(Some(evd), "Free::evd"),
                is_over: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }
}

impl_has_work! {
    impl HasWork<Self> for Free { self.work }
}

impl WorkItem for Free {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let evd = this.evd.lock().take();
        drop(evd);
        this.is_over.store(1, Relaxed);
    }
}

/// The adapter is closed while another thread frees a dispatcher, which waits for an upcall. The
/// close waits for it, too.
pub(crate) fn close_beside_free(_: u32) -> Result {
    let ia = open()?;
    let evd = ia.create_evd(Streams::SOFTWARE, 8)?;
    let stage = Arc::new(Atomic::new(0_i32), GFP_KERNEL)?;
    let (counted, upcall) = (Counted::new(), stage.clone());
    evd.set_handler(move |_: Event| {
        let _counted = &counted;
        upcall.store(1, Relaxed);
        fsleep(Delta::from_millis(50));
        upcall.store(2, Relaxed);
    })?;
    evd.post(1)?;
    until(|| stage.load(Relaxed) == 1)?;
    let free = Free::of(evd)?;
    ensure(workqueue::system().enqueue(free.clone()).is_ok(), "the free begins")?;
    fsleep(Delta::from_millis(10));
    drop(ia);
    ensure(stage.load(Relaxed) == 2, "the upcall has returned")?;
    until(|| free.is_over.load(Relaxed) == 1)?;
    // The work item returns.
    fsleep(Delta::from_millis(10));
    ensure(HANDLERS.load(Relaxed) == 0, "the handler is gone")
}
