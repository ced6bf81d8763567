// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Asks for delays one after the other.

use crate::rust::model::shortest_delay::ShortestDelay;
use proptest::prelude::*;
use std::cell::Cell;

proptest! {
    #[test]
    fn the_timer_has_the_shortest_delay_of_a_round(rounds in prop::collection::vec(
        prop::collection::vec(any::<u32>(), 1..6), 1..4))
    {
        let shortest = ShortestDelay::new();
        for delays in rounds {
            let (queued, mut least) = (Cell::new(None), None);
            for delay in delays {
                let queue = |delay| queued.set(queued.get().or(Some(delay)));
                shortest.ask(delay, queue, || queued.set(None));
                // The largest number is no delay.
                let delay = delay.min(u32::MAX - 1);
                least = Some(least.map_or(delay, |least: u32| least.min(delay)));
                prop_assert_eq!(queued.get(), least);
            }
            shortest.end();
        }
    }
}
