// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! An instance of BMI: an adapter, the peers, and unexpected messages.

use crate::address;
use crate::bmi::engine::{PeerId, HEADER};
use crate::context::Context;
use crate::error::{Error, Failure, Result};
use crate::home::DatHome;
use crate::memory::Memory;
use crate::options::Options;
use crate::state::State;
use crate::wait::{lock, Sleepers, Waiters, UNEXPECTED_PLACE};
use libkdapl::{Evd, Psp};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the threads of an instance share.
pub(crate) struct Shared {
    pub(crate) state: Mutex<(State, Waiters)>,
    pub(crate) sleepers: Sleepers,
    /// The EVD of the home, on which one thread waits without the lock.
    pub(crate) evd: Evd,
    /// Receives whose events that thread has dequeued, and nobody has processed yet.
    pub(crate) dequeued: Arc<AtomicUsize>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

/// An instance of BMI. Dropping it stops listening, and ends the library's threads. Its contexts
/// and peers keep the connections.
#[derive(Debug)]
pub struct Bmi {
    shared: Arc<Shared>,
    listener: Option<(Psp, SocketAddr)>,
    thread: Option<JoinHandle<()>>,
}

/// Returns the place of the adapter, and the address to listen at.
fn place(options: &Options) -> Result<(String, Option<SocketAddr>)> {
    let listen = options.listen.as_deref().map(address::resolve).transpose()?;
    if let Some(adapter) = &options.adapter {
        return Ok((adapter.clone(), listen));
    }
    if let Some(address) = listen.filter(|address| !address.ip().is_unspecified()) {
        return Ok((address.ip().to_string(), listen));
    }
    let devices = libkdapl::devices()?;
    let device = devices.into_iter().find(|device| device.port_active && !device.restricted);
    Ok((device.ok_or(Error::NoDevice)?.name, listen))
}

impl Bmi {
    /// Opens an instance.
    ///
    /// # Errors
    /// [`Error::NoDevice`], [`Error::Address`], [`Error::Post`] for invalid options, and
    /// [`Error::Dat`], also if the port is in use.
    pub fn open(options: &Options) -> Result<Self> {
        let (adapter, listen) = place(options)?;
        let home = DatHome::open(&adapter, options)?;
        let (ia, evd) = (home.adapter.ia.clone(), home.adapter.evd.clone());
        let dequeued = home.receives.dequeued();
        let shared = Arc::new(Shared {
            state: Mutex::new((State::new(home, options)?, Waiters::default())),
            sleepers: Sleepers::default(),
            evd: evd.clone(),
            dequeued,
        });
        let listener = match listen {
            Some(address) => Some((ia.create_psp(address.port().into(), &evd)?, address)),
            None => None,
        };
        let runner = shared.clone();
        let thread = std::thread::Builder::new().name("kdapl-bmi".into());
        let thread = thread.spawn(move || runner.run()).map_err(|_| Failure::NoMemory)?;
        Ok(Self { shared, listener, thread: Some(thread) })
    }

    /// Returns the address at which this side listens.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        self.listener.as_ref().map(|(_, address)| address::format(*address))
    }

    /// Opens a context.
    ///
    /// # Errors
    /// [`Error::Contexts`] if 16 contexts are open.
    pub fn open_context(&self) -> Result<Context> {
        Context::open(&self.shared)
    }

    /// Resolves an address, `kdapl://HOST:PORT`. The first post connects to it. May wait for the
    /// name service.
    ///
    /// # Errors
    /// [`Error::Address`].
    pub fn lookup(&self, address: &str) -> Result<Peer> {
        let address = address::resolve(address)?;
        let mut guard = lock(&self.shared.state);
        let (state, _) = &mut *guard;
        state.make_room();
        let id = state.engine.add_peer()?;
        state.home.connections.addresses.insert(id, address);
        Ok(Peer(Arc::new(Reference { shared: self.shared.clone(), id })))
    }

