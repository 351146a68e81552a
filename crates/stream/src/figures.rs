//! What the replies of a run amount to: a pure function of the replies and the limits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_stats::{percentile, percentile_sorted, quantile_interval, sort};

use crate::config::{Limits, Price};
use crate::reply::{Outcome, Reply};

/// Percentiles of a figure over the answered requests that count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Values behind it.
    pub n: u64,
    /// Median.
    pub p50: f64,
    /// 95th percentile, with its distribution-free two-sided 95 % interval as far as `n` allows.
    pub p95: f64,
    /// Lower bound of the 95th percentile.
    pub p95_low: Option<f64>,
    /// Upper bound; empty below 72 values.
    pub p95_high: Option<f64>,
    /// 99th percentile; empty below 100 values, where it would be nothing but the largest.
    pub p99: Option<f64>,
    /// Largest.
    pub max: f64,
}

impl Percentiles {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        sort(&mut values);
        let at = |q: f64| percentile_sorted(&values, q);
        let bounds = quantile_interval(&values, 0.95, 0.95);
        Some(Self {
            n: values.len() as u64,
            p50: at(0.5)?,
            p95: at(0.95)?,
            p95_low: bounds.low,
            p95_high: bounds.high,
            p99: (values.len() >= 100).then(|| at(0.99)).flatten(),
            max: *values.last()?,
        })
    }
}

/// Tokens as the server reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Replies that came with counts.
    pub reported: u64,
    /// Tokens of prompts.
    pub prompt: u64,
    /// Tokens of answers, thinking included.
    pub completion: u64,
    /// Prompt tokens from the prefix cache, where any reply told.
    pub cached: Option<u64>,
}

/// Everything about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Requests that count.
    pub requests: u64,
    /// The same by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Answers whole or cut at the limit of tokens: their times are below.
    pub answered: u64,
    /// Answers cut at the limit of tokens.
    pub length_cut: u64,
    /// Ended without any text.
    pub empty: u64,
    /// Of these, with thinking.
    pub thinking_only: u64,
    /// Errors of any kind.
    pub errors: u64,
    /// Answers whose stream lacked its `[DONE]`.
    pub without_done: u64,
    /// First text, seconds.
    pub ttft: Option<Percentiles>,
    /// First text p95 when errors and empty answers count as never, seconds; empty where that is never.
    pub ttft_p95_with_failures_s: Option<f64>,
    /// Whole answer, seconds.
    pub total: Option<Percentiles>,
    /// Gaps between chunks with text, seconds, over all answers together. No time per token.
    pub gap: Option<Percentiles>,
    /// From the first counted request's start to the last one's end, seconds.
    pub window_s: f64,
    /// Counted requests answered per second.
    pub requests_per_s: f64,
    /// Tokens that the server reported for counted requests.
    pub tokens: Tokens,
    /// Answer tokens per second over the window; empty unless every answered request came with counts.
    pub tokens_per_s: Option<f64>,
    /// Whole answers within all limits.
    pub good: u64,
    /// The same per second: goodput.
    pub goodput_per_s: f64,
    /// Answer tokens of good answers per second; empty unless all of those came with counts.
    pub good_tokens_per_s: Option<f64>,
    /// What the window cost; empty where no price is known.
    pub cost: Option<f64>,
    /// The same per good answer.
    pub cost_per_good: Option<f64>,
    /// Mean number of requests under way, by the clock (Little's law, one side).
    pub under_way: f64,
    /// Starts per second x mean stay (the other side).
    pub rate_times_stay: f64,
    /// How late we sent, 99th percentile, milliseconds; means something in an open loop only.
    pub late_p99_ms: Option<f64>,
    /// The request that went out alone before all others.
    pub cold: Option<Reply>,
}

