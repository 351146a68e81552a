//! What must hold for any group, the figures that are known by heart, and every refusal.

#![expect(clippy::cast_possible_truncation, reason = "small positive numbers of lines")]

use proptest::prelude::*;
use tapedeck_erlang::engset::Source;
use tapedeck_erlang::erlang_a::Target;
use tapedeck_erlang::{ErlangError, busy_hour, engset, erlang_a, erlang_b, erlang_c, retries, split};

fn close(found: f64, expected: f64, relative: f64) -> bool {
    (found - expected).abs() <= relative * expected.abs()
}

#[test]
fn two_and_a_half_erlang() {
    let traffic = busy_hour::traffic(50.0, 180.0).unwrap();
    assert!(close(traffic, 2.5, 1e-15));
    for (lines, blocking) in [(3, 0.2822), (4, 0.1499), (5, 0.0697), (6, 0.0282), (7, 0.0100), (8, 0.0031)] {
        assert!((erlang_b::blocking(traffic, lines).unwrap() - blocking).abs() < 5e-5, "B({lines})");
    }
    for (lines, waiting) in [(3, 0.7022), (4, 0.3199), (5, 0.1304), (6, 0.0474), (7, 0.0154)] {
        assert!((erlang_c::waiting(traffic, lines).unwrap() - waiting).abs() < 5e-5, "C({lines})");
    }
    let seven = erlang_b::blocking(traffic, 7).unwrap();
    assert!((0.00998..0.01).contains(&seven), "{seven}");
    assert_eq!(erlang_b::lines(traffic, 0.01).unwrap(), 7);
}

#[test]
fn three_groups_of_ten_block_more_than_thirty() {
    let found = split::compare(24.0, 3, 10).unwrap();
    assert!(found.split > 3.0 * found.pooled, "{found:?}");
    let each = found.lines_each_for_equal;
    assert!(erlang_b::blocking(8.0, each).unwrap() <= found.pooled);
    assert!(erlang_b::blocking(8.0, each - 1).unwrap() > found.pooled);
    let one = split::compare(24.0, 1, 30).unwrap();
    assert!(close(one.split, one.pooled, 1e-14) && one.lines_each_for_equal == 30);
}

#[test]
fn waits_of_one_line_are_those_of_the_textbook() {
    // M/M/1 at a load of 0.8: everything is closed form.
    let queue = erlang_c::queue(0.8, 1).unwrap();
    for (found, expected) in
        [(queue.waiting, 0.8), (queue.mean_wait, 4.0), (queue.queue, 3.2), (queue.occupancy, 0.8)]
    {
        assert!(close(found, expected, 1e-14), "{queue:?}");
    }
    let level = erlang_c::service_level(0.8, 1, 2.0).unwrap();
    assert!(close(level, 1.0 - 0.8 * (-0.4_f64).exp(), 1e-14));
}

#[test]
fn endless_patience_is_erlang_c_and_none_is_erlang_b() {
    let (traffic, lines) = (9.0, 10);
    let c = erlang_c::queue(traffic, lines).unwrap();
    let a = erlang_a::queue(traffic, lines, 1e9).unwrap();
    assert!(close(a.waiting, c.waiting, 1e-6) && close(a.mean_wait, c.mean_wait, 1e-6), "{a:?} {c:?}");
    let within = erlang_a::within(traffic, lines, 1e9, 0.3).unwrap();
    assert!(close(within.answered, erlang_c::service_level(traffic, lines, 0.3).unwrap(), 1e-6));
    let b = erlang_b::blocking(traffic, lines).unwrap();
    let a = erlang_a::queue(traffic, lines, 1e-9).unwrap();
    assert!(close(a.abandoning, b, 1e-6), "{a:?} {b}");
}

#[test]
fn many_sources_are_erlang_b_and_few_block_less() {
    let b = erlang_b::blocking(20.0, 25).unwrap();
    let many = engset::blocking(1_000_000_000, Source::Busy(2e-8), 25).unwrap();
    assert!(close(many.blocking, b, 1e-6) && close(many.intended, 20.0, 1e-12));
    let few = engset::blocking(50, Source::Busy(0.4), 25).unwrap();
    assert!(few.blocking < b && few.blocking < few.time_congestion);
    // A line for each source: nothing is lost, but all lines may be busy.
    let own = engset::blocking(5, Source::Busy(0.5), 5).unwrap();
    assert!(
        own.blocking.abs() < 1e-300
            && close(own.time_congestion, 1.0 / 32.0, 1e-14)
            && close(own.carried, 2.5, 1e-14)
    );
    assert!(engset::blocking(5, Source::Busy(0.5), 6).unwrap().time_congestion.abs() < 1e-300);
}

