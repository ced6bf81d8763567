// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the completion streams of an EVD with a list.

use crate::rust::model::{
    completion::Mode,
    streams::{
        Mismatch,
        Streams, //
    },
};
use proptest::prelude::*;

const DTO: u32 = 0x20;
const RMR_BIND: u32 = 0x80;
const OTHERS: [u32; 4] = [0x001, 0x010, 0x040, 0x100];

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Threshold),
        Just(Mode::Unsignalled),
        Just(Mode::Solicited),
    ]
}

#[test]
fn of_none_everything_counts() {
    assert_eq!(Streams::NONE.mode(), Mode::Threshold);
    assert_eq!(Streams::NONE.count(), 0);
    assert_eq!(Streams::NONE.word(), 0);
}

#[test]
fn what_has_no_flags_shares_an_evd_with_threshold_only() {
    let joins = |mode, flags| Streams::NONE.join(0, mode, 1, flags).is_ok();
    for other in OTHERS {
        assert!(joins(Mode::Threshold, DTO | other));
        assert!(!joins(Mode::Unsignalled, DTO | other));
        assert!(!joins(Mode::Solicited, DTO | other));
    }
    assert!(joins(Mode::Threshold, DTO | RMR_BIND));
    assert!(joins(Mode::Unsignalled, DTO | RMR_BIND));
    assert!(!joins(Mode::Solicited, DTO | RMR_BIND));
    for mode in [Mode::Threshold, Mode::Unsignalled, Mode::Solicited] {
        assert!(joins(mode, DTO));
    }
}

#[test]
fn there_are_not_more_than_can_be_counted() {
    const MOST: u32 = (1 << 24) - 1;
    let full = Streams::NONE.join(0, Mode::Unsignalled, MOST, DTO);
    let full = full.expect("room");
    assert_eq!((full.count(), full.mode()), (MOST, Mode::Unsignalled));
    assert_eq!(full.join(0, Mode::Unsignalled, 1, DTO), Err(Mismatch));
    assert_eq!(
        full.join(0, Mode::Unsignalled, u32::MAX, DTO),
        Err(Mismatch)
    );
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Join(Mode, u32),
    /// This number of streams is replaced, possibly with another mode.
    Change(u32, Mode),
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
        let mut list: Vec<Mode> = Vec::new();
        for act in acts {
            let before = Streams::from_word(word);
            let mut join = |leaving: u32, mode: Mode, count: u32, list: &mut Vec<Mode>| {
                let stays = list.len() - leaving as usize;
                let expected = list[..stays].iter().all(|other| *other == mode);
                let found = before.join(leaving, mode, count, DTO);
                assert_eq!(found.is_ok(), expected);
                if let Ok(after) = found {
                    // As the EVD does: new streams join before the old ones leave.
                    word = word.wrapping_add(after.word().wrapping_sub(before.word()));
                    word -= leaving * Streams::ONE;
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
                    word -= Streams::ONE;
                }
            }
            let now = Streams::from_word(word);
            prop_assert_eq!(now.count() as usize, list.len());
            prop_assert_eq!(now.mode(), list.first().copied().unwrap_or(Mode::Threshold));
        }
    }
}
