//! Every integration test of this crate, in one program: linking it once is much quicker than a program a file.

mod campaign;
mod docs;
mod doctor;
mod doctor_metrics;
mod help;
mod outputs;
mod pages;
mod single_cases;
mod tape_arrivals;
mod tape_engine;
mod tape_erlang;
mod tape_gateway;
mod tape_gpu_exporter;
mod tape_sizing;
mod tape_stream;
mod tape_wer;
mod tapectl;
mod terminal;
