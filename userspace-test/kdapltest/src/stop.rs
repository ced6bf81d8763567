// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ctrl-C: every wait looks here at least twice a second.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// The first Ctrl-C asks to stop, the second one ends the program at once.
pub fn on_ctrl_c() {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("kdapltest: Ctrl-C will not end it cleanly: {error}");
    }
}

/// Whether somebody pressed Ctrl-C.
pub fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}
