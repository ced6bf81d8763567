// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Flow control, with all interleavings of two sides.

use crate::bmi::engine::{
    Class,
    Credits,
    Window, //
};
use std::collections::{
    HashSet,
    VecDeque, //
};

/// Both sides, and the messages on their way in each direction.
#[derive(Clone)]
struct Sides {
    credits: [Credits; 2],
    on_the_way: [VecDeque<(Class, Window)>; 2],
    /// Data messages that the consumer has not taken.
    untaken: [u16; 2],
}

impl Sides {
    fn new(windows: [Window; 2]) -> Self {
        Self {
            credits: [
                Credits::new(windows[0], windows[1]),
                Credits::new(windows[1], windows[0]),
            ],
            on_the_way: Default::default(),
            untaken: [0; 2],
        }
    }

    fn key(&self) -> String {
        format!(
            "{:?} {:?} {:?}",
            self.credits, self.on_the_way, self.untaken
        )
    }

    fn send(&mut self, side: usize, class: Class) {
        let returned = self.credits[side].send(class);
        self.on_the_way[1 - side].push_back((class, returned));
    }

    /// Returns the states after each possible step.
    fn steps(&self) -> Vec<Self> {
        let mut next = Vec::new();
        for side in [0, 1] {
            for class in [Class::Data, Class::Control] {
                if self.credits[side].available(class) > 0 {
                    next.push(self.with(|sides| sides.send(side, class)));
                }
            }
            if self.credits[side].must_return(false) {
                next.push(self.with(|sides| sides.send(side, Class::Control)));
            }
            if !self.on_the_way[side].is_empty() {
                next.push(self.with(|sides| sides.deliver(side)));
            }
            if self.untaken[side] > 0 {
                next.push(self.with(|sides| {
                    sides.untaken[side] -= 1;
                    sides.credits[side].taken(Class::Data);
                }));
            }
        }
        next
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut sides = self.clone();
        change(&mut sides);
        sides
    }

    fn deliver(&mut self, side: usize) {
        let (class, returned) = self.on_the_way[side].pop_front().expect("a message");
        assert!(
            self.credits[side].arrive(class, returned),
            "an honest message is refused"
        );
        match class {
            Class::Data => self.untaken[side] += 1,
            Class::Control => self.credits[side].taken(Class::Control),
        }
    }

    /// Delivers all, and returns credits, but takes no data. Then both must be able to send control
    /// messages.
    fn expect_no_deadlock(mut self) {
        for _ in 0..100 {
            for side in [0, 1] {
                while !self.on_the_way[side].is_empty() {
                    self.deliver(side);
                }
                if self.credits[side].must_return(false) {
                    self.send(side, Class::Control);
                }
            }
        }
        assert!(
            self.on_the_way.iter().all(VecDeque::is_empty),
            "CREDIT forever"
        );
        for side in [0, 1] {
            assert!(
                self.credits[side].available(Class::Control) > 0,
                "{}",
                self.key()
            );
        }
    }
}

/// Visits each state that can be reached.
fn explore(windows: [Window; 2]) -> usize {
    let start = Sides::new(windows);
    let mut seen = HashSet::from([start.key()]);
    let mut queue = VecDeque::from([start]);
    while let Some(sides) = queue.pop_front() {
        for (side, way) in sides.on_the_way.iter().enumerate() {
            let count = |of| way.iter().filter(|message| message.0 == of).count();
            assert!(count(Class::Data) <= usize::from(windows[side].data));
            assert!(count(Class::Control) <= usize::from(windows[side].control));
        }
        for next in sides.steps() {
            if seen.insert(next.key()) {
                queue.push_back(next);
            }
        }
        sides.expect_no_deadlock();
    }
    seen.len()
}

#[test]
fn no_interleaving_deadlocks_or_overflows() {
    let window = |data, control| Window { data, control };
    assert!(explore([window(1, 4), window(1, 4)]) > 1000);
    assert!(explore([window(1, 4), window(1, 5)]) > 1000);
}

#[test]
fn the_last_control_credit_returns_control_credits() {
    let window = Window {
        data: 2,
        control: 4,
    };
    let mut credits = Credits::new(window, window);
    for left in [3, 2, 1] {
        assert_eq!(credits.available(Class::Control), left);
        credits.send(Class::Control);
    }
    assert_eq!(credits.available(Class::Control), 0);
    assert!(!credits.must_return(true), "not for an answer to PING");
    for _ in 0..2 {
        assert!(!credits.must_return(false));
        assert!(credits.arrive(Class::Control, Window::default()));
        credits.taken(Class::Control);
    }
    assert!(credits.must_return(false), "half of the window is owed");
    credits.send(Class::Control);
    assert!(!credits.must_return(true));
}
