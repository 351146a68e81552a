//! `tape-report`.
use clap::Parser;
fn main() {
    tapedeck_report_bins::run(&tapedeck_report_bins::Cli::parse()).unwrap();
}
