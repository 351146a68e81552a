//! Every integration test of this package, in one program: linking it once is much quicker than a program a file.

mod docs;
mod help;
mod outputs;
mod what_if;
