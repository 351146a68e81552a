//! Instances under test: health, readiness, drain, control commands.
