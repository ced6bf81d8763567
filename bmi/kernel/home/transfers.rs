// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RDMA requests.

use super::{
    memory::local_parts,
    KernelHome,
    Report,
    Request,
    Work, //
};
use crate::engine::{
    of_rail,
    Cookie,
    Pieces,
    Place,
    Posted,
    RailId,
    Rdma,
    Transfer, //
};
use kdat::{
    Dto,
    Remote, //
};
use kernel::prelude::*;

/// Requests that are posted at once, and their bytes. Messages to the peer wait for them, also
/// those that say that this side lives.
const LIST: u16 = 64;
const LIST_BYTES: u64 = 8 << 20;

/// Requests of a call.
#[derive(Default)]
struct Requests {
    dtos: KVec<Dto>,
    /// Their numbers, and the ends of the ranges that they move.
    ends: KVec<(u64, u64)>,
}

impl KernelHome {
    /// Posts the RDMA requests of a transfer.
    pub(super) fn post_transfer(
        &mut self,
        rail: RailId,
        cookie: Cookie,
        transfer: Transfer,
    ) -> Posted {
        let mut requests = Requests::default();
        if self.divide(rail, &transfer, &mut requests).is_err() {
            self.forget(&requests.ends, 0);
            requests = Requests::default();
        }
        let Requests { mut dtos, ends } = requests;
        let mark = ends
            .last()
            .and_then(|(number, _)| self.requests.get_mut(*number));
        if let Some(last) = mark {
            last.work = Work::Last(cookie);
        }
        if let Some(ep) = self.connections.ep(rail) {
            // An error stops the list. The connection fails then.
            let _ = ep.post_list(&mut dtos);
        }
        let posted = ends.len().saturating_sub(dtos.len());
        self.forget(&ends, posted);
        if posted > 0 && posted < ends.len() {
            // Those that are posted are flushed when the engine closes the rail.
            self.report(Report::Completed(rail, cookie, false));
        }
        let last = ends.get(posted.wrapping_sub(1));
        Posted {
            requests: posted as u16,
            next: last.map_or(transfer.from, |(_, next)| *next),
        }
    }

    /// Forgets the requests that were not posted.
    fn forget(&mut self, ends: &[(u64, u64)], posted: usize) {
        for (number, _) in ends.iter().skip(posted) {
            self.requests.remove(*number);
        }
    }

    /// Divides a range of a message into requests.
    fn divide(&mut self, rail: RailId, transfer: &Transfer, requests: &mut Requests) -> Result {
        let device = self.connections.device(rail).ok_or(EINVAL)?;
        let op = transfer.op;
        let parts = self.for_transfer(Place { op, device }).ok_or(ENOMEM)?;
        let mut lengths = KVec::with_capacity(parts.len(), GFP_KERNEL)?;
        for (_, _, length) in &parts {
            lengths.push(*length as u64, GFP_KERNEL)?;
        }
        let (writes, reads) = self.devices.adapter(device).rdma_segments();
        let segments = match transfer.rdma {
            Rdma::Read => reads,
            Rdma::Write => writes,
        } as usize;
        let to = transfer.to.min(transfer.from.saturating_add(LIST_BYTES));
        let most = usize::from(transfer.requests.min(LIST));
        let mut from = transfer.from;
        while requests.dtos.len() < most && from < to {
            let held = self.held(op).ok_or(EINVAL)?;
            let remote = of_rail(&held.remote, rail.rail);
            let pieces = &mut Pieces::new(&lengths, remote, from, to, segments);
            let Some(piece) = pieces.next() else {
                break;
            };
            let place = (piece.fragment, piece.skip as usize);
            let (local, bytes) = local_parts(&parts, place, piece.length as usize, segments)?;
            let remote = Remote {
                address: piece.address,
                length: bytes as u32,
                context: piece.context,
            };
            if bytes == 0 {
                break;
            }
            from = from.saturating_add(bytes as u64);
            requests.ends.reserve(1, GFP_KERNEL)?;
            let work = Work::Earlier;
            let number = self.requests.insert(Request { rail, work })?;
            requests.ends.push((number, from), GFP_KERNEL)?;
            let dto = match transfer.rdma {
                Rdma::Read => Dto::read_parts(local, remote),
                Rdma::Write => Dto::write_parts(local, remote),
            };
            requests.dtos.push(dto.context(number), GFP_KERNEL)?;
        }
        Ok(())
    }
}
