//! The same cases against the built-in engine under a paused clock.
