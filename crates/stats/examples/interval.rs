//! What a list of numbers can prove: `cargo run -p tapedeck-stats --example interval -- 0.81 0.93 1.2 ...`. Without
//! numbers it draws 40 of its own.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;

use tapedeck_stats::rng::Draws;
use tapedeck_stats::{observations_for_upper_bound, percentile_sorted, quantile_interval, sort};

fn main() -> Result<(), Box<dyn Error>> {
    let given: Result<Vec<f64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let mut values = given?;
    if values.is_empty() {
        let mut draws = Draws::new(1, 0);
        values = (0..40).map(|_| 0.8 + 0.1 * draws.normal()).collect();
    }
    sort(&mut values);
    println!("{} values, intervals at 95 % if they are independent of each other", values.len());
    for q in [0.5, 0.95, 0.99] {
        let shown = |value: Option<f64>| value.map_or("unknown".to_owned(), |value| format!("{value:.3}"));
        let bounds = quantile_interval(&values, q, 0.95);
        let (low, high) = (shown(bounds.low), shown(bounds.high));
        println!("p{:<3} {}  [{low}, {high}]", 100.0 * q, shown(percentile_sorted(&values, q)));
        if bounds.high.is_none() {
            let needed = observations_for_upper_bound(q, 0.95);
            println!("     an upper bound needs {} values", needed.map_or("?".to_owned(), |n| n.to_string()));
        }
    }
    Ok(())
}