/// Works them out.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 requests and tokens")]
pub fn figures(replies: &[Reply], limits: &Limits, price: &Price) -> Figures {
    let counted: Vec<&Reply> = replies.iter().filter(|r| r.counted).collect();
    let answered: Vec<&Reply> = counted.iter().copied().filter(|r| r.outcome.answered()).collect();
    let mut outcomes: BTreeMap<Outcome, u64> = BTreeMap::new();
    for reply in &counted {
        *outcomes.entry(reply.outcome).or_default() += 1;
    }
    let end_s = |r: &Reply| r.planned_s + r.total_s;
    let from_s = counted.iter().map(|r| r.planned_s).fold(f64::INFINITY, f64::min);
    let to_s = counted.iter().map(|r| end_s(r)).fold(f64::NEG_INFINITY, f64::max);
    let window_s = if to_s > from_s { to_s - from_s } else { 0.0 };
    let per_s = |n: f64| if window_s > 0.0 { n / window_s } else { 0.0 };

    let good: Vec<&Reply> = answered
        .iter()
        .copied()
        .filter(|r| {
            r.outcome == Outcome::Ok
                && r.ttft_s.is_some_and(|s| s <= limits.ttft_s)
                && r.total_s <= limits.total_s
                && r.gaps_s.iter().all(|gap| *gap <= limits.gap_s)
        })
        .collect();
    let completion = |of: &[&Reply]| -> Option<f64> {
        let tokens: Option<Vec<u64>> = of.iter().map(|r| Some(r.usage?.completion_tokens)).collect();
        tokens.filter(|t| !t.is_empty()).map(|t| t.iter().sum::<u64>() as f64)
    };
    let tokens = counted.iter().filter_map(|r| r.usage).fold(Tokens::default(), |sum, u| Tokens {
        reported: sum.reported + 1,
        prompt: sum.prompt + u.prompt_tokens,
        completion: sum.completion + u.completion_tokens,
        cached: match (sum.cached, u.cached_tokens) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
        },
    });
    // What did not answer never showed a text: last in every order.
    let mut firsts: Vec<f64> =
        counted.iter().map(|r| r.ttft_s.filter(|_| r.outcome.answered()).unwrap_or(f64::INFINITY)).collect();
    let cost = cost(price, window_s, tokens, answered.len() as u64);
    let stays: f64 = counted.iter().map(|r| r.total_s).sum();
    let overlap = |r: &Reply| (end_s(r).min(to_s) - r.planned_s.max(from_s)).max(0.0);
    let warm = replies.iter().filter(|r| !r.cold);
    Figures {
        requests: counted.len() as u64,
        answered: answered.len() as u64,
        length_cut: *outcomes.get(&Outcome::LengthCut).unwrap_or(&0),
        empty: *outcomes.get(&Outcome::Empty).unwrap_or(&0),
        thinking_only: counted.iter().filter(|r| r.outcome == Outcome::Empty && r.reasoning).count() as u64,
        errors: counted.iter().filter(|r| r.outcome.is_error()).count() as u64,
        without_done: answered.iter().filter(|r| !r.done).count() as u64,
        outcomes,
        ttft: Percentiles::of(answered.iter().filter_map(|r| r.ttft_s).collect()),
        ttft_p95_with_failures_s: percentile(&mut firsts, 0.95).filter(|s| s.is_finite()),
        total: Percentiles::of(answered.iter().map(|r| r.total_s).collect()),
        gap: Percentiles::of(answered.iter().flat_map(|r| r.gaps_s.iter().copied()).collect()),
        window_s,
        requests_per_s: per_s(answered.len() as f64),
        tokens,
        tokens_per_s: completion(&answered).filter(|_| window_s > 0.0).map(per_s),
        good: good.len() as u64,
        goodput_per_s: per_s(good.len() as f64),
        good_tokens_per_s: completion(&good).filter(|_| window_s > 0.0).map(per_s),
        cost,
        cost_per_good: cost.filter(|_| !good.is_empty()).map(|c| c / good.len() as f64),
        under_way: per_s(warm.map(overlap).sum()),
        rate_times_stay: per_s(stays),
        late_p99_ms: percentile(&mut counted.iter().map(|r| r.late_ms).collect::<Vec<_>>(), 0.99),
        cold: replies.iter().find(|r| r.cold).cloned(),
    }
}

