// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Instances of BMI, and waiting for results.
//!
//! Upcalls process the events of each device (`source.rs`). One more disconnects and frees
//! Endpoints, without the lock.

use crate::{
    address::Hosts,
    engine::EndsEndpoints,
    glue::{
        without_io,
        Ticker, //
    },
    home::{
        KernelHome,
        PLACES, //
    },
    memory::Memory,
    options::Options,
    source::Source,
    state::State, //
};
use kdat::{
    Evd,
    Event,
    Psp, //
};
use kernel::{
    new_condvar, new_mutex,
    prelude::*,
    sync::{
        lock::{
            mutex::MutexBackend,
            Guard, //
        },
        Arc,
        CondVar,
        CondVarTimeoutResult,
        Mutex, //
    },
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    },
};

/// The part of an instance that its calls share.
#[pin_data]
pub(crate) struct Shared {
    #[pin]
    state: Mutex<Inner>,
    #[pin]
    places: [CondVar; PLACES],
    /// Calls the work item that disconnects and frees Endpoints.
    endings: Evd,
    start: Instant<Monotonic>,
}

/// State under the lock of the instance.
pub(crate) struct Inner {
    pub(crate) state: State,
    /// Memory of `bmi_memalloc()`, by its start.
    pub(crate) memory: KVVec<Memory>,
}

impl Inner {
    /// Returns the memory of `bmi_memalloc()` that has an address, and the offset there.
    pub(crate) fn find(&self, address: usize) -> Option<(&Memory, usize)> {
        let after = self
            .memory
            .partition_point(|memory| memory.start() <= address);
        let memory = self.memory.get(after.checked_sub(1)?)?;
        let offset = address - memory.start();
        (offset < memory.size()).then_some((memory, offset))
    }

    /// Keeps memory of `bmi_memalloc()`, and returns its start.
    pub(crate) fn keep(&mut self, memory: Memory) -> Result<usize> {
        let start = memory.start();
        let place = self.memory.partition_point(|other| other.start() < start);
        self.memory.reserve(1, GFP_KERNEL)?;
        let _ = self.memory.insert_within_capacity(place, memory);
        Ok(start)
    }

    /// Forgets memory, by its start. Operations with it keep it.
    pub(crate) fn free(&mut self, start: usize) -> Result<Memory> {
        let place = self
            .memory
            .binary_search_by_key(&start, Memory::start)
            .map_err(|_| EINVAL)?;
        self.memory.remove(place).map_err(|_| EINVAL)
    }
}

type Locked<'a> = Guard<'a, Inner, MutexBackend>;

impl Shared {
    fn new(state: State, endings: Evd) -> Result<Arc<Self>> {
        let inner = Inner {
            state,
            memory: KVVec::new(),
        };
        Arc::pin_init(
            pin_init!(Self {
                state <- new_mutex!(inner, "kdapl_bmi"),
                places <- pin_init::pin_init_array_from_fn(|_| new_condvar!("kdapl_bmi")),
                endings,
                start: Instant::now(),
            }),
            GFP_KERNEL,
        )
    }

    /// Locks the instance, and calls `with`. Wakes the threads for which there are results then.
    pub(crate) fn with<T>(&self, with: impl FnOnce(&mut Inner) -> T) -> T {
        without_io(|| {
            let mut guard = self.state.lock();
            let result = with(&mut guard);
            self.announce(&mut guard);
            result
        })
    }

    /// Wakes the threads for which there are results, and calls the work item for new tasks.
    fn announce(&self, guard: &mut Locked<'_>) {
        guard.state.discard_closing();
        let wakes = core::mem::take(&mut guard.state.home.wakes);
        for (place, waiters) in self.places.iter().enumerate() {
            if wakes & (1 << place) != 0 {
                waiters.notify_all();
            }
        }
        if guard.state.home.endings.call() {
            // After the close of the adapter nothing is left to do.
            let _ = self.endings.post(0);
        }
    }

