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

/// The library, and the calls of `BMI_initialize` that were not followed by `BMI_finalize`.
struct Opened {
    library: Arc<Library>,
    count: usize,
}

static LIBRARY: RwLock<Option<Opened>> = RwLock::new(None);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic leaves one of the tables half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Initializes the library, or counts the call if it is initialized. `options` returns the options
/// and whether unexpected messages add references.
pub fn initialize(options: impl FnOnce() -> Outcome<(Options, bool)>) -> Outcome<()> {
    let mut opened = LIBRARY.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(opened) = &mut *opened {
        opened.count += 1;
        return Ok(());
    }
    let (options, counts_references) = options()?;
    let bmi = Bmi::open(&options).map_err(|error| errors::of(&error))?;
    let library = Arc::new(Library {
        bmi,
        contexts: Mutex::default(),
        addresses: Mutex::default(),
        allocated: Mutex::default(),
        counts_references,
    });
    *opened = Some(Opened { library, count: 1 });
    Ok(())
}

/// Drops a call of `initialize`. The last one ends the library, when the last call that is in
/// progress returns.
pub fn finalize() -> Outcome<()> {
    let mut opened = LIBRARY.write().unwrap_or_else(PoisonError::into_inner);
    let left = opened.as_mut().ok_or(errors::EDEVINIT)?;
    left.count -= 1;
    if left.count == 0 {
        *opened = None;
    }
    Ok(())
}

/// Returns the library, if it is initialized.
pub fn get() -> Outcome<Arc<Library>> {
    let opened = LIBRARY.read().unwrap_or_else(PoisonError::into_inner);
    opened.as_ref().map(|opened| opened.library.clone()).ok_or(errors::EDEVINIT)
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
