// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Runs a program in the guest: records it, runs it, reads the counters, checks the console.

use crate::case::Case;
use anyhow::Result;
use kdapl_fuzz::console::Console;
use kdapl_fuzz::coverage::{Counters, Covered};
use kdapl_fuzz::past::Past;
use kdapl_fuzz::run::{Executor as Runner, Outcome};
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::observers::{CanTrack as _, ExplicitTracking, StdMapObserver, TimeObserver};
use libafl::state::HasExecutions;
use libafl::Error;
use libafl_bolts::tuples::{tuple_list, tuple_list_type, RefIndexable};
use libafl_bolts::AsSliceMut as _;

/// Branch counters of one program.
pub type Map = ExplicitTracking<StdMapObserver<'static, u8, false>, true, false>;
type Observers = tuple_list_type!(Map, TimeObserver);

/// The guest as LibAFL's executor.
pub struct Guest {
    runner: Runner,
    counters: Counters,
    console: Console,
    past: Past,
    observers: Observers,
    /// Branches covered since the first program.
    pub covered: Covered,
    /// The first complaint of the kernel.
    pub complaint: Option<String>,
}

impl Guest {
    /// Creates an executor with the counters of the loaded module.
    pub fn new(runner: Runner, counters: Counters, past: Past, covered: Covered) -> Result<Self> {
        let map = StdMapObserver::owned("branches", vec![0; covered.0.len()]).track_indices();
        let observers = tuple_list!(map, TimeObserver::new("time"));
        let console = Console::open()?;
        Ok(Self { runner, counters, console, past, observers, covered, complaint: None })
    }

    /// Returns the observers of branches and time.
    pub fn parts(&self) -> (&Map, &TimeObserver) {
        (&self.observers.0, &self.observers.1 .0)
    }

    fn run(&mut self, case: &Case) -> Result<()> {
        // These branches ran after the last program, and do not belong to this one.
        self.covered.add(self.counters.read()?);
        self.counters.clear()?;
        self.past.record(&case.0)?;
        if self.runner.run(&case.0)? == Outcome::Hung {
            self.complaint = Some("a process cannot be killed".into());
        }
        let values = self.counters.read()?;
        self.covered.add(values);
        let mut map = self.observers.0.as_mut().as_slice_mut().iter_mut();
        map.by_ref().zip(values).for_each(|(seen, value)| *seen = class(*value));
        if let Some(complaint) = self.console.complaint() {
            self.complaint = Some(complaint);
        }
        Ok(())
    }
}

/// Returns the class of a count: never, once, a few times, often. Exact counts differ from run to
/// run.
fn class(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2..=15 => 2,
        _ => 3,
    }
}

impl<EM, S: HasExecutions, Z> Executor<EM, Case, S, Z> for Guest {
    fn run_target(
        &mut self,
        _fuzzer: &mut Z,
        state: &mut S,
        _manager: &mut EM,
        case: &Case,
    ) -> Result<ExitKind, Error> {
        if self.complaint.is_some() {
            return Err(Error::shutting_down());
        }
        *state.executions_mut() += 1;
        self.run(case).map_err(|error| Error::unknown(format!("{error:#}")))?;
        Ok(ExitKind::Ok)
    }
}

impl HasObservers for Guest {
    type Observers = Observers;

    fn observers(&self) -> RefIndexable<&Observers, Observers> {
        RefIndexable::from(&self.observers)
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Observers, Observers> {
        RefIndexable::from(&mut self.observers)
    }
}
