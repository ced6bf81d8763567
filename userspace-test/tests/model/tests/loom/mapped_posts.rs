// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A process maps DTOs while the kernel withdraws its promise and posts them.

use super::{
    explore,
    rust::model::{
        atomic::{
            full_barrier,
            AtomicU32,
            AtomicU64, //
        },
        mapped_posts::{
            MappedPosts,
            PostMemory,
            PostWords,
            DTO_WORDS, //
        },
    },
};
use loom::{
    sync::{
        Arc,
        Mutex, //
    },
    thread, //
};

const SLOTS: u32 = 2;

struct Memory {
    words: [AtomicU32; 3],
    dtos: Vec<AtomicU64>,
}

/// The kernel's ring has one reference, the process another.
#[derive(Clone)]
struct Shared(Arc<Memory>);

impl PostMemory for Shared {
    fn words(&self) -> PostWords<'_> {
        let [tail, promise, room] = &self.0.words;
        PostWords {
            tail,
            promise,
            room,
            dtos: &self.0.dtos,
        }
    }
}

/// Kernel's side: the ring and the cookies of the DTOs that were posted.
struct Kernel {
    ring: MappedPosts<Shared>,
    posted: Vec<u64>,
}

impl Kernel {
    /// Keeps the promise.
    fn keep(&mut self) {
        self.ring.withdraw();
        for _ in 0..self.ring.count() {
            let cookie = self.ring.take().cookie;
            self.posted.push(cookie);
        }
    }

    /// Promises to post as many DTOs as there are slots.
    fn promise(&mut self) {
        self.keep();
        self.ring.promise(SLOTS);
    }
}

/// Maps a DTO as `docs/ioctl/dto.md` tells a process to. Returns whether the promise held.
fn map(memory: &Shared, promise: u32, cookie: u64) -> bool {
    let words = memory.words();
    let tail = words.tail.load();
    let start = (tail % SLOTS) as usize * DTO_WORDS;
    words.dtos[start + 1].store(cookie);
    words.tail.store_release(tail.wrapping_add(1));
    full_barrier();
    words.promise.load_acquire() == promise
}

/// A process maps DTOs under a promise, and the timer keeps it meanwhile. Calls `map_one` for each
/// DTO.
fn none_is_missed(map_one: fn(&Shared, u32, u64) -> bool) {
    let words = [0; 3].map(AtomicU32::new);
    let dtos = (0..SLOTS as usize * DTO_WORDS)
        .map(|_| AtomicU64::new(0))
        .collect();
    let memory = Shared(Arc::new(Memory { words, dtos }));
    let ring = MappedPosts::new(memory.clone()).expect("a ring");
    let mut kernel = Kernel {
        ring,
        posted: Vec::new(),
    };
    kernel.promise();
    let kernel = Arc::new(Mutex::new(kernel));
    let timer = {
        let kernel = kernel.clone();
        thread::spawn(move || kernel.lock().expect("no panic").keep())
    };
    let mut expected = Vec::new();
    for cookie in [11, 12] {
        let promise = memory.words().promise.load_acquire();
        if promise == 0 {
            break;
        }
        expected.push(cookie);
        if !map_one(&memory, promise, cookie) {
            // The call posts what the timer has missed.
            kernel.lock().expect("no panic").keep();
        }
    }
    timer.join().expect("it ends");
    let kernel = kernel.lock().expect("no panic");
    assert_eq!(kernel.posted, expected);
}

#[test]
fn a_dto_is_posted_once() {
    explore(|| none_is_missed(map));
}

#[test]
#[should_panic(expected = "left == right")]
fn a_process_must_read_the_promise_again() {
    explore(|| {
        none_is_missed(|memory, promise, cookie| {
            let _ = map(memory, promise, cookie);
            true
        })
    });
}
