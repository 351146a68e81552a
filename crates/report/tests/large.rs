//! The example makes a run like any other.

#[cfg(test)]
#[expect(dead_code, reason = "an example's main is not called by a test")]
#[path = "../examples/large.rs"]
mod large;

#[cfg(test)]
mod tests {
    use tapedeck_report::{Answer, Run};

    use super::large::make;

    #[test]
    fn what_it_makes_is_a_run_without_doubt() {
        let tmp = tempfile::tempdir().unwrap();
        let run = Run::read(&make(tmp.path(), 6_160, 11_220).unwrap()).unwrap();
        assert_eq!(run.doubts, []);
        assert_eq!(run.steps.iter().map(|s| s.calls.len()).sum::<usize>(), 6_160);
        assert_eq!(run.steps.iter().map(|s| s.series.samples).sum::<u64>(), 11_220);
        // An N* with tiers that pass and tiers that fail: the page has all its parts.
        let n_star = Answer::of(&run).short.and_then(|c| c.n_star);
        assert!(n_star.is_some_and(|n| n > 8 && n < 48), "{n_star:?}");
    }
}
