//! `tc03`: the concurrency ladder.
fn main() {}
