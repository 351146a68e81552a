//! The test cases, each a short script over a World.
