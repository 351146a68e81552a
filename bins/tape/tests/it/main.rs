//! Every integration test of this package, in one program: linking it once is much quicker than a program a file.

mod doctor;
mod doctor_metrics;
mod tapectl;
