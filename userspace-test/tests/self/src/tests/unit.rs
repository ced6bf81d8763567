// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Checks the list of all tests.

#[test]
fn identifiers_are_unique() {
    let mut ids: Vec<_> = super::all().iter().map(|test| test.id.to_string()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "two tests have the same identifier");
    assert!(ids.contains(&"evd_resize.keeps_events".to_string()), "{ids:?}");
}

#[test]
fn an_identifier_is_in_its_groups() {
    let tests = super::all();
    let test = tests.iter().find(|test| test.id.to_string() == "evd_resize.keeps_events").unwrap();
    assert!(test.id.is_in("evd_resize.keeps_events") && test.id.is_in("evd_resize"));
    assert!(!test.id.is_in("evd") && !test.id.is_in("evd_resize.keeps") && !test.id.is_in(""));
}

#[test]
fn names_are_sentences_of_their_own() {
    let mut names: Vec<_> = super::all().iter().map(|test| test.name).collect();
    assert!(names.iter().all(|name| name.contains(' ') && !name.contains('#')));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "two tests have the same name");
}
