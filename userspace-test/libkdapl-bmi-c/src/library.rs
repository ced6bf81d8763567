// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! State of the library between `BMI_initialize` and `BMI_finalize`.

use crate::addresses::Addresses;
use crate::errors;
use crate::memory::Allocated;
use libkdapl_bmi::{Bmi, Context, Options};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Number of contexts.
const CONTEXTS: usize = 16;

/// Result of a call: its number, or that of an error without its sign.
pub type Outcome<T = i32> = std::result::Result<T, i32>;

/// An initialized library.
pub struct Library {
    pub bmi: Bmi,
    contexts: Mutex<[Option<Arc<Context>>; CONTEXTS]>,
    addresses: Mutex<Addresses>,
    allocated: Mutex<Allocated>,
    /// Unexpected messages add a reference to their senders.
    pub counts_references: bool,
}

static LIBRARY: RwLock<Option<Arc<Library>>> = RwLock::new(None);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic leaves one of the tables half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Initializes the library.
pub fn initialize(options: &Options, counts_references: bool) -> Outcome<()> {
    let mut library = LIBRARY.write().unwrap_or_else(PoisonError::into_inner);
    if library.is_some() {
        return Err(errors::EBUSY);
    }
    let bmi = Bmi::open(options).map_err(|error| errors::of(&error))?;
    *library = Some(Arc::new(Library {
        bmi,
        contexts: Mutex::default(),
        addresses: Mutex::default(),
        allocated: Mutex::default(),
        counts_references,
    }));
    Ok(())
}

/// Ends the library, when the last call that is in progress returns.
pub fn finalize() -> Outcome<()> {
    let mut library = LIBRARY.write().unwrap_or_else(PoisonError::into_inner);
    library.take().map(drop).ok_or(errors::EDEVINIT)
}

/// Returns the library, if it is initialized.
pub fn get() -> Outcome<Arc<Library>> {
    let library = LIBRARY.read().unwrap_or_else(PoisonError::into_inner);
    library.clone().ok_or(errors::EDEVINIT)
}

impl Library {
    pub fn addresses(&self) -> MutexGuard<'_, Addresses> {
        locked(&self.addresses)
    }

    pub fn allocated(&self) -> MutexGuard<'_, Allocated> {
        locked(&self.allocated)
    }

    /// Opens a context. Returns its number.
    pub fn open_context(&self) -> Outcome<i64> {
        let context = self.bmi.open_context().map_err(|error| errors::of(&error))?;
        let mut contexts = locked(&self.contexts);
        let free = contexts.iter().position(Option::is_none).ok_or(errors::EBUSY)?;
        contexts[free] = Some(Arc::new(context));
        Ok(free as i64)
    }

    /// Closes a context. Calls of other threads with it end with an error.
    pub fn close_context(&self, number: i64) {
        let place = usize::try_from(number).ok().filter(|place| *place < CONTEXTS);
        let context = place.and_then(|place| locked(&self.contexts)[place].take());
        if let Some(context) = context {
            context.close();
        }
    }

    pub fn context(&self, number: i64) -> Outcome<Arc<Context>> {
        let place = usize::try_from(number).map_err(|_| errors::EINVAL)?;
        let contexts = locked(&self.contexts);
        contexts.get(place).and_then(Clone::clone).ok_or(errors::EINVAL)
    }
}
