// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! EVDs are attached to a CNO without vacant seats while one of its EVDs triggers.

use super::{
    explore,
    rust::model::cno::{
        Number,
        Roster,
        Seat, //
    },
};
use loom::{
    sync::{
        Arc,
        Mutex, //
    },
    thread,
};

type Cno = Mutex<Roster<Vec<Seat>>>;

/// Returns a CNO whose seats are taken by the EVDs 0 to 15, and the seat of the last one.
fn full() -> (Arc<Cno>, Number) {
    let mut roster = Roster::new();
    assert!(roster.grow(vec![Seat::VACANT; 16]).is_ok());
    let seats = (0..16).map(|evd| roster.attach(evd));
    let last = seats.last().and_then(Result::ok).expect("a seat");
    (Arc::new(Mutex::new(roster)), last)
}

/// Attaches an EVD as `Cno::attach` does, but adds seats at most `tries` times.
fn attach(cno: &Cno, evd: u64, tries: u32) -> Option<Number> {
    for _ in 0..tries {
        let full = match cno.lock().expect("the CNO").attach(evd) {
            Ok(seat) => return Some(seat),
            Err(full) => full,
        };
        let seats = vec![Seat::VACANT; full.wanted?];
        let added = cno.lock().expect("the CNO").grow(seats);
        if tries == 1 {
            // The error: assumes that no other thread adds or takes seats.
            added.ok()?;
        }
    }
    cno.lock().expect("the CNO").attach(evd).ok()
}

/// Two EVDs are attached, while an attached one triggers and is handed out.
fn two_come(tries: u32) {
    let (cno, last) = full();
    let comers = [20, 21].map(|evd| {
        let cno = cno.clone();
        thread::spawn(move || attach(&cno, evd, tries).expect("a seat"))
    });
    {
        let mut roster = cno.lock().expect("the CNO");
        assert!(roster.trigger(last));
        assert_eq!(roster.take(), Some(15));
    }
    let seats = comers.map(|comer| comer.join().expect("no panic"));
    assert_ne!(seats[0], seats[1]);
    let roster = cno.lock().expect("the CNO");
    assert_eq!(roster.evds(), 18);
    assert_eq!(seats.map(|seat| roster.evd(seat)), [20, 21]);
    assert_eq!(roster.unclear(), Some((last, 15)));
}

#[test]
fn each_gets_a_seat_of_its_own() {
    explore(|| two_come(2));
}

#[test]
#[should_panic]
fn whose_seats_come_too_late_has_to_try_again() {
    explore(|| two_come(1));
}
