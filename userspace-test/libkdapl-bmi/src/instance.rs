// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! An instance of BMI: an adapter, the peers, and unexpected messages.

use crate::address::{self, Hosts};
use crate::bmi::engine::{PeerId, HEADER};
use crate::context::Context;
use crate::error::{Error, Failure, Result};
use crate::home::{DatHome, PeerPlace};
use crate::memory::Memory;
use crate::options::Options;
use crate::source::{DeviceThread, Source};
use crate::state::State;
use crate::wait::{lock, Sleepers, Waiters, UNEXPECTED_PLACE};
use libkdapl::Psp;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the threads of an instance share.
pub(crate) struct Shared {
    pub(crate) state: Mutex<(State, Waiters)>,
    pub(crate) sleepers: Sleepers,
    /// Events of the first device, for which one thread waits without the lock.
    pub(crate) source: Source,
}

/// What an instance, its contexts and its peers share. No thread of the library holds it: the last
/// drop ends those for further devices.
pub(crate) struct Instance {
    /// Threads for the events of further devices. Dropped first.
    _devices: Vec<DeviceThread>,
    shared: Arc<Shared>,
}

impl Deref for Instance {
    type Target = Arc<Shared>;

    fn deref(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Instance")
    }
}

/// An instance of BMI. Dropping it stops listening, and ends the library's threads, but those that
/// wait for events of further devices. Its contexts and peers keep these and the connections.
#[derive(Debug)]
pub struct Bmi {
    shared: Arc<Instance>,
    listener: Option<(Vec<Psp>, Hosts)>,
    thread: Option<JoinHandle<()>>,
}

/// Returns the names of the adapters, and the address to listen at.
fn places(options: &Options) -> Result<(Vec<String>, Option<Hosts>)> {
    let listen = options.listen.as_deref().map(address::resolve).transpose()?;
    if let Some(adapters) = &options.adapter {
        return Ok((adapters.split(',').map(str::to_owned).collect(), listen));
    }
    let given = |hosts: &&Hosts| !hosts.0.iter().any(|host| host.ip().is_unspecified());
    if let Some(hosts) = listen.as_ref().filter(given) {
        return Ok((hosts.0.iter().map(|host| host.ip().to_string()).collect(), listen));
    }
    let devices = libkdapl::devices()?;
    let device = devices.into_iter().find(|device| device.port_active && !device.restricted);
    Ok((vec![device.ok_or(Error::NoDevice)?.name], listen))
}

/// Listens on all devices.
fn listen_at(home: &DatHome, hosts: &Hosts) -> Result<Vec<Psp>> {
    let port = hosts.0.first().map_or(0, SocketAddr::port);
    let adapters = home.devices.all().map(|(_, device)| &device.adapter);
    let psps = adapters.map(|adapter| Ok(adapter.ia.create_psp(port.into(), &adapter.evd)?));
    psps.collect()
}

impl Bmi {
    /// Opens an instance.
    ///
    /// # Errors
    /// [`Error::NoDevice`], [`Error::Address`], [`Error::Options`], [`Error::Post`] for other
    /// invalid options, and [`Error::Dat`], also if the port is in use.
    pub fn open(options: &Options) -> Result<Self> {
        let (names, listen) = places(options)?;
        let options = &options.for_adapters(names.len())?;
        let home = DatHome::open(&names, options)?;
        let mut sources: Vec<_> = home.devices.all().map(Source::new).collect();
        let listener = listen.map(|hosts| Ok::<_, Error>((listen_at(&home, &hosts)?, hosts)));
        let listener = listener.transpose()?;
        let others = sources.split_off(1);
        let source = sources.pop().ok_or(Error::NoDevice)?;
        let shared = Arc::new(Shared {
            state: Mutex::new((State::new(home, options)?, Waiters::default())),
            sleepers: Sleepers::default(),
            source,
        });
        let devices = others.into_iter().map(|other| other.start(shared.clone()));
        let devices = devices.collect::<Result<_>>()?;
        let runner = shared.clone();
        let thread = std::thread::Builder::new().name("kdapl-bmi".into());
        let thread = thread.spawn(move || runner.run()).map_err(|_| Failure::NoMemory)?;
        let shared = Arc::new(Instance { _devices: devices, shared });
        Ok(Self { shared, listener, thread: Some(thread) })
    }

    /// Returns the address at which this side listens.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        self.listener.as_ref().map(|(_, hosts)| address::format(hosts))
    }

    /// Opens a context.
    ///
    /// # Errors
    /// [`Error::Contexts`] if 16 contexts are open.
    pub fn open_context(&self) -> Result<Context> {
        Context::open(&self.shared)
    }

    /// Resolves an address, `kdapl://HOST:PORT`, or `kdapl://HOST+HOST:PORT` of a peer with several
    /// devices. The first post connects to it. May wait for the name service.
    ///
    /// # Errors
    /// [`Error::Address`].
    pub fn lookup(&self, address: &str) -> Result<Peer> {
        let hosts = address::resolve(address)?;
        let mut guard = lock(&self.shared.state);
        let (state, _) = &mut *guard;
        state.make_room();
        let id = state.engine.add_peer()?;
        state.home.connections.routes.places.insert(id, PeerPlace::new(hosts));
        Ok(Peer(Arc::new(Reference { shared: self.shared.clone(), id })))
    }

    /// Allocates memory that is registered on all devices: messages in it are moved without a
    /// further registration.
    ///
    /// # Errors
    /// [`Error::Dat`] above the limit of locked memory.
    pub fn alloc(&self, length: usize) -> Result<Memory> {
        let mut memory = Memory::new(length)?;
        let guard = lock(&self.shared.state);
        guard.0.home.register(&mut memory)?;
        Ok(memory)
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
                true if state.home.is_lost() => Some(Err(Failure::DeviceLost)),
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
    shared: Arc<Instance>,
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
    pub(crate) fn is_of(&self, shared: &Arc<Instance>) -> bool {
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
        let place = guard.0.home.connections.routes.places.get(&self.0.id);
        place.map(|place| address::format(&place.hosts))
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
