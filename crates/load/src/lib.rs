//! Virtual callers: N streams at 1x real time, yielding traces.