/// Rent for the window, and the price of its tokens as far as they were reported.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 tokens")]
fn cost(price: &Price, window_s: f64, tokens: Tokens, answered: u64) -> Option<f64> {
    let rent = price.per_hour.map(|p| p * window_s / 3600.0);
    let per_token = |price: Option<f64>, tokens: u64| price.map(|p| p * tokens as f64 / 1e6);
    let parts = [
        per_token(price.per_million_prompt, tokens.prompt),
        per_token(price.per_million_completion, tokens.completion),
    ];
    if parts.iter().any(Option::is_some) && tokens.reported < answered {
        return None; // tokens that nobody counted have a price too
    }
    rent.into_iter().chain(parts.into_iter().flatten()).reduce(|a, b| a + b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Usage;

    fn reply(n: u32, planned_s: f64, ttft_s: f64, total_s: f64) -> Reply {
        Reply {
            n,
            prompt: 0,
            cold: false,
            counted: true,
            planned_s,
            late_ms: 0.0,
            outcome: Outcome::Ok,
            status: Some(200),
            words: None,
            head_s: Some(0.01),
            first_event_s: Some(ttft_s),
            ttft_s: Some(ttft_s),
            total_s,
            gaps_s: vec![0.1, 0.2],
            chunks: 3,
            chars: 9,
            reasoning: false,
            comments: 0,
            finish_reason: Some("stop".into()),
            done: true,
            usage: Some(Usage { prompt_tokens: 100, completion_tokens: 50, cached_tokens: None }),
        }
    }

    #[test]
    fn a_run_worked_by_hand() {
        let cold = Reply { cold: true, counted: false, ..reply(0, 0.0, 9.0, 10.0) };
        let slow = reply(2, 11.0, 1.5, 4.0);
        let cut = Reply { outcome: Outcome::LengthCut, ..reply(3, 12.0, 0.5, 4.0) };
        let empty =
            Reply { outcome: Outcome::Empty, ttft_s: None, reasoning: true, ..reply(4, 13.0, 0.0, 1.0) };
        let lost = Reply { outcome: Outcome::Broken, usage: None, ..reply(5, 14.0, 0.2, 1.0) };
        let replies = [cold, reply(1, 10.0, 0.5, 2.0), slow, cut, empty, lost];
        let price = Price { per_hour: Some(36.0), per_million_completion: Some(1000.0), ..Price::default() };
        let f = figures(&replies, &Limits::default(), &price);
        assert_eq!(
            (f.requests, f.answered, f.length_cut, f.empty, f.thinking_only, f.errors),
            (5, 3, 1, 1, 1, 1)
        );
        assert_eq!((f.window_s, f.good), (6.0, 1));
        assert_eq!(f.ttft.unwrap().n, 3);
        assert_eq!(f.ttft_p95_with_failures_s, None);
        assert!((f.goodput_per_s - 1.0 / 6.0).abs() < 1e-12);
        assert!((f.tokens_per_s.unwrap() - 25.0).abs() < 1e-12);
        // Six seconds of rent and 200 tokens.
        assert!((f.cost.unwrap() - (0.06 + 0.2)).abs() < 1e-12);
        assert!((f.under_way - 2.0).abs() < 1e-12 && (f.rate_times_stay - 2.0).abs() < 1e-12);
        assert!((f.cold.unwrap().ttft_s.unwrap() - 9.0).abs() < 1e-12);
        let json = serde_json::to_string(&figures(&replies, &Limits::default(), &Price::default())).unwrap();
        assert!(json.contains("\"length_cut\":1") && json.contains("\"cost\":null"), "{json}");
    }

    #[test]
    fn tokens_that_nobody_counted_are_unknown() {
        let silent = Reply { usage: None, ..reply(1, 0.0, 0.1, 1.0) };
        let price = Price { per_million_completion: Some(1.0), ..Price::default() };
        let f = figures(&[silent, reply(2, 0.0, 0.1, 1.0)], &Limits::default(), &price);
        assert_eq!((f.tokens_per_s, f.cost), (None, None));
        let nothing = figures(&[], &Limits::default(), &price);
        assert_eq!((nothing.requests, nothing.ttft, nothing.window_s), (0, None, 0.0));
    }
}
