//! Two seconds of a microphone's pace, and how late this machine was: `cargo run -p tapedeck-pace --example microphone`.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::time::Duration;

use tapedeck_pace::{Pacer, Schedule};
use tokio::time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let schedule = Schedule::new(Instant::now(), Duration::from_millis(20), Duration::from_secs(2));
    let mut pacer = Pacer::new(schedule);
    while pacer.wait().await.is_some() {
        // Here a chunk goes out; a server that does not take it holds us up, and that is not our lateness.
        pacer.sent(Instant::now());
    }
    let mut late_us = pacer.lateness().wake_late_us.clone();
    late_us.sort_unstable();
    if let (Some(middle), Some(worst)) = (late_us.get(late_us.len() / 2), late_us.last()) {
        println!("{} chunks, woken {middle} us late in the middle and {worst} us at worst", late_us.len());
    }
}
