// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Threads of a measurement, each with its own connections.

use anyhow::{anyhow, Context, Result};
use std::sync::{PoisonError, RwLock};
use std::thread::{Builder, ScopedJoinHandle};

/// Runs `work` in `count` threads, each with its index, and returns the results in that order. If
/// one of the threads cannot be created, none of them starts to work. `option` is the option of the
/// command that sets the number.
///
/// # Errors
/// That of the first thread, by index, which has failed.
pub fn run<T: Send>(
    count: u32,
    option: &str,
    work: impl Fn(u32) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    // Locked until all threads are there.
    let complete = RwLock::new(false);
    std::thread::scope(|scope| {
        let mut starting = complete.write().unwrap_or_else(PoisonError::into_inner);
        let start = |index| {
            let (complete, work) = (&complete, &work);
            Builder::new().spawn_scoped(scope, move || {
                let complete = *complete.read().unwrap_or_else(PoisonError::into_inner);
                complete.then(|| work(index))
            })
        };
        let threads = (0..count).map(start).collect::<Result<Vec<_>, _>>().with_context(|| {
            format!("no thread for each of {option}: use fewer, or raise 'ulimit -u'")
        })?;
        *starting = true;
        drop(starting);
        threads.into_iter().map(join).collect()
    })
}

fn join<T>(thread: ScopedJoinHandle<'_, Option<Result<T>>>) -> Result<T> {
    thread.join().ok().flatten().unwrap_or_else(|| Err(anyhow!("a thread panicked")))
}

#[cfg(test)]
mod tests {
    use super::run;
    use anyhow::bail;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn results_have_the_order_of_the_threads() {
        assert_eq!(run(3, "-q", |index| Ok(index * 10)).unwrap(), [0, 10, 20]);
    }

    #[test]
    fn an_error_follows_the_end_of_all_threads() {
        let done = AtomicU32::new(0);
        let failed = run(4, "-q", |index| {
            done.fetch_add(1, Ordering::Relaxed);
            if index % 2 == 1 {
                bail!("thread {index} has failed");
            }
            Ok(())
        });
        assert_eq!(failed.unwrap_err().to_string(), "thread 1 has failed");
        assert_eq!(done.into_inner(), 4);
    }
}
