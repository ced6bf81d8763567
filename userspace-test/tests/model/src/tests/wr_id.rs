// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the bits of work request ids.

use crate::rust::model::handle::{
    Direction,
    ObjectKey,
    PerDirection,
    SrqWrId,
    WrId,
    LIVES,
    MAX_INDEX,
    MAX_SLOTS, //
};
use proptest::prelude::*;

#[test]
fn the_value_of_each_direction_is_converted() {
    let both = PerDirection {
        requests: 1,
        receives: 2,
    };
    let both = both.map(|value| 10 * value);
    assert_eq!((both.requests, both.receives), (10, 20));
}

#[test]
fn the_bits_of_a_work_request_id() {
    let key = ObjectKey {
        index: 0x4_5678,
        generation: 0xff_ff92_3456,
    };
    let id = WrId::new(0x5234, 0xb, Direction::Receive, key);
    assert_eq!((id.slot, id.life), (0x5234, 0xb));
    assert_eq!(id.ep, 0x4_5678);
    assert_eq!(id.generation, 0x12_3456);
    let raw = 0x5234 | (0xb << 15) | (1 << 20) | (0x4_5678 << 21) | (0x12_3456 << 41);
    assert_eq!(id.into_raw(), raw);
    assert_eq!(WrId::from_raw(raw), id);
    let id = WrId::new(0x5234, 0xb, Direction::Request, key);
    assert_eq!(id.into_raw(), raw & !(1 << 20));
    // A field that is too large does not change the other fields.
    let spilling = WrId {
        slot: u32::MAX,
        life: 0,
        direction: Direction::Request,
        ep: 0,
        generation: 0,
    };
    assert_eq!(spilling.into_raw(), 0x7fff);
    let spilling = WrId {
        slot: 0,
        life: u32::MAX,
        direction: Direction::Request,
        ep: 0,
        generation: 0,
    };
    assert_eq!(spilling.into_raw(), 0xf << 15);
    let spilling = WrId {
        slot: 0,
        life: 0,
        direction: Direction::Request,
        ep: u32::MAX,
        generation: 0,
    };
    assert_eq!(spilling.into_raw(), 0xf_ffff << 21);
    let wide = ObjectKey {
        index: u32::MAX,
        generation: u64::MAX,
    };
    let id = WrId::new(u32::MAX, u32::MAX, Direction::Receive, wide);
    assert_eq!(id.into_raw(), u64::MAX & !(1 << 19));
    assert_eq!(
        (id.slot, id.life, id.ep, id.generation),
        (0x7fff, 0xf, 0xf_ffff, 0x7f_ffff)
    );
}

proptest! {
    #[test]
    fn work_request_ids_convert_in_both_directions(raw in any::<u64>()) {
        let of_ep = raw & !(1 << 19);
        prop_assert_eq!(WrId::from_raw(of_ep).into_raw(), of_ep);
        prop_assert_eq!(SrqWrId::from_raw(of_ep), None);
        // The life is 0, and the direction that of receives.
        let of_srq = raw & !(0xf << 15) | (3 << 19);
        let id = SrqWrId::from_raw(of_srq).expect("an SRQ");
        prop_assert_eq!(id.into_raw(), of_srq);
    }

    #[test]
    fn work_request_ids_of_srqs_keep_their_parts(
        slot in 0..MAX_SLOTS,
        index in 0..MAX_INDEX,
        generation in any::<u64>(),
    ) {
        let key = ObjectKey { index, generation };
        let id = SrqWrId::from_raw(SrqWrId::new(slot, key).into_raw());
        let same = SrqWrId { slot, srq: index, generation: key.short_generation() };
        prop_assert_eq!(id, Some(same));
    }

    #[test]
    fn work_request_ids_keep_their_parts(
        slot in 0..MAX_SLOTS,
        life in 0..LIVES,
        index in 0..MAX_INDEX,
        generation in any::<u64>(),
        receive in any::<bool>(),
    ) {
        let direction = if receive { Direction::Receive } else { Direction::Request };
        let key = ObjectKey { index, generation };
        let id = WrId::from_raw(WrId::new(slot, life, direction, key).into_raw());
        prop_assert_eq!(id, WrId { slot, life, direction, ep: index, generation: key.short_generation() });
    }
}
