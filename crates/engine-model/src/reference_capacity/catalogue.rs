//! Deployments to hold a load test against.

use super::{Balance, ReferenceCapacity, ReferenceError, ReferenceRules, TapeCall, find_reference_capacity};
use crate::params::{Params, SessionModel, StepCost};

/// A deployment with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    /// What it is called in tables.
    pub name: &'static str,
    /// Instances of the engine.
    pub instances: u32,
    /// How connections are dealt out to them.
    pub balance: Balance,
    /// One instance.
    pub params: Params,
}

impl Deployment {
    /// Its truth, with its own balancer whatever the rules say.
    ///
    /// # Errors
    /// As [`find_reference_capacity`].
    pub fn reference_capacity(
        &self,
        tape: &[TapeCall],
        rules: &ReferenceRules,
        seed: u64,
    ) -> Result<ReferenceCapacity, ReferenceError> {
        let rules = ReferenceRules { balance: self.balance, ..rules.clone() };
        find_reference_capacity(&self.params, self.instances, tape, &rules, seed)
    }

    /// The median of its truths over an odd number of seeds. One playing of a short tape is itself a sample, whose
    /// truth moves by a step from seed to seed; what belongs to the deployment alone is where they gather.
    ///
    /// # Errors
    /// As [`find_reference_capacity`], and [`ReferenceError::Empty`] without a seed.
    pub fn typical(
        &self,
        tape: &[TapeCall],
        rules: &ReferenceRules,
        seeds: &[u64],
    ) -> Result<u32, ReferenceError> {
        let reference =
            |&seed: &u64| self.reference_capacity(tape, rules, seed).map(|reference| reference.capacity);
        let mut all = seeds.iter().map(reference).collect::<Result<Vec<_>, _>>()?;
        all.sort_unstable();
        all.get(all.len() / 2)
            .copied()
            .ok_or(ReferenceError::Empty("a typical truth needs at least one seed"))
    }
}

/// The deployments whose truths are known: from a handful of streams to ninety, limited in turn by time, by memory and
/// by the door. Most are made for the short tape (calls of 3 to 18 s); those with `long-calls` in their names have pools
/// or costs that only the long one (30 to 180 s) brings to their limits.
#[must_use]
pub fn catalogue() -> Vec<Deployment> {
    let demo = Params::demo();
    let quick = Params { step: step(8_000, 500, 30), ..Params::default() };
    let pool = |kv_blocks| Params { kv_blocks, ..quick.clone() };
    let door = |sessions| Params { max_sessions: Some(sessions), ..quick.clone() };
    let resends =
        |step| Params { session: SessionModel::Rolling, template_tokens: 30, step, ..Params::default() };
    vec![
        three("demo", demo.clone()),
        // Time.
        Deployment {
            instances: 1,
            ..three("single", Params { step: step(34_000, 7_000, 400), ..demo.clone() })
        },
        Deployment { instances: 2, ..three("pair", demo.clone()) },
        three("slow-steps", Params { step: step(40_000, 7_000, 300), ..demo.clone() }),
        three("fast-card", Params { step: step(8_000, 3_300, 300), ..demo.clone() }),
        three("five-second-windows", Params { window_ms: 5_000, audio_tokens_per_s_milli: 13_000, ..demo }),
        three("resends-all", resends(step(12_000, 3_000, 200))),
        three("resends-long-calls", resends(step(12_000, 1_500, 60))),
        three("few-seats", Params { max_num_seqs: 12, ..quick.clone() }),
        // Memory.
        three("tiny-pool", pool(70)),
        three("small-pool", pool(180)),
        three("middling-pool", pool(280)),
        three("resends-all-tiny-pool", Params { kv_blocks: 40, ..resends(step(9_000, 2_500, 200)) }),
        three("long-calls-pool", pool(1_800)),
        // The door.
        three("door-of-four", door(4)),
        three("door-of-twenty", door(20)),
    ]
}

fn three(name: &'static str, params: Params) -> Deployment {
    Deployment { name, instances: 3, balance: Balance::LeastConnections, params }
}

/// A cost law, in microseconds a step, a stream and a prompt token.
const fn step(base_us: u64, stream_us: u64, prefill_token_us: u64) -> StepCost {
    StepCost {
        base_ns: base_us * 1_000,
        per_stream_ns: stream_us * 1_000,
        per_prefill_token_ns: prefill_token_us * 1_000,
        per_context_token_ns: 400,
    }
}

/// A made-up tape with the lengths of Tape-A: 30 s x6, 60 s x2, 180 s x1.
#[must_use]
pub fn long_tape() -> Vec<TapeCall> {
    synthetic_tape(&[30_000, 60_000, 30_000, 180_000, 30_000, 30_000, 60_000, 30_000, 30_000])
}

/// The same a tenth as long: 3 s x6, 6 s x2, 18 s x1.
#[must_use]
pub fn short_tape() -> Vec<TapeCall> {
    synthetic_tape(&[3_000, 6_000, 3_000, 18_000, 3_000, 3_000, 6_000, 3_000, 3_000])
}

/// A tape made of the given lengths (ms), about three quarters of it speech in turns of two to six seconds with pauses
/// between, the same for everybody who asks.
#[must_use]
pub fn synthetic_tape(lengths_ms: &[u32]) -> Vec<TapeCall> {
    let mut state = 0x5eed_u64;
    let mut draw = |from: u32, to: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from + u32::try_from(state >> 33).unwrap_or(0) % (to - from)
    };
    lengths_ms
        .iter()
        .map(|&duration_ms| {
            let mut speech = Vec::new();
            let mut at = draw(150, 700);
            while at < duration_ms {
                let end = (at + draw(1_500, 5_500)).min(duration_ms);
                speech.push((at, end));
                at = end + draw(400, 2_000);
            }
            TapeCall { duration_ms, speech }
        })
        .collect()
}
