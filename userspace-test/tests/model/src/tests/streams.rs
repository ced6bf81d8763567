// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the completion streams of an EVD with a list.

use crate::rust::model::{
    completion::WakeMode,
    streams::{
        IncompatibleStreams,
        StreamSet, //
    },
};
use proptest::prelude::*;

const DTO: u32 = 0x20;
const RMR_BIND: u32 = 0x80;
const OTHERS: [u32; 4] = [0x001, 0x010, 0x040, 0x100];

fn mode() -> impl Strategy<Value = WakeMode> {
    prop_oneof![
        Just(WakeMode::Threshold),
        Just(WakeMode::Unsignalled),
        Just(WakeMode::Solicited),
    ]
}

#[test]
fn without_streams_the_mode_is_threshold() {
    assert_eq!(StreamSet::NONE.mode(), WakeMode::Threshold);
    assert_eq!(StreamSet::NONE.count(), 0);
    assert_eq!(StreamSet::NONE.word(), 0);
}

#[test]
fn other_streams_share_an_evd_with_mode_threshold_only() {
    let joins = |mode, flags| StreamSet::NONE.try_join(0, mode, 1, flags).is_ok();
    for other in OTHERS {
        assert!(joins(WakeMode::Threshold, DTO | other));
        assert!(!joins(WakeMode::Unsignalled, DTO | other));
        assert!(!joins(WakeMode::Solicited, DTO | other));
    }
    assert!(joins(WakeMode::Threshold, DTO | RMR_BIND));
    assert!(joins(WakeMode::Unsignalled, DTO | RMR_BIND));
    assert!(!joins(WakeMode::Solicited, DTO | RMR_BIND));
    for mode in [
        WakeMode::Threshold,
        WakeMode::Unsignalled,
        WakeMode::Solicited,
    ] {
        assert!(joins(mode, DTO));
    }
}

#[test]
fn the_number_of_streams_is_limited() {
    const MOST: u32 = (1 << 24) - 1;
    let full = StreamSet::NONE.try_join(0, WakeMode::Unsignalled, MOST, DTO);
    let full = full.expect("room");
    assert_eq!((full.count(), full.mode()), (MOST, WakeMode::Unsignalled));
    assert_eq!(
        full.try_join(0, WakeMode::Unsignalled, 1, DTO),
        Err(IncompatibleStreams)
    );
    assert_eq!(
        full.try_join(0, WakeMode::Unsignalled, u32::MAX, DTO),
        Err(IncompatibleStreams)
    );
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Join(WakeMode, u32),
    /// This number of streams is replaced, possibly with another mode.
    Change(u32, WakeMode),
    Leave,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (mode(), 1..=2_u32).prop_map(|(mode, count)| Act::Join(mode, count)),
        2 => (1..=2_u32, mode()).prop_map(|(count, mode)| Act::Change(count, mode)),
        3 => Just(Act::Leave),
    ]
}

proptest! {
    #[test]
    fn all_of_a_kind(acts in prop::collection::vec(act(), 0..60)) {
        let mut word = 0_u32;
        let mut list: Vec<WakeMode> = Vec::new();
        for act in acts {
            let before = StreamSet::from_word(word);
            let mut join = |leaving: u32, mode: WakeMode, count: u32, list: &mut Vec<WakeMode>| {
                let stays = list.len() - leaving as usize;
                let expected = list[..stays].iter().all(|other| *other == mode);
                let found = before.try_join(leaving, mode, count, DTO);
                assert_eq!(found.is_ok(), expected);
                if let Ok(after) = found {
                    // As the EVD does: new streams join before the old ones leave.
                    word = word.wrapping_add(after.word().wrapping_sub(before.word()));
                    word -= leaving * StreamSet::ONE;
                    list.truncate(stays);
                    list.extend((0..count).map(|_| mode));
                }
            };
            match act {
                Act::Join(mode, count) => join(0, mode, count, &mut list),
                Act::Change(count, mode) => {
                    let count = count.min(list.len() as u32);
                    join(count, mode, count, &mut list);
                }
                Act::Leave => if list.pop().is_some() {
                    word -= StreamSet::ONE;
                }
            }
            let now = StreamSet::from_word(word);
            prop_assert_eq!(now.count() as usize, list.len());
            prop_assert_eq!(now.mode(), list.first().copied().unwrap_or(WakeMode::Threshold));
        }
    }
}
