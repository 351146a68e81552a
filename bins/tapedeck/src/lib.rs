//! Shared pieces of the command line tools.
pub mod common;
pub mod console;
pub mod doctor;
pub mod signals;
pub mod tape_engine;
pub mod tape_erlang;
pub mod tape_wer;
pub mod tapectl;
pub mod tc03;
pub mod tc05;
pub mod tc06;
pub mod tc07;
