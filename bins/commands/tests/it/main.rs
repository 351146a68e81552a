//! Every integration test of this package, in one program: linking it once is much quicker than a program a file.

mod docs;
mod help;
mod outputs;
#[path = "../../../calculators/tests/it/sizing.rs"]
mod sizing;
mod what_if;
