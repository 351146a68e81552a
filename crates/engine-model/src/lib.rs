//! A pure, seeded model of a continuously batching speech engine; computes in its own nanoseconds.
