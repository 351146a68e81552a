//! What if: fit the engine model to a measured ladder, say how well it fits, and predict what was not measured.
//!
//! The engine model has a cost law: a step takes a fixed time, and more for each stream, each prompt token and each token of
//! context in it. [`fit`] looks for the costs at which the model, playing the same tape by the same rules,
//! shows the figures that the ladder showed. How well that works is said in three ways: the error on
//! the tiers that it was fitted to, the error on each tier when it is left out, and the figures that it misses
//! on one side. A ladder from an engine with another cost law is still fitted, badly, and [`Fit::grade`] says so.
//!
//! [`predict`] plays the fitted model under another topology, tape or window. Its interval is the range over many fits that
//! the data allow equally well (drawn around the best one, as wide as the residuals make them), each with chance of
//! its own. It says nothing of what the model does not know: that instances of one card share its time is
//! a factor that the caller sets ([`Scenario::step_factor`]).
//!
//! The same ladder, rules and seed give the same answer. A fit costs some 60 plays of the ladder, a
//! prediction some 100 of a tier (a few seconds of processor time for the 480 s tape), on as many threads as there are cores.

mod fit;
mod ladder;
mod note;
mod predict;
mod problem;
mod search;
mod solve;

pub use fit::{Alternative, Costs, Fit, Grade, LeftOut, fit};
pub use ladder::{Figure, Known, Ladder, TierSeen};
pub use note::FitNote;
pub use predict::{PREDICTED, Prediction, Scenario, Supposition, pool_tokens, predict};

/// Runs `work` on every item, on as many threads as there are cores; results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len()).max(1);
    if threads == 1 {
        return items.iter().map(work).collect();
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    loop {
                        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(item) = items.get(at) else { return mine };
                        mine.push((at, work(item)));
                    }
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