#[test]
fn the_busiest_hour_is_above_the_mean_one() {
    assert!(close(busy_hour::busiest(240.0, 24.0, 2.5).unwrap(), 25.0, 1e-15));
    assert!(close(busy_hour::busiest(240.0, 1.0, 3.0).unwrap(), 240.0, 1e-15), "no more than the whole day");
    assert!(close(busy_hour::calls_per_hour(2.5, 180.0).unwrap(), 50.0, 1e-15));
}

#[test]
fn impossible_figures_are_refused_one_by_one() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, -0.0] {
        let refused = |found: Result<f64, ErlangError>| {
            assert!(matches!(found, Err(ErlangError::NotPositive { .. })), "{bad} gave {found:?}");
        };
        refused(erlang_b::blocking(bad, 7));
        refused(erlang_c::waiting(bad, 7));
        refused(retries::blocking(bad, 7, 0.5).map(|found| found.blocking));
        refused(erlang_a::queue(bad, 7, 1.0).map(|found| found.waiting));
        refused(erlang_a::queue(2.5, 7, bad).map(|found| found.waiting));
        refused(engset::blocking(9, Source::Idle(bad), 7).map(|found| found.blocking));
        refused(split::compare(bad, 3, 10).map(|found| found.split));
        refused(busy_hour::traffic(bad, 180.0));
        refused(busy_hour::traffic(50.0, bad));
        assert!(matches!(erlang_b::lines(2.5, bad), Err(ErlangError::NotAShare { .. })));
        assert!(matches!(engset::blocking(9, Source::Busy(bad), 7), Err(ErlangError::NotAShare { .. })));
    }
    for bad in [1.0, 1.5, f64::NAN, -0.1] {
        assert!(matches!(erlang_b::traffic(7, bad), Err(ErlangError::NotAShare { .. })));
        assert!(matches!(
            erlang_c::lines_for_service_level(2.5, bad, 0.1),
            Err(ErlangError::NotAShare { .. })
        ));
        assert!(matches!(
            erlang_a::lines(2.5, 1.0, Target::Waiting(bad)),
            Err(ErlangError::NotAShare { .. })
        ));
    }
    assert!(retries::blocking(2.5, 7, 1.1).is_err() && retries::blocking(2.5, 7, f64::NAN).is_err());
    assert!(
        erlang_c::service_level(2.5, 7, -1.0).is_err() && erlang_c::service_level(2.5, 7, f64::NAN).is_err()
    );
    assert_eq!(erlang_b::blocking(2.5, 0), Err(ErlangError::NoLines));
    assert!(matches!(erlang_b::blocking(1e13, 7), Err(ErlangError::TooLarge { .. })));
    assert!(matches!(erlang_b::blocking(2.5, u64::MAX), Err(ErlangError::TooLarge { .. })));
    assert!(split::compare(2.5, 0, 10).is_err() && split::compare(2.5, u64::MAX, 10).is_err());
    assert!(busy_hour::busiest(100.0, 25.0, 2.0).is_err() && busy_hour::busiest(100.0, 10.0, 0.5).is_err());
    assert_eq!(engset::traffic(7, 7, 0.01), Err(ErlangError::NeverBlocked { sources: 7, lines: 7 }));
}

#[test]
fn an_unstable_queue_says_so() {
    for traffic in [7.0, 8.5] {
        let refusal = erlang_c::waiting(traffic, 7).unwrap_err();
        assert_eq!(refusal, ErlangError::Unstable { traffic, lines: 7 });
        assert!(refusal.to_string().starts_with("unstable: 7 lines cannot carry"), "{refusal}");
        assert_eq!(retries::blocking(traffic, 7, 1.0), Err(ErlangError::Unstable { traffic, lines: 7 }));
    }
    // Impatience makes every load stable.
    assert!(erlang_a::queue(700.0, 7, 1.0).unwrap().abandoning > 0.98);
}

