//! Faults in series that no audio has to be played for: hundreds of runs each, on seeds that nothing was tuned on.

use tapedeck_answers::RiseFinding;
use tapedeck_cases::quality::Heard;
use tapedeck_engine_model::{Params, Vram, VramSeries};
use tapedeck_record::WordCounts;
use tapedeck_slo::{LeakRules, LeakVerdict, leak};
use tapedeck_stats::rng::Draws;
use tapedeck_wer::BootstrapSettings;

/// A card of 48 GB.
pub(crate) const CARD: f64 = 48e9;

/// The rules' thresholds were found on seeds below; these are fresh.
const FRESH: u64 = 1_000_000;

/// Noise of half a percent of the card that forgets within seconds, and a gigabyte that is taken once at the start: what
/// each of so many instances has of it.
pub(crate) fn vram(instances: u32, leak_share_per_h: f64) -> Vram {
    let n = f64::from(instances);
    Vram {
        noise_bytes: 0.005 * CARD / n.sqrt(),
        noise_memory: 0.95,
        late_bytes: 1_000_000_000 / u64::from(instances),
        late_ms: 60_000,
        leak_bytes_per_hour: leak_share_per_h * CARD / n,
        ..Vram::default()
    }
}

/// Whether four hours of memory, read once a second, are called a leak.
pub(crate) fn leaks(seed: u64, faulty: bool) -> bool {
    let vram = vram(1, if faulty { 0.01 } else { 0.0 });
    let readings: Vec<(f64, f64)> = VramSeries::new(&Params { vram, ..Params::demo() }, FRESH + seed)
        .take(4 * 3600)
        .enumerate()
        .map(|(second, bytes)| (second as f64, bytes as f64))
        .collect();
    leak(&readings, CARD, &LeakRules::default(), FRESH + seed).verdict == LeakVerdict::Leak
}

/// Words of the eight calls of `fixtures/tapes/labelled.json`.
const WORDS: [u32; 8] = [66, 110, 57, 38, 340, 47, 117, 51];

/// Errors in so many repetitions of the labelled tape by an engine that gets each word wrong with this chance.
fn heard(draws: &mut Draws, repetitions: u32, chance: f64) -> Heard {
    let mut all = Heard::default();
    for _ in 0..repetitions {
        for (call, &ref_tokens) in (0..).zip(&WORDS) {
            let wrong = (0..ref_tokens).filter(|_| draws.unit() < chance).count();
            let sub = u32::try_from(wrong).unwrap();
            all.count(call, WordCounts { ref_tokens, sub, ..WordCounts::default() });
        }
    }
    all
}

/// Whether words that get worse by 1.5 points raise the alarm: eighteen loops alone against five streams of three.
pub(crate) fn words(seed: u64, faulty: bool) -> bool {
    let mut draws = Draws::new(FRESH + seed, 9);
    let alone = heard(&mut draws, 18, 0.03);
    let loaded = heard(&mut draws, 15, if faulty { 0.045 } else { 0.03 });
    let how = BootstrapSettings { seed, ..BootstrapSettings::default() };
    Heard::rise(&alone, &loaded, how).is_some_and(|rise| rise.finding(1.0) == RiseFinding::Alarm)
}
