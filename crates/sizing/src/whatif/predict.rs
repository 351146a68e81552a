//! Predictions: the fitted model under other circumstances, with an interval over fits.

use serde::{Deserialize, Serialize};
use tapedeck_engine_model::reference_capacity::{
    Limit, ReferenceError, ReferenceRules, TapeCall, play_tier, stopped_by,
};
use tapedeck_engine_model::{Params, SessionModel};
use tapedeck_l10n::{Localize, LocalizedText, StaticText, localized, reason};
use tapedeck_stats::rng::Draws;

use super::fit::{Fit, Grade};
use super::in_parallel;
use super::ladder::Ladder;
use super::problem::{blocks, with_costs};
use crate::error::{SizingError, positive};
use crate::supply::{Card, Topology};
use crate::units::GB;

/// What stands beside every prediction.
pub const PREDICTED: &str = "predicted, not measured";

/// Fits that an interval ranges over. The range of 39 draws holds the next one with a chance of 95 % (38/40).
const FITS: usize = 39;

/// Circumstances that were not measured. What is empty stays as it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// What it is called.
    pub name: LocalizedText,
    /// Instances.
    pub instances: u32,
    /// Tokens that the pool of one instance holds; see [`pool_tokens`].
    pub pool_tokens: Option<f64>,
    /// Steps take so many times as long: 1 where instances do not slow each other; (instances on a card then) / (instances
    /// on a card measured) where they share its time.
    pub step_factor: f64,
    /// Another tape.
    pub tape: Option<Vec<TapeCall>>,
    /// Another inference window, ms.
    pub window_ms: Option<u32>,
    /// Another way of keeping sessions.
    pub session: Option<SessionModel>,
}

impl Scenario {
    /// The measured circumstances themselves.
    #[must_use]
    pub fn as_measured(ladder: &Ladder) -> Self {
        Self {
            name: localized!("as measured", "与实测相同"),
            instances: ladder.instances,
            pool_tokens: ladder.known.pool_tokens,
            step_factor: 1.0,
            tape: None,
            window_ms: None,
            session: None,
        }
    }
}

/// What a deployment would carry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The scenario.
    pub name: LocalizedText,
    /// Instances.
    pub instances: u32,
    /// N* of the best fit; 0 = not even the first tier.
    pub n_star: u32,
    /// Lowest N* over the fits that the data allow.
    pub low: u32,
    /// Highest.
    pub high: u32,
    /// What stops the tier above N*; empty where nothing did up to the largest tier tried.
    pub limited_by: Option<Limit>,
    /// Whether the search ended at its largest tier: N* may be higher.
    pub censored: bool,
    /// Whether an instance would carry more streams than any tier of the fit showed: the law is stretched.
    pub extrapolates: bool,
    /// Fits that the interval ranges over.
    pub fits: usize,
    /// How good the fit is that it rests on.
    pub grade: Grade,
    /// `predicted, not measured`.
    pub kind: &'static str,
}

impl Localize for Prediction {
    fn text(&self) -> LocalizedText {
        let part = |shown: bool, text: LocalizedText| if shown { text } else { LocalizedText::default() };
        let limited = self.limited_by.map_or_else(
            LocalizedText::default,
            |limit| localized!(", then limited by {}", "，再往上受限于{}"; limit_text(limit)),
        );
        let beyond = part(
            self.extrapolates,
            localized!("; beyond the load that was measured on an instance", "；超出了单实例实测过的负载"),
        );
        let poor = part(
            self.grade == Grade::Poor,
            localized!("; the fit is poor: do not use it", "；拟合很差：不要使用"),
        );
        let Self { n_star, low, high, kind, .. } = self;
        let at_least = if self.censored { ">= " } else { "" };
        let found = localized!(
            "N* = {at_least}{n_star} ({low} to {high})",
            "N* = {at_least}{n_star}（{low} 至 {high}）"
        );
        let kind = LocalizedText { en: (*kind).into(), zh: "预测，非实测".into() };
        localized!("{}: {}{}; {}{}{}", "{}：{}{}；{}{}{}"; self.name, found, limited, kind, beyond, poor)
    }
}

/// What stops a tier.
fn limit_text(limit: Limit) -> LocalizedText {
    let zh = match limit {
        Limit::Preemption => "抢占",
        Limit::KvPool => "KV 池",
        Limit::Refusal => "拒绝接入",
        Limit::TooLong => "通话过长",
        Limit::Crash => "崩溃",
        Limit::Ttft => "首字延迟",
        Limit::Rtf => "实时率",
        Limit::Final => "终稿延迟",
        Limit::Stuck => "停滞",
    };
    LocalizedText { en: limit.to_string(), zh: zh.into() }
}

