// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ports: they listen for hosts.

use crate::{
    adapter::Adapter,
    nvmet::{
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
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// Connection requests that may wait to be answered.
const BACKLOG: u32 = 128;

/// Largest private data that a transport delivers, with room for those of NVMe over RDMA.
const PRIVATE_DATA: usize = 64;

/// What listens. Dropped in this order.
struct Listener {
    _psp: Psp,
    evd: Evd,
    _adapter: Arc<Adapter>,
}

/// Port of the target.
#[pin_data]
pub(crate) struct Port {
    pub(crate) number: PortRef,
    pub(crate) settings: Settings,
    /// `None` after the port was closed.
    #[pin]
    listener: Mutex<Option<Listener>>,
}

impl Port {
    /// Starts to listen.
    pub(crate) fn open(number: PortRef, settings: Settings) -> Result<Arc<Self>> {
        let port = Arc::pin_init(
            pin_init!(Self {
                number,
                settings,
                listener <- new_mutex!(None, "Port::listener"),
            }),
            GFP_KERNEL,
        )?;
        let listener = port.listen()?;
        *port.listener.lock() = Some(listener);
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
        let psp = adapter.ia.listen(self.settings.service.into(), &evd);
        Ok(Listener {
            _psp: psp.inspect_err(|_| evd.free())?,
            evd,
            _adapter: adapter,
        })
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

    /// Stops to listen, and disconnects the queues of the port. Waits for upcalls in progress, which
    /// wait for nothing of the core. Context: process.
    pub(crate) fn close(&self) {
        let listener = self.listener.lock().take();
        if let Some(Listener { _psp, evd, .. }) = listener {
            drop(_psp);
            // The handler has references to the port and the adapter.
            evd.free();
        }
        Queues::release(|queue| queue.belongs_to(self));
    }
}

/// Decodes the private data of a request.
fn connect_request(request: &Cr) -> Result<ConnectRequest, Reject> {
    let mut data = [0; PRIVATE_DATA];
    let length = request.private_data(&mut data);
    let length = length.map_err(|_| Reject::InvalidLength)?;
    ConnectRequest::parse(data.get(..length).unwrap_or(&data))
}
