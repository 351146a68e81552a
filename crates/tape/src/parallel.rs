//! The same job on many files, on every core, one file in hand per core.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads to use: what was asked for, else one per core.
pub(crate) fn threads(wanted: Option<NonZero<usize>>) -> usize {
    wanted.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZero::get)
}

/// Runs `job` on every item, on `wanted` threads or one per core; results keep the items' order.
///
/// `job` gets a state of its own thread, made by `state`, so that tables are built once per core.
pub fn for_each<T: Sync, S, R: Send>(
    items: &[T],
    wanted: Option<NonZero<usize>>,
    state: impl Fn() -> S + Sync,
    job: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    map(items, threads(wanted), state, job, |_, _| ())
}

/// Runs `job` on every item; `done` sees each result as it comes, one at a time; results keep the items' order.
///
/// `job` gets a state of its own thread, made by `state`, so that tables are built once per core.
pub(crate) fn map<T: Sync, S, R: Send>(
    items: &[T],
    threads: usize,
    state: impl Fn() -> S + Sync,
    job: impl Fn(&mut S, &T) -> R + Sync,
    done: impl FnMut(&T, &R) + Send,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(done);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                let mut own = state();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return };
                    let result = job(&mut own, item);
                    if let Ok(mut done) = done.lock() {
                        done(item, &result);
                    }
                    if let Ok(mut results) = results.lock() {
                        results.push((at, result));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_reports_each() {
        let items: Vec<u32> = (0..100).collect();
        let mut seen = 0;
        let out = map(
            &items,
            4,
            || 0,
            |n, i| {
                *n += 1;
                i * 2
            },
            |_, _| seen += 1,
        );
        assert_eq!(out, items.iter().map(|i| i * 2).collect::<Vec<_>>());
        assert_eq!(seen, 100);
        assert!(map(&[] as &[u32], 4, || (), |(), i| *i, |_, _| ()).is_empty());
    }
}
