// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Limits of a user's account, from the module parameters.

use crate::model::allowance::{
    share_of,
    Item, //
};
use kdapl_bindings as bindings;

/// Returns the value of a module parameter.
fn parameter(which: bindings::kdapl_limit) -> u32 {
    // SAFETY: The helper only reads a number.
    unsafe { bindings::kdapl_helper_user_limit(which) }
}

/// Returns how much of an item one user may hold.
pub(super) fn limit(item: Item) -> u32 {
    parameter(match item {
        Item::Adapter => bindings::kdapl_limit_KDAPL_LIMIT_ADAPTERS,
        Item::Object => bindings::kdapl_limit_KDAPL_LIMIT_OBJECTS,
        Item::ServicePoint => bindings::kdapl_limit_KDAPL_LIMIT_SERVICE_POINTS,
        Item::QueuePair => bindings::kdapl_limit_KDAPL_LIMIT_QUEUE_PAIRS,
        Item::DriverMemory => bindings::kdapl_limit_KDAPL_LIMIT_DRIVER_MEMORY_KB,
        Item::ModuleMemory => bindings::kdapl_limit_KDAPL_LIMIT_MODULE_MEMORY_KB,
        Item::PinnedMemory => bindings::kdapl_limit_KDAPL_LIMIT_PINNED_MEMORY_KB,
        // These are limited by the user's share of the device and by the limit on objects.
        Item::CompletionQueue | Item::Domain | Item::SharedReceiveQueue | Item::Region => {
            return u32::MAX
        }
        // This is limited by the user's share of the network namespace's ports.
        Item::LocalPort => return u32::MAX,
    })
}

/// Returns how many of an item one user may hold on a device that has `available` of them.
pub(super) fn device_share(available: u32) -> u32 {
    let percentage = parameter(bindings::kdapl_limit_KDAPL_LIMIT_DEVICE_SHARE);
    share_of(available, percentage)
}

/// Returns how many local ports one user may hold if a network namespace has `available`.
pub(super) fn port_share(available: u32) -> u32 {
    share_of(
        available,
        parameter(bindings::kdapl_limit_KDAPL_LIMIT_PORT_SHARE),
    )
}

/// Returns how many of an item the calling process's user may hold on a device that has `available`
/// of them, or does not report their number if that is 0.
pub(crate) fn most(item: Item, available: u32) -> u32 {
    // SAFETY: The helper only reads the calling process.
    if unsafe { bindings::kdapl_helper_is_unlimited() } {
        return available;
    }
    device_share(available).min(limit(item))
}