    /// Allocates registered memory: messages in it are moved without a further registration.
    ///
    /// # Errors
    /// [`Error::Dat`] above the limit of locked memory.
    pub fn alloc(&self, length: usize) -> Result<Memory> {
        let (ia, pz) = {
            let guard = lock(&self.shared.state);
            let adapter = &guard.0.home.adapter;
            (adapter.ia.clone(), adapter.pz.clone())
        };
        Ok(Memory::new(&ia, &pz, length)?)
    }

    /// Takes up to `most` unexpected messages, and waits for the first one until the time-out
    /// (`None`: no limit).
    ///
    /// # Errors
    /// [`Failure::DeviceLost`] if the device was removed; [`Error::Dat`] if events can no longer be
    /// taken.
    pub fn wait_unexpected(
        &self,
        most: usize,
        timeout: Option<Duration>,
    ) -> Result<Vec<Unexpected>> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let shared = &self.shared;
        let taken = shared.wait(UNEXPECTED_PLACE, timeout, |state| {
            let mut taken = Vec::new();
            while taken.len() < most {
                let Some(message) = state.engine.take_unexpected(&mut state.home) else { break };
                state.settle();
                let bytes = state.home.stash.remove(&message.op).unwrap_or_default();
                let peer = Arc::new(Reference { shared: shared.clone(), id: message.peer });
                taken.push(Unexpected { peer: Peer(peer), tag: message.tag, bytes });
            }
            match taken.is_empty() {
                true if state.home.is_lost => Some(Err(Failure::DeviceLost)),
                true => None,
                false => Some(Ok(taken)),
            }
        });
        Ok(taken?.transpose()?.unwrap_or_default())
    }

    /// Returns the number of bytes that an unexpected message may have.
    #[must_use]
    pub fn unexpected_limit(&self) -> usize {
        lock(&self.shared.state).0.engine.unexpected_limit() as usize
    }

    /// Returns the bytes that are registered for messages of all peers.
    #[must_use]
    pub fn registered(&self) -> usize {
        lock(&self.shared.state).0.home.registered()
    }
}

impl Drop for Bmi {
    fn drop(&mut self) {
        let ender = self.shared.stop();
        for thread in self.thread.take().into_iter().chain(ender) {
            // It has ended, whether or not it has panicked.
            let _ = thread.join();
        }
    }
}

/// Reference to a peer in the engine.
#[derive(Debug)]
struct Reference {
    shared: Arc<Shared>,
    id: PeerId,
}

impl Drop for Reference {
    fn drop(&mut self) {
        let mut guard = lock(&self.shared.state);
        let (state, _) = &mut *guard;
        state.engine.release(&mut state.home, self.id);
        state.settle();
        self.shared.announce(&mut guard);
    }
}

/// Address of a peer. Dropping the last clone ends the connection, if this side has made it, after
/// the last operation.
#[derive(Clone, Debug)]
pub struct Peer(Arc<Reference>);

impl Peer {
    /// Returns whether the peer belongs to an instance.
    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.0.shared, shared)
    }

    pub(crate) fn id(&self) -> PeerId {
        self.0.id
    }

    /// Returns the address as text: the one that this side connects to, or the one that the peer
    /// has connected from.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        let guard = lock(&self.0.shared.state);
        let address = guard.0.home.connections.addresses.get(&self.0.id);
        address.map(|address| address::format(*address))
    }

    /// Ends the connection at once. Its operations fail; the next post connects again.
    pub fn disconnect(&self) {
        let mut guard = lock(&self.0.shared.state);
        let (state, _) = &mut *guard;
        state.engine.disconnect(&mut state.home, self.0.id);
        state.settle();
        self.0.shared.announce(&mut guard);
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id && Arc::ptr_eq(&self.0.shared, &other.0.shared)
    }
}

impl Eq for Peer {}

impl std::hash::Hash for Peer {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

/// A message for which no receive was posted.
#[derive(Clone, Debug)]
pub struct Unexpected {
    /// Sender, to which answers can be sent.
    pub peer: Peer,
    /// Tag.
    pub tag: i32,
    /// The message on the wire.
    bytes: Arc<Vec<u8>>,
}

impl Unexpected {
    /// Returns the message.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(HEADER..).unwrap_or_default()
    }
}
