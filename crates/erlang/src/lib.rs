//! From traffic to lines and back: Erlang B and C, retries, finite sources, impatient callers.
//!
//! Traffic is measured in Erlang: calls an hour times their mean length in hours, the mean number of lines
//! that would be busy if there were always one free. Fifty calls an hour of three minutes are 2.5 Erlang:
//!
//! ```
//! use tapedeck_erlang::{busy_hour, erlang_b, erlang_c};
//!
//! let traffic = busy_hour::traffic(50.0, 180.0)?;
//! assert_eq!(traffic, 2.5);
//! assert_eq!(erlang_b::lines(traffic, 0.01)?, 7);              // one call in a hundred finds no line
//! assert!((erlang_b::blocking(traffic, 7)? - 0.00998).abs() < 1e-5);
//! assert!((erlang_c::waiting(traffic, 7)? - 0.0154).abs() < 5e-5);
//! # Ok::<(), tapedeck_erlang::ErlangError>(())
//! ```
//!
//! Read on in [`erlang_b`] (blocked calls are lost), [`erlang_c`] (they wait), [`retries`] (they come back),
//! [`engset`] (few callers), [`erlang_a`] (they lose patience), [`split`] (groups that cannot help each
//! other) and [`busy_hour`]. Times are given in mean call lengths ("holding times"), so that no unit can be
//! mistaken; multiply by the mean call length to get seconds.
//!
//! All models assume that calls arrive independently of each other at a constant rate (Engset: per idle
//! source). B and Engset hold for any distribution of call lengths; C and A need exponential ones. Nothing
//! allocates, and the crate works without the standard library (`default-features = false`,
//! `features = ["libm"]`). Limits: traffic from 1e-300 to 1e12 Erlang, up to 1e12 lines; above about 1e8 an
//! answer takes milliseconds and loses digits in proportion to the square root of the traffic.

#![cfg_attr(not(test), no_std)]

#[cfg(all(feature = "std", not(feature = "libm"), not(test)))]
extern crate std;

#[cfg(not(any(feature = "std", feature = "libm")))]
compile_error!("choose where the mathematics comes from: feature `std` or feature `libm`");

pub mod busy_hour;
pub mod engset;
pub mod erlang_a;
pub mod erlang_b;
pub mod erlang_c;
mod error;
mod integral;
mod math;
mod poisson;
pub mod retries;
mod solve;
pub mod split;

pub use error::ErlangError;

/// The code of the README is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
