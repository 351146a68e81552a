//! Every integration test of this crate, in one program: linking it once is much quicker than a program a file.

mod documented;
mod named;
