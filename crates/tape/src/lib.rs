//! The tape: pool scan, stratified sampling, manifest, verification, loading.

mod call;
mod error;
mod load;
mod manifest;

pub use call::{Reference, Segment, Tape, TapeCall};
pub use error::TapeError;
pub use manifest::{Manifest, ManifestCall, Quota, SCHEMA_VERSION};
