//! Every integration test of this package, in one program: linking it once is much quicker than a program a file.

mod pages;
mod sizing;
mod tape_erlang;
mod tape_sizing;
mod tape_wer;
