// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Length of a home's event queue, for which no event of a connection is lost.
//!
//! A queue of kDAPL keeps completions at the device, and refuses requests of peers, while it has no
//! room. An event of a connection can do neither, and is lost. kDAPL has places beyond the length
//! of the queue for these events, fewer than the length by a batch of completions. An Endpoint has
//! two such events in the queue at most: its beginning and its end. A home frees an Endpoint after
//! its events.

/// Events of a connection: that of its beginning, and that of its end.
const OF_ENDPOINT: usize = 2;

/// Completions that kDAPL may queue beyond the length: a quarter of a short queue, and no more than
/// so many.
const BATCH: u32 = 8;

/// Returns the number of Endpoints whose events find room in a queue of this length.
fn endpoints(length: u32) -> usize {
    let batch = (length / 4).clamp(1, BATCH);
    length.saturating_sub(batch) as usize / OF_ENDPOINT
}

/// Returns the length that the queue needs for so many Endpoints; `None` if it is long enough.
pub(crate) fn longer_queue(length: u32, count: usize) -> Option<u32> {
    let mut longer = length.max(1);
    while endpoints(longer) < count && longer < 1 << 30 {
        longer *= 2;
    }
    (longer != length).then_some(longer)
}
