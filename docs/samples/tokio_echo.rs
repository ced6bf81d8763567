// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The program of docs/async.md, which has all that follows the next line.
// ---
use libkdapl::{
    Buffer, Close, ConnectionEvent, Cr, DtoOperation, DtoStatus, Ep, EvdFlags, Event, Ia, Lmr,
    Privileges, Pz, TokioEvents,
};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;

const PORT: u64 = 7177;
const SIZE: usize = 64; // of a message, in bytes
const RECEIVES: usize = 4; // that are posted at once
const ROUNDS: u64 = 10; // that each client makes

/// A connection with its memory and its events.
struct Connection {
    ep: Ep,
    memory: Lmr,
    events: TokioEvents,
}

impl Connection {
    fn new(ia: &Ia, pz: &Pz) -> Result<Self, Error> {
        let evd = ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, 16)?;
        let ep = ia.create_ep(pz, &evd, &evd, &evd, None)?;
        let memory = ia.register(pz, Buffer::new(4096)?, Privileges::ALL)?;
        let connection = Self {
            ep,
            memory,
            events: TokioEvents::on_tokio(evd.file()?)?,
        };
        (0..RECEIVES).try_for_each(|place| connection.receive(place as u64))?;
        Ok(connection)
    }

    fn receive(&self, place: u64) -> libkdapl::Result<()> {
        let segment = self.memory.segment(place as usize * SIZE, SIZE);
        self.ep.post_recv(&[segment], place, Default::default())
    }

    fn send(&self, place: u64, length: usize) -> libkdapl::Result<()> {
        let segment = self.memory.segment(place as usize * SIZE, length);
        self.ep.post_send(&[segment], place, Default::default())
    }

    async fn next(&mut self) -> Result<Event, Error> {
        Ok(self.events.next().await.ok_or("the adapter was closed")??)
    }
}

/// Accepts a connection, and sends each message back until the peer disconnects.
async fn serve(mut connection: Connection, mut request: Cr) -> Result<u64, Error> {
    request.accept(&connection.ep, b"")?;
    let mut messages = 0;
    loop {
        match connection.next().await? {
            Event::Connection {
                event: ConnectionEvent::Established,
                ..
            } => {}
            Event::Connection { .. } => return Ok(messages),
            Event::Dto(dto) if dto.status != DtoStatus::Success => {} // the connection ends
            Event::Dto(dto) if dto.operation == DtoOperation::Receive => {
                messages += 1;
                connection.send(dto.cookie, dto.length as usize)?;
            }
            Event::Dto(dto) => connection.receive(dto.cookie)?, // the echo is sent
            other => return Err(other.to_string().into()),
        }
    }
}

/// Connects, and checks that messages come back.
async fn call(mut connection: Connection, address: String, number: usize) -> Result<u64, Error> {
    let own = RECEIVES as u64; // a place that has no receive
    connection.ep.connect(address.parse()?, PORT, None, b"")?;
    for round in 0..=ROUNDS {
        let text = format!("message {round} of client {number}");
        loop {
            match connection.next().await? {
                Event::Connection {
                    event: ConnectionEvent::Established,
                    ..
                } => break,
                Event::Dto(dto) if dto.status != DtoStatus::Success => return Err("failed".into()),
                Event::Dto(dto) if dto.operation == DtoOperation::Receive => {
                    let mut echo = vec![0; dto.length as usize];
                    connection
                        .memory
                        .buffer()
                        .read(dto.cookie as usize * SIZE, &mut echo);
                    let sent = format!("message {} of client {number}", round - 1);
                    assert_eq!(String::from_utf8(echo)?, sent);
                    connection.receive(dto.cookie)?;
                    break;
                }
                Event::Dto(_) => {} // the message is sent
                other => return Err(other.to_string().into()),
            }
        }
        if round < ROUNDS {
            connection
                .memory
                .buffer()
                .write(RECEIVES * SIZE, text.as_bytes());
            connection.send(own, text.len())?;
        }
    }
    connection.ep.disconnect(Close::Graceful)?;
    while !matches!(connection.next().await?, Event::Connection { .. }) {}
    Ok(ROUNDS)
}

async fn run() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1); // DEVICE CONNECTIONS [ADDRESS]
    let ia = Ia::open(&arguments.next().ok_or("which device?")?, 8)?;
    let count = arguments.next().ok_or("how many connections?")?.parse()?;
    let pz = ia.create_pz()?;
    let mut tasks = JoinSet::new();
    if let Some(address) = arguments.next() {
        for number in 0..count {
            tasks.spawn(call(Connection::new(&ia, &pz)?, address.clone(), number));
        }
    } else {
        let evd = ia.create_evd(EvdFlags::CR, 1024)?;
        let _psp = ia.create_psp(PORT, &evd)?;
        let mut requests = TokioEvents::on_tokio(evd.file()?)?;
        while tasks.len() < count {
            let event = requests.next().await.ok_or("the adapter was closed")??;
            if let Event::ConnectionRequest { cr, .. } = event {
                tasks.spawn(serve(Connection::new(&ia, &pz)?, cr));
            }
        }
    }
    let mut messages = 0;
    while let Some(task) = tasks.join_next().await {
        messages += task??;
    }
    println!("{count} connections, {messages} messages");
    Ok(())
}

fn main() -> Result<(), Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?
        .block_on(run())
}
