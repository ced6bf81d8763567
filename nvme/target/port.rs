// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ports: they listen for hosts.
//!
//! If the device of a port is lost, the port closes its adapter, and tries to open another one for
//! the same address until there is one.

use crate::{
    adapter::Adapter,
    nvmet::{
        cancel_delayed,
        workqueue,
        PortRef,
        Queues,
        Settings, //
    },
    queue::Queue,
    wire::{
        ConnectRequest,
        Reject, //
    },
};
use kdat::{
    Cr,
    Evd,
    Event,
    Psp,
    Streams, //
};
use kernel::{
    impl_has_delayed_work, new_delayed_work, new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        DelayedWork,
        WorkItem, //
    },
};

/// Connection requests that may wait to be answered.
const BACKLOG: u32 = 128;

/// Largest private data that a transport delivers, with room for those of NVMe over RDMA.
const PRIVATE_DATA: usize = 64;

/// Time between two attempts to listen again.
const RETRY_MS: u32 = 1000;

/// Service point of a port, with the Event Dispatcher and the adapter that it uses.
struct Listener {
    psp: Psp,
    evd: Evd,
    adapter: Arc<Adapter>,
}

impl Listener {
    /// Stops to listen, and ends the queues of the listener. Waits for the upcall in progress,
    /// which waits for nothing of the core. The handler has references to the port and the adapter.
    fn stop(self) {
        drop(self.psp);
        // On an error the close of the adapter frees it.
        let _ = self.evd.free();
        let adapter = self.adapter;
        Queues::release(|queue| Arc::ptr_eq(&queue.adapter, &adapter));
    }
}

/// State of a port.
enum State {
    Listening(Listener),
    /// The device is lost.
    Broken,
    Closed,
}

/// Port of the target.
#[pin_data]
pub(crate) struct Port {
    pub(crate) number: PortRef,
    pub(crate) settings: Settings,
    #[pin]
    state: Mutex<State>,
    #[pin]
    repair: DelayedWork<Self>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Port { self.repair }
}

impl Port {
    /// Starts to listen.
    pub(crate) fn open(number: PortRef, settings: Settings) -> Result<Arc<Self>> {
        let port = Arc::pin_init(
            pin_init!(Self {
                number,
                settings,
                state <- new_mutex!(State::Broken, "Port::state"),
                repair <- new_delayed_work!("Port::repair"),
            }),
            GFP_KERNEL,
        )?;
        let listener = port.listen()?;
        *port.state.lock() = State::Listening(listener);
        let Settings {
            id,
            address,
            service,
            ..
        } = &port.settings;
        pr_info!("enabling port {id} ({address:?}:{service})\n");
        Ok(port)
    }

    fn listen(self: &Arc<Self>) -> Result<Listener> {
        let adapter = Adapter::open(&self.settings.address)?;
        let evd = adapter.ia.create_evd(Streams::CR, BACKLOG)?;
        let (port, of_port) = (self.clone(), adapter.clone());
        evd.set_handler(move |event| {
            if let Event::Request(request) = event {
                port.answer(&of_port, request);
            }
        })?;
        let port = self.clone();
        let watched = adapter.ia.async_evd().set_handler(move |event: Event| {
            if event.is_catastrophic() {
                port.repair_after(0);
            }
        });
        let psp = watched.and_then(|()| adapter.ia.listen(self.settings.service.into(), &evd));
        let psp = psp.inspect_err(|_| {
            // On an error the close of the adapter frees it.
            let _ = evd.free();
        })?;
        Ok(Listener { psp, evd, adapter })
    }

    /// Replaces the adapter after a time. Context: any.
    fn repair_after(self: &Arc<Self>, milliseconds: u32) {
        let delay = msecs_to_jiffies(milliseconds);
        let _ = workqueue().enqueue_delayed(self.clone(), delay);
    }

    /// Replaces the state, and ends a listener that it had, with its queues. Returns whether the
    /// port was not closed before.
    fn set(&self, new: State) -> bool {
        let old = {
            let mut state = self.state.lock();
            if matches!(*state, State::Closed) {
                return false;
            }
            core::mem::replace(&mut *state, new)
        };
        if let State::Listening(listener) = old {
            listener.stop();
        }
        true
    }

    /// Accepts or rejects the request of a host.
    fn answer(self: &Arc<Self>, adapter: &Arc<Adapter>, request: Cr) {
        let rejected = |reject: Reject| {
            pr_warn!(
                "port {}: a request is rejected: {reject:?}\n",
                self.settings.id
            );
            reject
        };
        let answered = match connect_request(&request) {
            Ok(connect) => Queue::accept(self, adapter, request, &connect),
            Err(reject) => Err((reject, request)),
        };
        if let Err((reject, request)) = answered {
            let _ = request.reject(&rejected(reject).to_bytes());
        }
    }

    /// Stops to listen, and disconnects the queues of the port, which end later. Context: process.
    pub(crate) fn close(self: &Arc<Self>) {
        self.set(State::Closed);
        cancel_delayed::<Self, 0>(self);
    }
}

impl WorkItem for Port {
    type Pointer = Arc<Self>;

    /// Closes the adapter, and opens another one.
    fn run(this: Arc<Self>) {
        if !this.set(State::Broken) {
            return;
        }
        match this.listen() {
            Ok(listener) => this.repaired(listener),
            Err(_) => this.repair_after(RETRY_MS),
        }
    }
}

impl Port {
    /// Listens again, unless the port was closed meanwhile.
    fn repaired(self: &Arc<Self>, listener: Listener) {
        let mut state = self.state.lock();
        if matches!(*state, State::Closed) {
            drop(state);
            return listener.stop();
        }
        *state = State::Listening(listener);
        drop(state);
        pr_info!("port {} listens again\n", self.settings.id);
    }
}

/// Decodes the private data of a request.
fn connect_request(request: &Cr) -> Result<ConnectRequest, Reject> {
    let mut data = [0; PRIVATE_DATA];
    let length = request.private_data(&mut data);
    let length = length.map_err(|_| Reject::InvalidLength)?;
    ConnectRequest::parse(data.get(..length).unwrap_or(&data))
}
