//! Every integration test of this package, in one program: linking it once is much quicker than a program a file.

mod campaign;
mod single_cases;
mod tape_arrivals;
mod tape_stream;
mod terminal;
