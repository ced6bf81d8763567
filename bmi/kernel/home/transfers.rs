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
    Cookie,
    Pieces,
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

impl KernelHome {
    /// Posts the RDMA requests of a transfer.
    pub(super) fn post_transfer(
        &mut self,
        rail: RailId,
        cookie: Cookie,
        transfer: Transfer,
    ) -> Posted {
        let nothing = Posted {
            requests: 0,
            next: transfer.from,
        };
        let Ok((mut dtos, ends)) = self.dtos(rail, cookie, &transfer) else {
            return nothing;
        };
        let Some(ep) = self.connections.ep(rail) else {
            return nothing;
        };
        // An error stops the list; the connection fails then.
        let _ = ep.post_list(&mut dtos);
        let posted = ends.len().saturating_sub(dtos.len());
        if posted < ends.len() {
            for (number, _) in ends.iter().skip(posted) {
                self.requests.remove(*number);
            }
            if posted > 0 {
                // Those that are posted are flushed when the engine closes the rail.
                self.report(Report::Completed(rail, cookie, false));
            }
        }
        match ends.get(posted.wrapping_sub(1)) {
            Some((_, next)) => Posted {
                requests: posted as u16,
                next: *next,
            },
            None => nothing,
        }
    }

    /// Divides a range of a message into requests. Returns them, and the number and the end of
    /// each.
    fn dtos(
        &mut self,
        rail: RailId,
        cookie: Cookie,
        transfer: &Transfer,
    ) -> Result<(KVec<Dto>, KVec<(u64, u64)>)> {
        let parts = self.prepared(transfer.op).ok_or(ENOMEM)?;
        let limits = &self.adapter.limits;
        let segments = match transfer.rdma {
            Rdma::Read => limits.read_segments,
            Rdma::Write => limits.write_segments,
        };
        let segments = (segments as usize).clamp(1, kdat::MAX_SEGMENTS);
        let mut lengths = KVec::with_capacity(parts.len(), GFP_KERNEL)?;
        for (_, _, length) in &parts {
            lengths.push(*length as u64, GFP_KERNEL)?;
        }
        let to = transfer.to.min(transfer.from.saturating_add(LIST_BYTES));
        let most = usize::from(transfer.requests.min(LIST));
        // A field of its own, as the requests change below.
        let held = self.held.get(transfer.op.0.index() as usize);
        let (_, held) = held.and_then(Option::as_ref).ok_or(EINVAL)?;
        let pieces = || {
            Pieces::new(&lengths, &held.remote, transfer.from, to, segments).take(most)
        };
        let count = pieces().count();
        let mut dtos = KVec::with_capacity(count, GFP_KERNEL)?;
        let mut ends = KVec::with_capacity(count, GFP_KERNEL)?;
        for (index, piece) in pieces().enumerate() {
            let place = (piece.fragment, piece.skip as usize);
            let local = local_parts(&parts, place, piece.length as usize)?;
            let remote = Remote {
                address: piece.address,
                length: piece.length,
                context: piece.context,
            };
            let work = match index + 1 == count {
                true => Work::Last(cookie),
                false => Work::Earlier,
            };
            let number = self.requests.insert(Request { rail, work })?;
            let dto = match transfer.rdma {
                Rdma::Read => Dto::read_parts(local, remote),
                Rdma::Write => Dto::write_parts(local, remote),
            };
            dtos.push(dto.context(number), GFP_KERNEL)?;
            ends.push((number, piece.offset + u64::from(piece.length)), GFP_KERNEL)?;
        }
        Ok((dtos, ends))
    }
}