#[test]
fn far_beyond_the_floats_the_logarithm_goes_on() {
    assert!(erlang_b::blocking(1.0, 100_000).unwrap().abs() < 1e-300);
    // a^n / n! with a = 1: minus log10(100000!), and the traffic below adds log10(e).
    let found = erlang_b::log10_blocking(1.0, 100_000).unwrap();
    assert!(close(found, -456_573.450_899_970_9 - std::f64::consts::LOG10_E, 1e-12), "{found}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn more_lines_block_less_and_more_traffic_more(ln_a in -3.0_f64..9.0, spread in -4.0_f64..6.0) {
        let a = ln_a.exp();
        let n = ((a + spread * a.sqrt()).max(1.0)) as u64;
        let b = erlang_b::blocking(a, n).unwrap();
        prop_assert!(erlang_b::blocking(a, n + 1).unwrap() < b);
        prop_assert!(erlang_b::blocking(a * 1.001, n).unwrap() > b);
        prop_assert!(b > 0.0 && b < 1.0 && b >= 1.0 - n as f64 / a);
    }

    #[test]
    fn waiting_is_at_least_blocking(ln_a in -3.0_f64..9.0, above in 0.01_f64..6.0) {
        let a = ln_a.exp();
        let n = (a + above * a.sqrt()).ceil() as u64 + 1;
        let (b, c) = (erlang_b::blocking(a, n).unwrap(), erlang_c::waiting(a, n).unwrap());
        prop_assert!(c >= b && c <= 1.0);
        let impatient = erlang_a::queue(a, n, 1.0).unwrap();
        prop_assert!(impatient.waiting >= b && impatient.waiting <= c);
        prop_assert!(impatient.abandoning <= b, "patience can only help");
    }

    #[test]
    fn lines_for_a_target_are_the_fewest(ln_a in -2.0_f64..9.0, ln_target in -12.0_f64..-0.1, patience in 0.1_f64..10.0) {
        let (a, target) = (ln_a.exp(), ln_target.exp());
        let n = erlang_b::lines(a, target).unwrap();
        prop_assert!(erlang_b::blocking(a, n).unwrap() <= target);
        prop_assert!(n == 1 || erlang_b::blocking(a, n - 1).unwrap() > target);
        let n = erlang_c::lines_for_waiting(a, target).unwrap();
        prop_assert!(erlang_c::waiting(a, n).unwrap() <= target);
        prop_assert!(erlang_c::waiting(a, n - 1).map_or(true, |c| c > target));
        let n = erlang_c::lines_for_service_level(a, 1.0 - target, 0.2).unwrap();
        prop_assert!(erlang_c::service_level(a, n, 0.2).unwrap() >= 1.0 - target - 1e-12);
        prop_assert!(erlang_c::service_level(a, n - 1, 0.2).map_or(true, |level| level < 1.0 - target + 1e-12));
        let n = retries::lines(a, target, 0.7).unwrap();
        prop_assert!(retries::blocking(a, n, 0.7).unwrap().blocking <= target * (1.0 + 1e-9));
        prop_assert!(n == 1 || retries::blocking(a, n - 1, 0.7).unwrap().blocking > target * (1.0 - 1e-9));
        let n = erlang_a::lines(a, patience, Target::Abandoning(target)).unwrap();
        prop_assert!(erlang_a::queue(a, n, patience).unwrap().abandoning <= target * (1.0 + 1e-9));
        prop_assert!(n == 1 || erlang_a::queue(a, n - 1, patience).unwrap().abandoning > target * (1.0 - 1e-9));
    }

    #[test]
    fn traffic_of_the_forward_figure_comes_back(n in 1_u64..3000, load in 0.05_f64..1.2, patience in 0.1_f64..10.0) {
        let a = load * n as f64;
        let b = erlang_b::blocking(a, n).unwrap();
        if b > 1e-290 {
            prop_assert!(close(erlang_b::traffic(n, b).unwrap(), a, 1e-10));
            let x = retries::blocking(a, n, 0.5).unwrap();
            prop_assert!(close(retries::traffic(n, x.blocking, 0.5).unwrap(), a, 1e-9));
        }
        if load < 0.999 {
            let c = erlang_c::waiting(a, n).unwrap();
            if c > 1e-290 {
                prop_assert!(close(erlang_c::traffic_for_waiting(n, c).unwrap(), a, 1e-10));
            }
            let level = erlang_c::service_level(a, n, 0.1).unwrap();
            // A level of nearly 1 has rounded the lateness away.
            if level > 0.0 && level < 0.999_999 {
                prop_assert!(close(erlang_c::traffic_for_service_level(n, level, 0.1).unwrap(), a, 1e-8));
            }
        }
        let impatient = erlang_a::queue(a, n, patience).unwrap();
        if impatient.abandoning > 1e-290 {
            prop_assert!(close(erlang_a::traffic(n, patience, Target::Abandoning(impatient.abandoning)).unwrap(), a, 1e-9));
        }
        let answered = erlang_a::within(a, n, patience, 0.05).unwrap().answered;
        if answered < 0.999_999 {
            let target = Target::Answered { share: answered, within: 0.05 };
            prop_assert!(close(erlang_a::traffic(n, patience, target).unwrap(), a, 1e-8));
        }
    }

    #[test]
    fn engset_comes_back(sources in 2_u64..5000, part in 0.01_f64..0.99, busy in 0.01_f64..0.99) {
        let n = ((sources as f64 * part) as u64).max(1);
        let found = engset::blocking(sources, Source::Busy(busy), n).unwrap();
        prop_assert!(found.blocking <= found.time_congestion && found.carried <= found.intended * (1.0 + 1e-12));
        if found.blocking > 1e-290 && found.blocking < 0.99 {
            let back = engset::traffic(sources, n, found.blocking).unwrap().busy();
            prop_assert!(close(back, busy, 1e-9), "{back} for {busy}");
            prop_assert_eq!(engset::lines(sources, Source::Busy(busy), found.blocking).unwrap(), n);
        }
    }
}
