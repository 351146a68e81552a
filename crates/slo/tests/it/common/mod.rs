//! Tiers made up call by call, in the shape that a closed loop gives them.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;

use tapedeck_record::{
    CallRecord, FinalKind, Metric, Outcome, OutcomeDetail, Sample, SampleBody, Scrape, WordCounts,
};
use tapedeck_slo::{CacheSetting, Expected, InstanceFacts, StepBounds, TierEvidence};
use tapedeck_stats::rng::Draws;

/// The usual tape: 9 calls, 480 s, the long one in the middle.
pub(crate) const TAPE_S: [f64; 9] = [30.0, 60.0, 30.0, 30.0, 180.0, 30.0, 60.0, 30.0, 30.0];

/// A call with figures well within every limit.
pub(crate) fn call(stream: u32, seq: u32) -> CallRecord {
    CallRecord {
        stream,
        seq,
        call: 0,
        tape: None,
        bucket_s: 30,
        counted: true,
        start_s: 0.0,
        done_s: 30.3,
        audio_s: 30.0,
        instance: None,
        outcome: OutcomeDetail::plain(Outcome::Ok),
        class: Outcome::Ok.class(true),
        connect_s: Some(0.01),
        ttft_wire_s: Some(0.4),
        ttft_speech_s: Some(0.3),
        ttft_window_s: Some(0.2),
        ttft_kept_s: None,
        first_response_s: Some(0.05),
        final_s: Some(0.3),
        final_speech_s: Some(0.5),
        final_kind: Some(FinalKind::Marker),
        rtf: Some(0.1),
        pace: Some(1.01),
        lag_max_s: Some(0.4),
        age_slope_ms_per_min: Some(0.0),
        stall_max_s: Some(2.0),
        wake_late_p99_ms: Some(1.5),
        wake_late_max_ms: Some(2.0),
        blocked_max_ms: Some(0.1),
        rtt_p50_ms: Some(1.0),
        revisions: Some(0.05),
        messages: 15,
        violations: 0,
        words_finals: None,
        words: None,
        chars: None,
    }
}

/// Gives the call another outcome and takes away what such a call cannot have.
pub(crate) fn end_with(call: &mut CallRecord, outcome: Outcome) {
    call.outcome = OutcomeDetail::plain(outcome);
    call.class = outcome.class(true);
    if call.class == tapedeck_record::OutcomeClass::Error {
        call.final_s = None;
        call.final_speech_s = None;
        call.rtf = None;
    }
}

/// A tier: its calls and when it ran.
pub(crate) struct Tier {
    pub(crate) streams: u32,
    pub(crate) calls: Vec<CallRecord>,
    pub(crate) bounds: StepBounds,
    pub(crate) samples: Vec<Sample>,
    pub(crate) instances: Vec<InstanceFacts>,
}

impl Tier {
    /// `streams` streams that play the tape `loops` times after ramp and warm-up, with a little seeded noise.
    pub(crate) fn closed(streams: u32, loops: u32, seed: u64) -> Self {
        let mut draws = Draws::new(seed, 50);
        let (ramp_s, warm_up_s) = (0.5, 120.0);
        let opens_s = f64::from(streams) * ramp_s + warm_up_s;
        let mut calls = Vec::new();
        for stream in 0..streams {
            let mut at_s = f64::from(stream) * ramp_s;
            let (mut seq, mut counted) = (0, 0);
            while counted < 9 * loops {
                let index = (stream + seq) % 9;
                let audio_s = TAPE_S[index as usize];
                let mut c = call(stream, seq);
                let noise = 0.03 * draws.normal();
                c.call = index;
                c.audio_s = audio_s;
                c.bucket_s = if audio_s > 100.0 { 180 } else { 30 };
                c.counted = at_s >= opens_s;
                // Calls differ among themselves far more than they change with time.
                let own = 0.03 * f64::from(index);
                for ttft in [&mut c.ttft_wire_s, &mut c.ttft_speech_s, &mut c.ttft_window_s] {
                    *ttft = ttft.map(|t| t + own + noise);
                }
                c.final_s = Some(0.3 + 0.02 * draws.normal());
                c.rtf = Some(0.1 + 0.005 * draws.normal());
                c.age_slope_ms_per_min = Some(5.0 * draws.normal());
                c.start_s = at_s;
                c.done_s = at_s + audio_s + 0.3;
                at_s = c.done_s;
                counted += u32::from(c.counted);
                seq += 1;
                calls.push(c);
            }
        }
        let counted = || calls.iter().filter(|c| c.counted);
        let bounds = StepBounds {
            ramp_from_s: 0.0,
            window_from_s: counted().map(|c| c.start_s).fold(f64::INFINITY, f64::min),
            window_to_s: counted().map(|c| c.done_s).fold(0.0, f64::max),
            drain_to_s: calls.iter().map(|c| c.done_s).fold(0.0, f64::max) + 5.0,
        };
        Self { streams, calls, bounds, samples: Vec::new(), instances: Vec::new() }
    }

    /// Changes every counted call.
    pub(crate) fn each(mut self, mut change: impl FnMut(usize, &mut CallRecord)) -> Self {
        self.calls.iter_mut().filter(|c| c.counted).enumerate().for_each(|(i, c)| change(i, c));
        self
    }

    /// Adds an instance that tells everything, with pages every second: constant `kv`, counters that grow by so much
    /// from the first page to the last.
    pub(crate) fn with_instance(mut self, name: &str, kv: f64, grow: &[(Metric, f64)]) -> Self {
        self.instances.push(InstanceFacts {
            name: name.into(),
            expected: Expected::ALL,
            prefix_cache: CacheSetting::Off,
            mm_cache: CacheSetting::Off,
        });
        let mut at_s = -0.5;
        while at_s < self.bounds.drain_to_s {
            let share = (at_s + 0.5) / (self.bounds.drain_to_s + 0.5);
            let mut values: BTreeMap<Metric, f64> = [(Metric::KvPool, kv), (Metric::Preemptions, 7.0)].into();
            for &(metric, by) in grow {
                // Counters stand still in the last tenth, so that the whole growth is seen.
                values.insert(metric, 7.0 + by * (share / 0.9).min(1.0));
            }
            let scrape = Scrape { values, histograms: BTreeMap::new() };
            self.samples.push(Sample { at_s, source: name.into(), body: SampleBody::Engine(scrape) });
            at_s += 1.0;
        }
        self
    }

    /// Evidence of a real run whose client was healthy.
    pub(crate) fn evidence(&self) -> TierEvidence<'_> {
        let mut evidence = TierEvidence::new(self.streams, "Tape-A", &self.calls, self.bounds);
        evidence.samples = &self.samples;
        evidence.instances = &self.instances;
        evidence.window_ms = Some(2_000);
        evidence.calls_expected = Some(self.calls.iter().filter(|c| c.counted).count() as u64);
        evidence.wake_late_p99_ms = Some(2.0);
        evidence.client_cpu_share = Some(0.1);
        evidence.seed = 1;
        evidence
    }
}

/// Errors out of tokens.
pub(crate) const fn words(ref_tokens: u32, errors: u32) -> Option<WordCounts> {
    Some(WordCounts { ref_tokens, sub: errors, del: 0, ins: 0 })
}
