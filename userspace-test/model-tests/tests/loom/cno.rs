// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Events that trigger a CNO while their EVD is handed out: each is either found by whoever it is
//! handed to, or triggers anew.

use super::{
    explore,
    rust::model::cno::Pending, //
};
use loom::{
    sync::{
        atomic::{
            AtomicBool,
            AtomicU32,
            Ordering, //
        },
        Arc,
        Mutex, //
    },
    thread,
};

/// Whether an EVD has said that it has something, and how it must not be done.
enum Word {
    Right(Pending),
    /// A load and then a store.
    LoadAndStore(AtomicBool),
    /// Taken back after the look.
    LoweredLate(Pending),
}

impl Word {
    fn raise(&self) -> bool {
        match self {
            Self::Right(pending) | Self::LoweredLate(pending) => pending.raise(),
            Self::LoadAndStore(flag) => {
                let news = !flag.load(Ordering::Acquire);
                if news {
                    flag.store(true, Ordering::Release);
                }
                news
            }
        }
    }

    fn lower(&self) {
        match self {
            Self::Right(pending) | Self::LoweredLate(pending) => pending.lower(),
            Self::LoadAndStore(flag) => flag.store(false, Ordering::Release),
        }
    }
}

/// An EVD and its CNO.
struct Scene {
    /// Events in the ring: published with release, as the ring does.
    queued: AtomicU32,
    word: Word,
    /// How often the EVD lies in the CNO's queue.
    triggered: Mutex<u32>,
}

impl Scene {
    /// Somebody brings an event.
    fn bring(&self) {
        self.queued.fetch_add(1, Ordering::Release);
        if self.word.raise() {
            *self.triggered.lock().expect("the CNO") += 1;
        }
    }

    /// Hands the EVD out, if it has triggered; the consumer takes what it finds.
    fn hand_out(&self) -> u32 {
        let mut triggered = self.triggered.lock().expect("the CNO");
        if *triggered == 0 {
            return 0;
        }
        *triggered -= 1;
        drop(triggered);
        match self.word {
            Word::LoweredLate(_) => {
                let found = self.take();
                self.word.lower();
                found
            }
            Word::Right(_) | Word::LoadAndStore(_) => {
                self.word.lower();
                self.take()
            }
        }
    }

    fn take(&self) -> u32 {
        let found = self.queued.load(Ordering::Acquire);
        self.queued.fetch_sub(found, Ordering::Relaxed);
        found
    }
}

/// Two bring an event each while the EVD is handed out.
fn play(word: fn() -> Word) {
    explore(move || {
        let scene = Arc::new(Scene {
            queued: AtomicU32::new(0),
            word: word(),
            triggered: Mutex::new(0),
        });
        let bringers: Vec<_> = (0..2)
            .map(|_| {
                let scene = scene.clone();
                thread::spawn(move || scene.bring())
            })
            .collect();
        let taker = {
            let scene = scene.clone();
            thread::spawn(move || scene.hand_out())
        };
        let mut found = taker.join().expect("the taker");
        for bringer in bringers {
            bringer.join().expect("a bringer");
        }
        assert!(
            *scene.triggered.lock().expect("the CNO") <= 1,
            "queued twice"
        );
        // As often as it has triggered, and not once more.
        while *scene.triggered.lock().expect("the CNO") > 0 {
            found += scene.hand_out();
        }
        assert_eq!(found, 2, "an event is forgotten");
    });
}

#[test]
fn no_event_is_forgotten() {
    play(|| Word::Right(Pending::new()));
}

#[test]
#[should_panic]
fn with_a_load_and_a_store_an_evd_is_queued_twice() {
    play(|| Word::LoadAndStore(AtomicBool::new(false)));
}

#[test]
#[should_panic(expected = "an event is forgotten")]
fn taken_back_after_the_look_an_event_is_forgotten() {
    play(|| Word::LoweredLate(Pending::new()));
}
