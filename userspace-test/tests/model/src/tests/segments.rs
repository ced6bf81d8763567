// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares a table of segments with a vector.

use crate::rust::model::segments::SegmentedTable;
use proptest::prelude::*;

/// Returns a table in which each entry holds its index, and the number of entries.
fn grown(segments: u32) -> (SegmentedTable<Vec<u32>>, u32) {
    let mut table = SegmentedTable::new();
    let mut len = 0;
    for _ in 0..segments {
        let more =
            u32::try_from(table.next_len().expect("the limit is not reached")).expect("a segment");
        assert_eq!(table.grow((len..len + more).collect()), Ok(()));
        len += more;
    }
    (table, len)
}

#[test]
fn segments_double() {
    let mut table = SegmentedTable::<Vec<u8>>::new();
    for (len, next) in [(0, 16), (16, 32), (48, 64), (112, 128)] {
        assert_eq!((table.len(), table.next_len()), (len, Some(next)));
        for wrong in [0, 1, next - 1, next + 1, next * 2] {
            assert_eq!(table.grow(vec![0; wrong]), Err(vec![0; wrong]));
        }
        assert_eq!(table.grow(vec![0; next]), Ok(()));
    }
}

#[test]
fn each_index_has_its_own_entry() {
    let (mut table, len) = grown(6);
    assert_eq!((len, table.len()), (1008, 1008));
    for index in 0..len {
        assert_eq!(table.get(index), Some(&index));
        *table.get_mut(index).expect("an entry") += 7;
    }
    for index in 0..len {
        assert_eq!(table.get(index), Some(&(index + 7)));
    }
    for behind in [
        len,
        len + 1,
        4 * len,
        u32::MAX - 16,
        u32::MAX - 15,
        u32::MAX,
    ] {
        assert_eq!(table.get(behind), None);
        assert_eq!(table.get_mut(behind), None);
    }
}

#[test]
fn a_table_has_an_end() {
    let (mut table, len) = grown(17);
    assert!(len >= 1 << 20, "as many as an adapter has handles");
    assert_eq!(table.next_len(), None);
    assert_eq!(table.get(len - 1), Some(&(len - 1)));
    for wrong in [0, 16, 1 << 20] {
        assert_eq!(table.grow(vec![0; wrong]), Err(vec![0; wrong]));
    }
    assert_eq!(table.len(), len);
}

proptest! {
    #[test]
    fn like_a_vector(segments in 0..8_u32, indices in prop::collection::vec(0..5000_u32, 0..50)) {
        let (table, len) = grown(segments);
        for index in indices {
            prop_assert_eq!(table.get(index).copied(), (index < len).then_some(index));
        }
    }
}