/// What a prediction supposes of instances that share a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum Supposition {
    /// Nothing: there are as many as were measured.
    Nothing,
    /// They do not slow each other.
    Independent,
    /// They share the card's time.
    Shared,
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(Supposition);

impl Localize for Supposition {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Nothing => LocalizedText::default(),
            Self::Independent => {
                localized!("if instances do not slow each other", "若实例互不拖慢")
            }
            Self::Shared => localized!("if instances of a card share its time", "若同卡实例分享其时间"),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

/// Tokens that the pool of one instance of another topology holds, from the measured pool of the old one: what an instance
/// takes beside its pool stays the same, so the pool changes by the difference of the shares. Where the old topology or its
/// pool is unknown, from the card's theory alone.
///
/// # Errors
/// Figures that are out of range, or a share that leaves no pool.
pub fn pool_tokens(
    measured: Option<(f64, Topology)>,
    new: Topology,
    card: &Card,
    token_bytes: u64,
) -> Result<f64, SizingError> {
    let token = crate::kv::token_cost(token_bytes)?;
    let theory = new.pool_gb(card)? * GB / token;
    let tokens = match measured {
        Some((tokens, old)) => {
            old.check()?;
            positive(StaticText::new("KV pool (tokens)", "KV 池（token）"), tokens, 1e12)?
                + (new.share - old.share) * card.memory_gb * GB / token
        }
        None => theory,
    };
    if tokens <= 0.0 {
        return Err(SizingError::Inconsistent(localized!(
            "{new}: a share of {} leaves no room for a KV pool beside weights and overhead; give fewer instances or a larger card",
            "{new}：比例 {} 除去权重与开销后放不下 KV 池；请减少实例或用更大的卡",
            new.share
        )));
    }
    Ok(tokens)
}

/// The largest passing tier, and what stops the next.
#[derive(Debug, Clone, Copy)]
struct Found {
    n_star: u32,
    limited_by: Option<Limit>,
    censored: bool,
}

/// A fit that the data allow, with chance of its own. As far as the model's figures are off on a usual tier left out,
/// they are off here: the limits move by that.
struct Drawn {
    theta: Vec<f64>,
    seed: u64,
    limits: [f64; 3],
    pool: f64,
}

impl Drawn {
    fn new(fit: &Fit, draws: &mut Draws, number: u64) -> Self {
        let z: Vec<f64> = fit.theta.iter().map(|_| draws.normal() * fit.scale).collect();
        let off = fit.information.as_ref().map_or_else(|| vec![0.0; z.len()], |f| f.back(&z));
        let theta = fit.theta.iter().zip(off).map(|(t, o)| t + o.clamp(-2.0, 2.0)).collect();
        let limits = [(); 3].map(|()| (fit.usual_error * draws.normal()).exp());
        let pool = (fit.kv_error * draws.normal()).exp();
        Self { theta, seed: fit.seed.wrapping_add(number), limits, pool }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range")]
fn milliseconds(ms: f64) -> u32 {
    ms.round().clamp(1.0, f64::from(u32::MAX)) as u32
}

struct Deployment<'a> {
    params: Params,
    instances: u32,
    tape: &'a [TapeCall],
    rules: ReferenceRules,
    seed: u64,
    /// Whether it matters which limit stops a tier; where it does not, a lost tier need not be played to its end.
    named: bool,
}

impl Deployment<'_> {
    fn stopped(&self, tier: u32) -> Result<Option<Limit>, ReferenceError> {
        let streams = tier.saturating_mul(self.step());
        let Self { params, instances, tape, rules, seed, named } = self;
        if *named {
            return Ok(play_tier(params, *instances, tape, rules, streams, *seed)?.stopped_by);
        }
        stopped_by(params, *instances, tape, rules, streams, *seed)
    }

    fn step(&self) -> u32 {
        if self.rules.step == 0 { self.instances } else { self.rules.step }
    }

