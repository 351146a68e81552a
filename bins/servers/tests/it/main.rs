//! Every integration test of this package, in one program: linking it once is much quicker than a program a file.

mod served;
mod tape_engine;
mod tape_gateway;
mod tape_gpu_exporter;
