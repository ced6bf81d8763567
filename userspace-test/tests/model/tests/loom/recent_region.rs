// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory is freed while a post names it by its copy of the region.

use super::{
    explore,
    rust::model::recent_region::{
        Editions,
        RecentRegion, //
    },
};
use loom::{
    sync::{
        Arc,
        Mutex, //
    },
    thread,
};

const CONTEXT: u32 = 7;

/// An Endpoint with a copy of the region.
struct Ep {
    copy: RecentRegion,
    /// A DTO in flight names the region.
    names: bool,
}

/// A PZ with one region, and an Endpoint of it.
struct Pz {
    editions: Editions,
    /// The region is in the table.
    table: Mutex<bool>,
    ep: Mutex<Ep>,
}

/// The step that is taken too late.
#[derive(Clone, Copy, PartialEq)]
enum Error {
    None,
    /// The edition is advanced after the search.
    LateEdition,
    /// The post stores its DTO after it has released the lock.
    LateDto,
}

impl Pz {
    fn new() -> Self {
        let editions = Editions::new(1);
        let copy = RecentRegion {
            edition: editions.current(),
            context: CONTEXT,
            address: 0,
            length: 64,
            device_address: 0,
            writable: true,
        };
        Self {
            editions,
            table: Mutex::new(true),
            ep: Mutex::new(Ep { copy, names: false }),
        }
    }

    /// Posts a DTO by the copy. Returns whether it was posted.
    fn post(&self, error: Error) -> bool {
        let mut ep = self.ep.lock().expect("the Endpoint");
        let now = self.editions.current();
        let posts = ep.copy.place(now, CONTEXT, 0, 64, true).is_some();
        if error == Error::LateDto {
            drop(ep);
            ep = self.ep.lock().expect("the Endpoint");
        }
        ep.names = posts;
        posts
    }

    fn hide(&self) {
        let mut table = self.table.lock().expect("the table");
        self.editions.advance();
        *table = false;
    }

    /// Frees the memory unless a DTO names it. Returns whether it was freed.
    fn free(&self, error: Error) -> bool {
        if error != Error::LateEdition {
            self.hide();
        }
        let is_named = self.ep.lock().expect("the Endpoint").names;
        if error == Error::LateEdition {
            self.hide();
        }
        !is_named
    }
}

fn a_post_beside_a_free(error: Error) {
    let pz = Arc::new(Pz::new());
    let post = thread::spawn({
        let pz = pz.clone();
        move || pz.post(error)
    });
    let free = thread::spawn(move || pz.free(error));
    let (posted, freed) = (post.join(), free.join());
    assert_ne!(posted.expect("no panic"), freed.expect("no panic"));
}

#[test]
fn memory_is_freed_or_named_never_both() {
    explore(|| a_post_beside_a_free(Error::None));
}

#[test]
#[should_panic]
fn the_edition_begins_before_the_search() {
    explore(|| a_post_beside_a_free(Error::LateEdition));
}

#[test]
#[should_panic]
fn a_dto_is_stored_under_the_lock_of_the_edition() {
    explore(|| a_post_beside_a_free(Error::LateDto));
}
