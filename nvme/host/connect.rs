// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connections of queues.

use crate::{
    bindings,
    core::{
        Addresses,
        Controller, //
    },
    device::Device,
    queue::{
        Link,
        Queue,
        Slot, //
    },
    response::Responses,
    setup::Host,
    wire::{
        ConnectRequest,
        Reject,
        COMPLETION_SIZE, //
    },
};
use kdat::{
    Connection,
    Dto,
    Ep,
    EpAttr,
    Evd,
    Event,
    Streams, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    },
};

/// Longest time to connect, in microseconds.
const TIMEOUT_US: u32 = 20_000_000;

/// Requests of a command: registration, which may count as two, send, invalidation.
const REQUESTS: i32 = 4;

/// Size of a queue.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Number of commands, and of receives, one more than may be outstanding at a time.
    pub(crate) depth: u16,
    /// Number of tags of the block layer's requests, and of other commands.
    pub(crate) tags: u16,
    /// Bytes of a capsule.
    pub(crate) capsule: usize,
}

/// Returns the error of a number.
fn errno(number: u32) -> Error {
    Error::from_errno(-(number as i32))
}

/// Returns the largest number of segments of a capsule, of `most` that a device allows. Its memory
/// may be pages that are apart, since all capsules of a queue are allocated at once.
fn capsule_segments(capsule: usize, most: u32) -> i32 {
    let pages = capsule.div_ceil(PAGE_SIZE).saturating_add(1);
    pages.min(most as usize) as i32
}

/// Attributes of an Endpoint whose peer reads from this host.
fn attributes(size: Size, device: &Device) -> EpAttr {
    let depth = i32::from(size.depth);
    EpAttr {
        max_recv_dtos: depth,
        max_request_dtos: REQUESTS * depth,
        max_recv_iov: 1,
        max_request_iov: capsule_segments(size.capsule, device.segments),
        max_rdma_read_in: device.reads,
        max_rdma_read_out: 0,
        ..EpAttr::default()
    }
}

fn slots(size: Size, device: &Device) -> Result<KVec<Slot>> {
    let mut slots = KVec::with_capacity(size.tags.into(), GFP_KERNEL)?;
    for capsule in device.pz.buffers(size.tags.into(), size.capsule)? {
        let slot = Slot {
            capsule: Some(capsule),
            fmr: device.pz.allocate_fmr(device.fmr_pages)?,
            busy: None,
        };
        slots.push(slot, GFP_KERNEL)?;
    }
    Ok(slots)
}

fn post_receives(size: Size, device: &Device, ep: &Ep) -> Result {
    let mut receives = KVec::new();
    for buffer in device.pz.buffers(size.depth.into(), COMPLETION_SIZE)? {
        receives.push(Dto::receive(buffer), GFP_KERNEL)?;
    }
    Ok(ep.post_list(&mut receives)?)
}

impl Queue {
    /// Returns the private data of the connection request.
    fn request(&self, size: Size, ctrl: &Controller<Host>) -> [u8; 32] {
        ConnectRequest {
            qid: self.number,
            host_receives: size.depth,
            host_last_send: size.depth.saturating_sub(1),
            controller: if self.number == 0 { 0 } else { ctrl.cntlid() },
        }
        .to_bytes()
    }

    /// Waits for the answer to the connection request, and logs the reason of a rejection.
    ///
    /// # Errors
    ///
    /// `ECONNREFUSED` if the controller rejects the request, `ETIMEDOUT` if it does not answer,
    /// `ECONNRESET` if the connection fails otherwise.
    fn wait_until_established(&self, ctrl: &Controller<Host>, evd: &Evd, ep: &Ep) -> Result {
        loop {
            let Event::Connection(_, connection) = evd.wait(Some(2 * TIMEOUT_US))? else {
                continue;
            };
            return match connection {
                Connection::Established => Ok(()),
                Connection::PeerRejected => self.log_rejection(ctrl, ep),
                Connection::TimedOut => Err(ETIMEDOUT),
                _ => Err(errno(bindings::ECONNRESET)),
            };
        }
    }

    /// Logs the reason of a rejection. Returns `ECONNREFUSED`.
    fn log_rejection(&self, ctrl: &Controller<Host>, ep: &Ep) -> Result {
        let mut data = [0; 4];
        ep.private_data(&mut data)?;
        let status = Reject::parse(&data).map_or(0, |reject| reject as u16);
        let number = self.number;
        dev_err!(
            ctrl.device(),
            "queue {number} was rejected: status {status}\n"
        );
        Err(errno(bindings::ECONNREFUSED))
    }

    /// Connects the queue to the controller, which does not accept commands but Connect yet.
    pub(crate) fn connect(
        self: &Arc<Self>,
        ctrl: &Controller<Host>,
        device: &Arc<Device>,
        addresses: &Addresses,
        size: Size,
    ) -> Result {
        let events = u32::from(size.depth) * (REQUESTS as u32 + 1) + 8;
        let evd = device
            .ia
            .create_evd(Streams::CONNECTION | Streams::DTO, events)?;
        let ep = device
            .pz
            .create_ep((&evd).into(), Some(&attributes(size, device)))?;
        let slots = (slots(size, device)?, size.depth.saturating_sub(1));
        post_receives(size, device, &ep)?;
        let (peer, port) = addresses.peer()?;
        ep.connect(&peer, port.into(), TIMEOUT_US, &self.request(size, ctrl))?;
        self.wait_until_established(ctrl, &evd, &ep)?;
        let handler = Responses {
            queue: self.clone(),
            ctrl: ARef::from(ctrl),
        };
        self.set_link(Link::new(ep, evd.clone(), slots, device.clone()));
        evd.set_handler(handler).inspect_err(|_| self.stop())?;
        Ok(())
    }
}
