//! Shared pieces of the command line tools.
pub mod common;
pub mod console;
pub mod signals;
pub mod tc03;
