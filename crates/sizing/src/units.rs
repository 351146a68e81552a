//! Bytes, under the names in which people write them.
//!
//! The load-test plan that this suite grew from counts 112 "KB" a token (which are 112 x 1024 bytes) and divides by 1000
//! to get "MB" and "GB". Its figures are 2.4 % below true decimal megabytes and 2.4 % above mebibytes, so tables here
//! name the unit, and give both.

/// Bytes in one of the plan's "MB": 1000 KiB.
pub const PLAN_MB: f64 = 1024.0 * 1000.0;
/// Bytes in one of the plan's "GB": a million KiB.
pub const PLAN_GB: f64 = PLAN_MB * 1000.0;
/// Bytes in a true megabyte.
pub const MB: f64 = 1e6;
/// Bytes in a true gigabyte.
pub const GB: f64 = 1e9;
/// Bytes in a mebibyte.
pub const MIB: f64 = 1_048_576.0;

/// Bytes as the plan's "MB" (112 KiB a token, divided by 1000).
#[must_use]
pub const fn plan_mb(bytes: f64) -> f64 {
    bytes / PLAN_MB
}

/// Bytes as true megabytes (10^6).
#[must_use]
pub const fn mb(bytes: f64) -> f64 {
    bytes / MB
}

/// Bytes as mebibytes (2^20).
#[must_use]
pub const fn mib(bytes: f64) -> f64 {
    bytes / MIB
}
