//! Every integration test of this crate, in one program: linking it once is much quicker than a program a file.

mod corpus;
mod pages;
mod parity;
mod properties;
mod sampling;
