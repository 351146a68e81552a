//! The version of the files of a run.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Version of a file in a run directory. Reading one that is newer than this program knows fails, and says so.
///
/// ```
/// use tapedeck_record::Schema;
///
/// assert_eq!(serde_json::to_string(&Schema::CURRENT).unwrap(), "2");
/// let newer = serde_json::from_str::<Schema>("9").unwrap_err();
/// assert!(newer.to_string().contains("schema 9"), "{newer}");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Schema(u32);

impl Schema {
    /// The first version: its files do not name it.
    pub const FIRST: Self = Self(1);
    /// What this program writes.
    pub const CURRENT: Self = Self(2);

    /// Whether this program reads files of a version.
    #[must_use]
    pub const fn reads(schema: u32) -> bool {
        schema <= Self::CURRENT.0
    }

    /// The first version, for files that name none.
    #[must_use]
    pub const fn first() -> Self {
        Self::FIRST
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self::CURRENT
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let schema = u32::deserialize(from)?;
        if !Self::reads(schema) {
            return Err(D::Error::custom(format!(
                "schema {schema} was written by a newer version of Tapedeck; this one reads up to schema {}",
                Self::CURRENT
            )));
        }
        Ok(Self(schema))
    }
}
