//! How many lines a busy hour needs: `cargo run -p tapedeck-erlang --example lines -- CALLS_AN_HOUR MEAN_SECONDS`.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;

use tapedeck_erlang::{busy_hour, erlang_b, erlang_c};

fn main() -> Result<(), Box<dyn Error>> {
    let mut given = std::env::args().skip(1);
    let calls_per_h: f64 = given.next().map_or(Ok(50.0), |text| text.parse())?;
    let mean_s: f64 = given.next().map_or(Ok(180.0), |text| text.parse())?;
    let traffic = busy_hour::traffic(calls_per_h, mean_s)?;
    println!("{calls_per_h} calls an hour of {mean_s} s are {traffic:.2} Erlang");
    println!("lines  turned away  wait, if none is");
    let enough = erlang_b::lines(traffic, 0.001)?;
    for lines in enough.saturating_sub(7).max(1)..=enough {
        let blocked = erlang_b::blocking(traffic, lines)?;
        // Fewer lines than traffic: the queue grows without end.
        let waits =
            erlang_c::waiting(traffic, lines).map_or("all".to_owned(), |w| format!("{:.2} %", 100.0 * w));
        println!("{lines:>5}  {:>9.3} %  {waits:>16}", 100.0 * blocked);
    }
    Ok(())
}
