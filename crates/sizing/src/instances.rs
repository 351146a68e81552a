//! How many instances? Three answers: by memory alone, by the KV pool that the calls need, by first-text latency.

use serde::Serialize;
use tapedeck_l10n::StaticText;

use crate::error::{SizingError, count, positive, share};
use crate::supply::{Card, Topology, supply};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Need {
    /// Calls that are to be carried at once.
    pub calls: u32,
    /// What each of them needs at its peak, bytes.
    pub call_bytes: f64,
    /// Share of the card that all instances together may take, such as 0.92.
    pub share: f64,
    /// Calls that one instance carries within the latency limits, by measurement (N* / instances). Empty: unknown.
    pub latency_calls: Option<f64>,
}

/// How many instances fit one card, by each reckoning.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HowMany {
    /// Most instances whose weights and overhead fit.
    pub by_memory: u32,
    /// Fewest and most instances whose pools hold the calls; empty where no number does.
    pub by_kv: Option<(u32, u32)>,
    /// Fewest instances that keep the latency limits; empty where nobody measured what one carries. It supposes that
    /// instances on one card do not slow each other.
    pub by_latency: Option<u32>,
    /// Numbers that satisfy all three; empty where there is none, or where latency is unknown.
    pub all: Option<(u32, u32)>,
    /// The answers in words.
    pub sentences: Vec<String>,
}

/// The three answers for one card.
///
/// # Errors
/// A figure that is negative, not a number or absurd.
pub fn how_many(card: &Card, need: &Need) -> Result<HowMany, SizingError> {
    card.check()?;
    let all = share(StaticText::new("share of the card", "占显卡的比例"), need.share)?;
    let calls = count(StaticText::new("calls", "通数"), need.calls)?;
    positive(StaticText::new("memory of a call (bytes)", "单通显存（字节）"), need.call_bytes, 1e18)?;
    let fixed_gb = card.weights_gb + card.overhead_gb;
    // An instance without any pool serves nobody: the pool must be larger than nothing.
    let fits = |n: u32| all * card.memory_gb / f64::from(n) - fixed_gb > 1e-9;
    let by_memory = (1..=1_000).take_while(|&n| fits(n)).last().unwrap_or(0);
    let holds = |n: u32| {
        supply(card, Topology::split(all, n), need.call_bytes)
            .is_ok_and(|row| row.calls_all >= u64::from(need.calls))
    };
    // Pools hold whole calls, so a larger number may hold again what one below it does not: the first run counts.
    let fewest = (1..=by_memory).find(|&n| holds(n));
    let by_kv = fewest.and_then(|few| Some((few, (few..=by_memory).take_while(|&n| holds(n)).last()?)));
    let by_latency = match need.latency_calls {
        None => None,
        Some(each) => {
            let each = positive(
                StaticText::new(
                    "calls of one instance within the latency limits",
                    "单实例在延迟上限内的通数",
                ),
                each,
                1e9,
            )?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped to the range"
            )]
            let least = (calls / each - 1e-9).ceil().clamp(1.0, f64::from(u32::MAX)) as u32;
            Some(least)
        }
    };
    let both = by_kv.zip(by_latency).map(|((few, many), least)| (few.max(least), many));
    let in_all = both.filter(|(few, many)| few <= many);
    let mut sentences = vec![match by_memory {
        0 => format!("By memory alone not even one instance fits {} of {} GB.", all, card.memory_gb),
        n => format!("By memory alone (weights and overhead, {fixed_gb} GB each) at most {n} instances fit."),
    }];
    sentences.push(match by_kv {
        None => {
            format!("No number of instances on this card has pools for {} calls at their peak.", need.calls)
        }
        Some((few, many)) if few == many => {
            format!("By KV, the pools hold {} calls with {few} instance(s).", need.calls)
        }
        Some((few, many)) => {
            format!("By KV, the pools hold {} calls with {few} to {many} instances.", need.calls)
        }
    });
    sentences.push(match (need.latency_calls, by_latency) {
        (Some(each), Some(least)) => format!(
            "By latency, at least {least} instances of {each} calls each (measured) are needed, if instances on one card do not slow each other."
        ),
        _ => "By latency: unknown until a ladder says how many calls one instance carries (give --latency-calls).".into(),
    });
    sentences.push(match (in_all, by_latency) {
        (Some((few, many)), _) if few == many => format!("All three agree on {few} instance(s)."),
        (Some((few, many)), _) => format!("All three agree on {few} to {many} instances."),
        (None, None) => "Without the third answer there is no common one.".into(),
        (None, Some(_)) => "No number satisfies all three: another card, or fewer calls.".into(),
    });
    Ok(HowMany { by_memory, by_kv, by_latency, all: in_all, sentences })
}
