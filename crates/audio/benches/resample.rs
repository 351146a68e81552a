//! Telephone recordings to 16 kHz WAV, file to file on one core, beside sox on the same files.
//!
//! `cargo bench -p tapedeck-audio`. Throughput is in audio milliseconds per second: 2 Melem/s are 2,000 times
//! real time. sox is left out where it is not installed.
#![expect(clippy::expect_used, reason = "a bench, not a library")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use tapedeck_audio::{Preparer, probe, read_bytes, speech_map, write_wav};

fn recordings() -> Vec<PathBuf> {
    let pool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pool-a");
    let mut files: Vec<PathBuf> = std::fs::read_dir(pool)
        .expect("the fixtures")
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "wav"))
        .collect();
    files.sort();
    files
}

fn file_to_file(c: &mut Criterion) {
    let files = recordings();
    let audio_ms = files.iter().filter_map(|f| probe(f).ok()).map(|i| i.duration_ms()).sum();
    let dir = tempfile::tempdir().expect("a folder");
    let target = |from: &Path| dir.path().join(from.file_name().expect("a name"));
    let mut group = c.benchmark_group("resample file to file");
    group.sampling_mode(SamplingMode::Flat).sample_size(10).throughput(Throughput::Elements(audio_ms));
    group.bench_function("tapedeck", |b| {
        let mut preparer = Preparer::new();
        b.iter(|| {
            for from in &files {
                let bytes = read_bytes(from).expect("readable");
                let call = preparer.prepare(&bytes, None).expect("a recording");
                write_wav(std::fs::File::create(target(from)).expect("a file"), &call.pcm).expect("written");
            }
        });
    });
    if Command::new("sox").arg("--version").output().is_ok() {
        group.bench_function("sox", |b| {
            b.iter(|| {
                for from in &files {
                    let to = target(from);
                    let mut sox = Command::new("sox");
                    sox.arg("-V1").arg(from).args(["-r", "16000", "-e", "signed", "-b", "16"]).arg(to);
                    assert!(sox.status().expect("sox").success());
                }
            });
        });
    }
    group.finish();
}

fn speech(c: &mut Criterion) {
    let mut preparer = Preparer::new();
    let calls: Vec<Vec<i16>> = recordings()
        .iter()
        .filter_map(|f| preparer.prepare(&read_bytes(f).ok()?, None).ok())
        .map(|call| call.pcm)
        .collect();
    let audio_ms = calls.iter().map(|pcm| pcm.len() as u64 / 16).sum();
    let mut group = c.benchmark_group("speech map");
    group.sample_size(10).throughput(Throughput::Elements(audio_ms));
    group.bench_function("tapedeck", |b| {
        b.iter(|| calls.iter().map(|pcm| black_box(speech_map(pcm)).total_ms()).sum::<u32>());
    });
    group.finish();
}

criterion_group!(benches, file_to_file, speech);
criterion_main!(benches);
