//! Statistics that know nothing of what the numbers mean: intervals, bootstrap, robust slopes, Holm.
