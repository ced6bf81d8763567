// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Progress of a long run: a bar on a terminal, otherwise an occasional line.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Runs shorter than this show no progress.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Progress of a run. Dropping it removes the bar.
pub struct Progress {
    what: &'static str,
    start: Instant,
    bar: ProgressBar,
    terminal: bool,
    next_line: Mutex<Instant>,
}

impl Progress {
    /// Starts at 0 of `total`; `None` if it is not known.
    pub fn new(what: &'static str, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => "{msg} [{bar:40}] {pos}/{len}, {eta} left",
            None => "{msg} {spinner} {pos}",
        };
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden())
            .with_style(style)
            .with_message(what);
        let start = Instant::now();
        // A serial console is a terminal that cannot overwrite a line.
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let terminal = std::io::stderr().is_terminal() && !dumb;
        Self { what, start, bar, terminal, next_line: Mutex::new(start + LINE_EVERY) }
    }

    /// Adds `done` to the count. Slow tests may call it for each operation; fast ones should call
    /// it once for several hundred.
    pub fn add(&self, done: u64) {
        self.bar.inc(done);
        if self.start.elapsed() < PATIENCE {
            return;
        }
        if !self.terminal {
            self.line();
        } else if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    fn line(&self) {
        let Ok(mut next) = self.next_line.try_lock() else {
            return;
        };
        if Instant::now() >= *next {
            let of = self.bar.length().map_or_else(String::new, |total| format!(" of {total}"));
            output::complain(format!("{}: {}{of}", self.what, self.bar.position()));
            *next = Instant::now() + LINE_EVERY;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
