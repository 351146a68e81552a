//! The gateway between a caller and scripted engines, over pipes and under a paused clock.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod door;
mod realtime;
mod rolling;
mod stage;
