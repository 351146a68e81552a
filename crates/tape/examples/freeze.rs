//! Freezes a tape of a pool and loads it: `cargo run -p tapedeck-tape --example freeze -- POOL 'SECONDS:CALLS,...'`.
//! Without a pool it makes one of tones in a folder that it throws away.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use tapedeck_audio::{Channel, wav_bytes};
use tapedeck_tape::{FreezeOptions, Pool, ScanOptions, Spec, Tape, freeze, scan};

fn main() -> Result<(), Box<dyn Error>> {
    let own = tempfile::tempdir()?;
    let mut given = std::env::args_os().skip(1);
    let pool = given.next().map_or_else(|| own.path().to_owned(), PathBuf::from);
    let spec = given.next().map_or_else(|| "1:3,2:2".to_owned(), |spec| spec.to_string_lossy().into_owned());
    if pool == own.path() {
        tones(&pool)?;
    }
    // Only what is hashed can be frozen: a manifest names recordings by content.
    let options = ScanOptions { hash: true, ..ScanOptions::default() };
    let reports = scan(&Pool::list(&pool)?, options, &BTreeMap::new(), |_| ());
    for refused in reports.iter().filter(|report| !report.ok) {
        println!("refused {}: {}", refused.path, refused.error.as_deref().unwrap_or_default());
    }
    let options = FreezeOptions {
        spec: Spec::parse(&spec)?,
        seed: 1,
        tolerance: 0.1,
        strata: vec![],
        channel: Some(Channel::Left),
        threads: None,
    };
    let manifest = freeze(&pool, &reports, &options)?;
    println!("{} of {} recordings, digest {}", manifest.calls.len(), reports.len(), manifest.digest);
    for call in &Tape::of_manifest(manifest, &pool)?.calls {
        println!("{:>8} ms  {:>9} bytes  {}", call.meta.duration_ms, call.pcm.len(), call.meta.id);
    }
    Ok(())
}

/// Ten recordings of one and two seconds, each with a pitch of its own.
fn tones(pool: &Path) -> Result<(), Box<dyn Error>> {
    for number in 0..10_u16 {
        let seconds = 1 + usize::from(number % 2);
        let period = 20 + usize::from(number);
        let pcm: Vec<i16> =
            (0..16_000 * seconds).map(|n| if n / period % 2 == 0 { 8_000 } else { -8_000 }).collect();
        std::fs::write(pool.join(format!("tone-{number}.wav")), wav_bytes(&pcm)?)?;
    }
    Ok(())
}