    /// Disconnects and frees Endpoints, without the lock. The work item of an upcall runs this.
    fn end_endpoints(&self) {
        let mut next = self.with(|inner| inner.state.next_task(None));
        while let Some((rail, task)) = next {
            let succeeded = without_io(|| KernelHome::carry_out(task));
            next = self.with(|inner| inner.state.next_task(Some((rail, succeeded))));
        }
    }

    /// Waits until `take` returns a result, for at most so many milliseconds; a negative number has
    /// no limit.
    pub(crate) fn wait<T>(
        &self,
        place: usize,
        milliseconds: i32,
        take: impl FnMut(&mut Inner) -> Option<T>,
    ) -> Result<Option<T>> {
        without_io(|| self.wait_without_io(place, milliseconds, take))
    }

    fn wait_without_io<T>(
        &self,
        place: usize,
        milliseconds: i32,
        mut take: impl FnMut(&mut Inner) -> Option<T>,
    ) -> Result<Option<T>> {
        let waiters = self.places.get(place).ok_or(EINVAL)?;
        let mut left = u32::try_from(milliseconds).ok().map(msecs_to_jiffies);
        let mut guard = self.state.lock();
        loop {
            if let Some(result) = take(&mut guard) {
                self.announce(&mut guard);
                return Ok(Some(result));
            }
            left = match left {
                Some(0) => return Ok(None),
                Some(jiffies) => match waiters.wait_interruptible_timeout(&mut guard, jiffies) {
                    CondVarTimeoutResult::Woken { jiffies } => Some(jiffies),
                    CondVarTimeoutResult::Timeout => Some(0),
                    CondVarTimeoutResult::Signal { .. } => return Err(EINTR),
                },
                None if waiters.wait_interruptible(&mut guard) => return Err(EINTR),
                None => None,
            };
        }
    }

    /// Waits until a context that closes has ended. Signals do not end the wait.
    pub(crate) fn wait_for_close(&self, context: u8) {
        let waiters = self.places.get(crate::home::UNEXPECTED_PLACE);
        let mut guard = self.state.lock();
        while guard.state.is_closing(context) {
            if let Some(waiters) = waiters {
                waiters.wait(&mut guard);
            }
        }
    }

    /// Processes an event of a device.
    pub(crate) fn handle(&self, device: u8, event: Event) {
        self.with(|inner| inner.state.process(device, event));
    }

    /// Tells the engine the time.
    pub(crate) fn tick(&self) {
        let now = self.start.elapsed().as_millis();
        self.with(|inner| inner.state.tick(u64::try_from(now).unwrap_or(0)));
    }
}

/// An instance, `struct bmi` of the header. Fields are dropped in this order: the close of the
/// adapters ends all upcalls.
pub(crate) struct Instance {
    _ticker: Ticker,
    _listeners: KVec<Psp>,
    _sources: KVec<Source>,
    shared: Arc<Shared>,
}

impl Instance {
    /// Opens an instance on the devices of these adapters.
    pub(crate) fn open(
        names: &CStr,
        listen: Option<Hosts>,
        options: Options,
    ) -> Result<KBox<Self>> {
        let (sources, adapters) = Source::open_all(names)?;
        let segments = adapters.iter().map(|adapter| adapter.limits.segments).min();
        let options = options
            .for_devices(adapters.len() as u8)
            .for_segments(segments.unwrap_or(0));
        let endings = sources.first().ok_or(EINVAL)?.create_calls()?;
        let home = KernelHome::new(adapters, &options)?;
        let shared = Shared::new(State::new(home, &options)?, endings.clone())?;
        let worker = shared.clone();
        endings.set_handler(move |_| worker.end_endpoints())?;
        let mut listeners = KVec::new();
        for source in &sources {
            source.start(&shared)?;
            if let Some(hosts) = &listen {
                listeners.push(source.listen(hosts.port())?, GFP_KERNEL)?;
            }
        }
        let instance = Self {
            _ticker: Ticker::start(&shared)?,
            _listeners: listeners,
            _sources: sources,
            shared,
        };
        Ok(KBox::new(instance, GFP_KERNEL)?)
    }

    /// Returns what the calls share.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
}
