// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! RDMA requests.

use super::{DatHome, Report, Request};
use crate::bmi::engine::{of_rail, Cookie, Pieces, Place, Posted, RailId, Rdma, Transfer};
use libkdapl::{CompletionFlags, Dto, DtoOperation, Segment};

/// Cookie of requests without an event of their own. If one fails, so does the last one after it.
pub(crate) const SILENT: u64 = (1 << 62) - 1;

/// Requests that are posted at once, and their bytes. Messages to the peer wait for them, also
/// those that say that this side lives.
const LIST: u16 = 64;
const LIST_BYTES: u64 = 8 << 20;

/// An RDMA request.
struct Piece {
    local: Vec<Segment>,
    remote: Segment,
    /// Byte after the last one that it moves.
    end: u64,
}

impl DatHome {
    /// Posts the RDMA requests of a transfer.
    pub(super) fn post_transfer(
        &mut self,
        rail: RailId,
        cookie: Cookie,
        transfer: Transfer,
    ) -> Posted {
        let nothing = Posted { requests: 0, next: transfer.from };
        let (Some(ep), Some(pieces)) = (self.ep(rail), self.pieces(rail, &transfer)) else {
            return nothing;
        };
        let number = self.requests.insert(Request::Rdma(rail, cookie));
        let dtos = dtos(&pieces, transfer.rdma, number as u64);
        let posted = ep.submit(&dtos, None).posted;
        if posted < pieces.len() {
            self.requests.remove(number);
            if posted > 0 {
                // Those that are posted are flushed when the engine closes the rail.
                self.reports.push_back(Report::Completed(rail, cookie, false));
            }
        }
        match pieces.get(posted.wrapping_sub(1)) {
            Some(last) => Posted { requests: posted as u16, next: last.end },
            None => nothing,
        }
    }

    /// Divides a range of a message into requests.
    fn pieces(&mut self, rail: RailId, transfer: &Transfer) -> Option<Vec<Piece>> {
        let device = self.connections.device(rail)?;
        let (writes, reads) = self.devices.adapter(device).rdma_segments();
        let segments = match transfer.rdma {
            Rdma::Read => reads,
            Rdma::Write => writes,
        };
        let (parts, remote) = self.for_transfer(Place { op: transfer.op, device })?;
        let remote = of_rail(remote, rail.rail);
        let lengths = parts.lengths();
        let to = transfer.to.min(transfer.from.saturating_add(LIST_BYTES));
        let (from, most) = (transfer.from, transfer.requests.min(LIST));
        let pieces = Pieces::new(&lengths, remote, from, to, segments as usize);
        let pieces = pieces.take(most.into()).map(|piece| Piece {
            local: parts.segments(
                device,
                (piece.fragment, piece.skip as usize),
                piece.length as usize,
            ),
            remote: Segment {
                address: piece.address,
                length: piece.length,
                context: piece.context,
            },
            end: piece.offset + u64::from(piece.length),
        });
        let pieces: Vec<_> = pieces.collect();
        (!pieces.is_empty()).then_some(pieces)
    }
}

/// Returns the requests. Only the last one has an event, and the cookie `number`.
fn dtos(pieces: &[Piece], rdma: Rdma, number: u64) -> Vec<Dto<'_>> {
    let operation = match rdma {
        Rdma::Read => DtoOperation::RdmaRead,
        Rdma::Write => DtoOperation::RdmaWrite,
    };
    let last = pieces.len() - 1;
    let dto = |(index, piece)| {
        let piece: &Piece = piece;
        let (cookie, flags) = match index == last {
            true => (number, CompletionFlags::default()),
            false => (SILENT, CompletionFlags::SUPPRESS),
        };
        Dto::new(operation, &piece.local, Some(piece.remote), cookie, flags)
    };
    pieces.iter().enumerate().map(dto).collect()
}
