//! Planned send times without drift, and how late we were.
