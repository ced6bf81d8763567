// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the handles of consumers in the kernel.

use crate::rust::model::handle::{
    Handle,
    HandleKind,
    KernelHandle,
    MAX_ADAPTERS, //
};
use proptest::prelude::*;

#[test]
fn the_bits_of_an_outer_handle() {
    // Kind, 40 bits of generation, index.
    let handle = Handle::from_raw((2 << 60) | (0x12_3456_789a << 20) | 0xbcdef);
    let outer = KernelHandle::new(0x1_5555, handle);
    assert_eq!(outer.kind(), Some(HandleKind::Ep));
    assert_eq!(outer.adapter(), 0x1_5555);
    assert_eq!(outer.index(), 0xbcdef);
    assert_eq!(outer.generation(), handle.key().short_generation());
    assert_eq!(
        outer.into_raw(),
        (2 << 60) | (0x1_5555 << 43) | (u64::from(handle.key().short_generation()) << 20) | 0xbcdef
    );
    assert_eq!(MAX_ADAPTERS, 1 << 17);
}

#[test]
fn the_null_handle_is_converted_to_null() {
    let none = KernelHandle::new(7, Handle::from_raw(0));
    assert_eq!(none, KernelHandle::NULL);
    assert_eq!(none.into_raw(), 0);
    assert_eq!(KernelHandle::from_raw(0).kind(), None);
}

proptest! {
    #[test]
    fn outer_handles_keep_their_parts(raw in 1_u64..0xd000_0000_0000_0000, adapter in 0..MAX_ADAPTERS) {
        let handle = Handle::from_raw(raw);
        let outer = KernelHandle::from_raw(KernelHandle::new(adapter, handle).into_raw());
        prop_assert_eq!(outer.kind(), handle.kind());
        prop_assert_eq!(outer.adapter(), adapter);
        prop_assert_eq!(outer.index(), handle.key().index);
        prop_assert_eq!(outer.generation(), handle.key().short_generation());
    }

    #[test]
    fn handles_of_two_adapters_differ(raw in 1_u64.., one in 0..MAX_ADAPTERS, other in 0..MAX_ADAPTERS) {
        let handle = Handle::from_raw(raw);
        let same = KernelHandle::new(one, handle) == KernelHandle::new(other, handle);
        prop_assert_eq!(same, one == other);
    }
}