    /// Looks around a guess, then halves; it supposes that a heavier tier is not better.
    fn search(&self, guess: u32, most: u32) -> Result<Found, ReferenceError> {
        let step = self.step().max(1);
        let last = (most / step).max(1);
        let mut low = 0;
        let mut high = None;
        let mut at = (guess / step).clamp(1, last);
        let mut stride = 1;
        loop {
            match self.stopped(at)? {
                None => {
                    low = low.max(at);
                    if at == last {
                        break;
                    }
                }
                Some(limit) => high = Some((at, limit)),
            }
            match high {
                Some((top, _)) if top <= low + 1 => break,
                // Both sides are known: halve. Only one is: walk, faster and faster.
                Some((top, _)) if low > 0 => at = low + (top - low) / 2,
                Some((top, _)) => {
                    at = top.saturating_sub(stride).max(1);
                    stride *= 2;
                }
                None => {
                    at = low.saturating_add(stride).min(last);
                    stride *= 2;
                }
            }
        }
        Ok(Found { n_star: low * step, limited_by: high.map(|(_, limit)| limit), censored: high.is_none() })
    }
}

/// Predicts N* for a scenario, with an interval.
///
/// # Errors
/// A scenario without instances, with a pool or factor that is no positive number, or that the model cannot play.
pub fn predict(ladder: &Ladder, fit: &Fit, scenario: &Scenario) -> Result<Prediction, SizingError> {
    crate::error::count(StaticText::new("instances", "实例数"), scenario.instances)?;
    positive(StaticText::new("step factor", "步长系数"), scenario.step_factor, 1e3)?;
    let mut known = ladder.known.params.clone();
    known.faults = tapedeck_engine_model::Faults::default();
    if let Some(window_ms) = scenario.window_ms {
        known.window_ms = window_ms;
    }
    if let Some(session) = scenario.session {
        known.session = session;
    }
    // Calls that take more KV than the model's fill the pool as if it were smaller.
    let ratio = fit.kv_ratio.unwrap_or(1.0);
    let pool = match (scenario.pool_tokens, ladder.known.pool_tokens) {
        (Some(tokens), _) => {
            positive(StaticText::new("KV pool (tokens)", "KV 池（token）"), tokens, 1e12)?
                / if ladder.known.pool_tokens.is_some() { ratio } else { 1.0 }
        }
        (None, Some(tokens)) => tokens / ratio,
        // Fitted with a pool of a million tokens: the ratio says how much smaller it is.
        (None, None) => fit.kv_ratio.map_or(1e9, |ratio| 1e6 / ratio),
    };
    known.kv_blocks = blocks(pool, known.block_tokens);
    let tape = scenario.tape.as_deref().unwrap_or(&ladder.tape);
    // Only whole multiples of the instances are tried, and only as far as a prediction can be checked.
    let most = 1_200_u32.min(ladder.rules.max_streams.max(90).saturating_mul(4));
    let deployment = |one: &Drawn, named: bool| {
        let mut params = with_costs(&known, &one.theta);
        params.kv_blocks = blocks(pool * one.pool, known.block_tokens);
        let slower = |ns: u64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "costs of milliseconds"
            )]
            let slower = (ns as f64 * scenario.step_factor).round() as u64;
            slower
        };
        params.step.base_ns = slower(params.step.base_ns).max(1);
        params.step.per_stream_ns = slower(params.step.per_stream_ns);
        params.step.per_prefill_token_ns = slower(params.step.per_prefill_token_ns);
        params.step.per_context_token_ns = slower(params.step.per_context_token_ns);
        let mut rules = ladder.rules.clone();
        rules.ttft_ms = milliseconds(f64::from(rules.ttft_ms) * one.limits[0]);
        rules.rtf *= one.limits[1];
        rules.final_ms = milliseconds(f64::from(rules.final_ms) * one.limits[2]);
        Deployment { params, instances: scenario.instances, tape, rules, seed: one.seed, named }
    };
    let guess = ladder.n_star.unwrap_or(0) / ladder.instances.max(1) * scenario.instances;
    let best = Drawn { theta: fit.theta.clone(), seed: fit.seed, limits: [1.0; 3], pool: 1.0 };
    let best = deployment(&best, true).search(guess, most)?;
    let mut draws = Draws::new(fit.seed, 32);
    let fits: Vec<Drawn> = (1..).take(FITS).map(|n| Drawn::new(fit, &mut draws, n)).collect();
    let mut found = vec![best];
    for one in in_parallel(&fits, |one| deployment(one, false).search(best.n_star, most)) {
        found.push(one?);
    }
    let n = |pick: fn(u32, u32) -> u32, start: u32| found.iter().map(|f| f.n_star).fold(start, pick);
    Ok(Prediction {
        name: scenario.name.clone(),
        instances: scenario.instances,
        n_star: best.n_star,
        low: n(u32::min, u32::MAX),
        high: n(u32::max, 0),
        limited_by: best.limited_by,
        censored: best.censored,
        extrapolates: f64::from(best.n_star) / f64::from(scenario.instances)
            > 1.2 * fit.highest / f64::from(ladder.instances),
        fits: FITS,
        grade: fit.grade,
        kind: PREDICTED,
    })
}
