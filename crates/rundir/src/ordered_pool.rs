//! Work on several threads whose results come back in the order of the work, so that they do not depend on how many
//! threads there are.

use std::num::NonZeroUsize;
use std::sync::mpsc::sync_channel;

/// Items that a worker has at a time: one under its hands, one that waits for it or for its turn.
const EACH: usize = 2;

/// Takes items from `next` until there are none, has each worked on by one of the workers, and hands the results to
/// `keep` in the order of the items. `next` and `keep` run on this thread; few items are held at a time.
pub(crate) fn in_order<T: Send, R: Send>(
    workers: NonZeroUsize,
    mut next: impl FnMut() -> Option<T>,
    work: impl Fn(T) -> R + Sync,
    mut keep: impl FnMut(R),
) {
    std::thread::scope(|scope| {
        // Each worker has its own way in and out, and they are served in turns: that is the order.
        let ordered_pool: Vec<_> = (0..workers.get())
            .map(|_| {
                let (give, items) = sync_channel::<T>(EACH);
                let (done, results) = sync_channel::<R>(EACH);
                let work = &work;
                scope.spawn(move || {
                    for item in items {
                        if done.send(work(item)).is_err() {
                            break;
                        }
                    }
                });
                (give, results)
            })
            .collect();
        let (mut giving, mut taking) = (ordered_pool.iter().cycle(), ordered_pool.iter().cycle());
        let mut held = 0;
        let mut more = true;
        loop {
            while more && held < EACH * ordered_pool.len() {
                match next().zip(giving.next()) {
                    // A worker that panicked takes nothing; the end of the scope passes its panic on.
                    Some((item, (give, _))) => drop(give.send(item)),
                    None => more = false,
                }
                held += usize::from(more);
            }
            if held == 0 {
                break;
            }
            let Some(Ok(result)) = taking.next().map(|(_, results)| results.recv()) else { break };
            held -= 1;
            keep(result);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_work_however_many_work() {
        for workers in [1, 2, 5] {
            let mut items = 0..100_u64;
            let mut kept = Vec::new();
            in_order(
                NonZeroUsize::new(workers).unwrap(),
                || items.next(),
                // The first of every three takes longest.
                |n| (0..(3 - n % 3) * 20_000).fold(n, |sum, i| std::hint::black_box(sum ^ i ^ i)),
                |n| kept.push(n),
            );
            assert_eq!(kept, (0..100).collect::<Vec<_>>(), "{workers} workers");
        }
        in_order(NonZeroUsize::MIN, || None::<u8>, |n| n, |_| panic!("there is no work"));
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_worker_that_panics_is_heard() {
        let mut items = 0..100_u64;
        in_order(NonZeroUsize::new(2).unwrap(), || items.next(), |n| assert_ne!(n, 7), |()| {});
    }
}
