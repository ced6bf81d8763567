// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Single rules of the protocol.

use super::pair::{
    Pair,
    CLIENT,
    SERVER, //
};
use crate::sim::{
    Settings,
    SMALL, //
};

const PULL: Settings = Settings {
    pull: true,
    ..SMALL
};

#[test]
fn all_lengths() {
    for settings in [SMALL, PULL] {
        let mut pair = Pair::new(1, settings);
        for length in [0, 1, 207, 208, 209, 4096, 100_000] {
            for fragments in [(1, 1), (7, 2), (1, 9), (11, 13)] {
                pair.transfer(CLIENT, 5, length, fragments);
                pair.transfer(SERVER, 5, length, fragments);
            }
        }
        assert_eq!(pair.world.violations, 0);
    }
}
