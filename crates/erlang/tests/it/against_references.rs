//! Every formula against the tables in `reference/`, which `reference/make.py` computed with 60 digits.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the tables are ours, and `--nocapture` shows how good each formula is"
)]

use tapedeck_erlang::engset::Source;
use tapedeck_erlang::{engset, erlang_a, erlang_b, erlang_c, retries};

fn table(name: &str) -> Vec<Vec<Option<f64>>> {
    let path = format!("{}/tests/reference/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<_> =
        text.lines().skip(1).map(|row| row.split(',').map(|cell| cell.parse().ok()).collect()).collect();
    assert!(rows.len() > 30);
    rows
}

fn whole(x: Option<f64>) -> u64 {
    format!("{:.0}", x.unwrap()).parse().unwrap()
}

/// The worst relative error of a column, and where it was.
struct Worst {
    name: &'static str,
    error: f64,
    at: String,
    checked: u32,
}

impl Worst {
    fn new(name: &'static str) -> Self {
        Self { name, error: 0.0, at: String::new(), checked: 0 }
    }

    fn see(&mut self, found: f64, expected: f64, at: &[Option<f64>]) {
        let error = ((found - expected) / expected).abs();
        self.checked += 1;
        if error.is_nan() || error > self.error {
            self.error = if error.is_nan() { f64::INFINITY } else { error };
            self.at = format!("{found:e} for {expected:e} at {at:?}");
        }
    }

    fn at_most(&self, limit: f64) {
        println!("{}: {:e} ({})", self.name, self.error, self.at);
        assert!(self.checked > 20, "{} was hardly checked", self.name);
        assert!(self.error <= limit, "{}: {:e}, {}", self.name, self.error, self.at);
    }
}

#[test]
fn erlang_b_and_c() {
    let (mut b, mut log_b) = (Worst::new("B"), Worst::new("log10 B"));
    let (mut c, mut log_c) = (Worst::new("C"), Worst::new("log10 C"));
    for row in table("b_and_c.csv") {
        let (n, a) = (whole(row[0]), row[1].unwrap());
        let log10 = row[3].unwrap();
        if log10 > -300.0 {
            b.see(erlang_b::blocking(a, n).unwrap(), row[2].unwrap(), &row[..2]);
        }
        if log10 < -1.0 {
            log_b.see(erlang_b::log10_blocking(a, n).unwrap(), log10, &row[..2]);
        }
        if let (Some(expected), Some(log10)) = (row[4], row[5]) {
            if log10 > -300.0 {
                c.see(erlang_c::waiting(a, n).unwrap(), expected, &row[..2]);
            }
            if log10 < -1.0 {
                log_c.see(erlang_c::log10_waiting(a, n).unwrap(), log10, &row[..2]);
            }
        } else {
            assert!(erlang_c::waiting(a, n).is_err());
        }
    }
    for worst in [b, log_b, c, log_c] {
        worst.at_most(1e-12);
    }
}

#[test]
fn traffic_for_lines_comes_back() {
    let (mut b, mut c) = (Worst::new("traffic for B"), Worst::new("traffic for C"));
    for row in table("b_and_c.csv") {
        let (n, a) = (whole(row[0]), row[1].unwrap());
        let (share, log10) = (row[2].unwrap(), row[3].unwrap());
        // Where nearly everything is lost, or next to nothing, the share no longer tells the traffic.
        if log10 > -300.0 && share < 0.99 {
            b.see(erlang_b::traffic(n, share).unwrap(), a, &row[..2]);
        }
        if let (Some(share), Some(log10)) = (row[4], row[5])
            && log10 > -300.0
            && share < 0.99
        {
            c.see(erlang_c::traffic_for_waiting(n, share).unwrap(), a, &row[..2]);
        }
    }
    b.at_most(1e-11);
    c.at_most(1e-11);
}

#[test]
fn engset_time_and_call_congestion() {
    let (mut time, mut call, mut log_call) =
        (Worst::new("Engset time"), Worst::new("Engset call"), Worst::new("log10 Engset call"));
    let mut back = Worst::new("Engset traffic");
    for row in table("engset.csv") {
        let (n, s, idle) = (whole(row[0]), whole(row[1]), row[2].unwrap());
        let found = engset::blocking(s, Source::Idle(idle), n).unwrap();
        if row[4].unwrap() > -300.0 {
            time.see(found.time_congestion, row[3].unwrap(), &row[..3]);
        }
        if row[6].unwrap() > -300.0 {
            call.see(found.blocking, row[5].unwrap(), &row[..3]);
        }
        if row[6].unwrap() < -1.0 {
            log_call.see(
                engset::log10_blocking(s, Source::Idle(idle), n).unwrap(),
                row[6].unwrap(),
                &row[..3],
            );
        }
        if row[6].unwrap() > -300.0 && row[5].unwrap() < 0.9 {
            match engset::traffic(s, n, row[5].unwrap()).unwrap() {
                Source::Idle(found) => back.see(found, idle, &row[..3]),
                Source::Busy(_) => panic!("the inverse speaks of idle sources"),
            }
        }
    }
    for worst in [time, call, log_call] {
        worst.at_most(1e-10);
    }
    back.at_most(1e-9);
}

#[test]
fn retries_raise_the_traffic() {
    let (mut total, mut blocking) = (Worst::new("traffic with repeats"), Worst::new("blocking with repeats"));
    for row in table("retries.csv") {
        let (n, a, recall) = (whole(row[0]), row[1].unwrap(), row[2].unwrap());
        let found = retries::blocking(a, n, recall).unwrap();
        total.see(found.total_traffic, row[3].unwrap(), &row[..3]);
        blocking.see(found.blocking, row[4].unwrap(), &row[..3]);
    }
    total.at_most(1e-9);
    blocking.at_most(1e-9);
}

#[test]
fn impatient_callers() {
    let mut worst = ["waiting", "abandoning", "answered", "still waiting"].map(Worst::new);
    for row in table("impatient.csv") {
        let (n, a, patience, tau) = (whole(row[0]), row[1].unwrap(), 1.0 / row[2].unwrap(), row[3].unwrap());
        let queue = erlang_a::queue(a, n, patience).unwrap();
        let within = erlang_a::within(a, n, patience, tau).unwrap();
        let found = [queue.waiting, queue.abandoning, within.answered, within.still_waiting];
        for ((worst, found), expected) in worst.iter_mut().zip(found).zip(&row[4..]) {
            // Nobody waits to the end of an impossible time: below 1e-290 both are nothing.
            if expected.unwrap() > 1e-290 {
                worst.see(found, expected.unwrap(), &row[..4]);
            }
        }
        let parts = within.answered + within.still_waiting + within.given_up;
        assert!((parts - 1.0).abs() < 1e-10, "{parts} at {row:?}");
        let load = queue.occupancy * row[0].unwrap() / a;
        assert!((load + queue.abandoning - 1.0).abs() < 1e-10, "{load} at {row:?}");
    }
    for worst in worst {
        worst.at_most(1e-9);
    }
}
