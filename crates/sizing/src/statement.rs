//! From N* to a sentence that can be signed: lines, traffic, calls per hour, and what is uncertain.

use serde::Serialize;
use tapedeck_erlang::{busy_hour, erlang_b, erlang_c, split};
use tapedeck_l10n::{LocalizedText, StaticText, localized};
use tapedeck_slo::{Capacity, CapacityState};

use crate::durations::Durations;
use crate::error::{SizingError, count, positive, share};
use crate::supply::whole;

/// How firmly N* is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Firmness {
    /// The next tier failed.
    Exact,
    /// No tier failed, or none that proves it: N* may be higher.
    AtLeast,
    /// Nobody said.
    Unknown,
}

/// N* on one tape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Most streams within all limits.
    pub n_star: u32,
    /// How firm that is.
    pub firmness: Firmness,
    /// The tier that failed, where one did.
    pub first_fail: Option<u32>,
    /// Streams above which words get worse: no more lines than that.
    pub quality_cap: Option<u32>,
    /// Tiers whose verdict rests on an estimate alone.
    pub by_estimate: Vec<u32>,
    /// The lengths of the calls that were played.
    pub played: Durations,
}

impl Measured {
    /// As somebody says: nothing else is known of it.
    #[must_use]
    pub const fn said(n_star: u32, played: Durations) -> Self {
        Self {
            n_star,
            firmness: Firmness::Unknown,
            first_fail: None,
            quality_cap: None,
            by_estimate: Vec::new(),
            played,
        }
    }

    /// As a ladder found it; empty where it found none.
    #[must_use]
    pub fn found(capacity: &Capacity, played: Durations) -> Option<Self> {
        Some(Self {
            n_star: capacity.n_star?,
            firmness: match capacity.state {
                CapacityState::Exact => Firmness::Exact,
                CapacityState::Censored | CapacityState::AtLeastUnproven => Firmness::AtLeast,
                CapacityState::None | CapacityState::Undecided => return None,
            },
            first_fail: capacity.first_fail,
            quality_cap: capacity.quality_cap,
            by_estimate: capacity.point_verdict_tiers.clone(),
            played,
        })
    }

    /// Lines that may be promised.
    fn lines(&self, safety: f64) -> u64 {
        let lines = whole(safety * f64::from(self.n_star));
        self.quality_cap.map_or(lines, |cap| lines.min(u64::from(cap)))
    }
}

/// What calls are promised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// At most this share of calls finds no free line and is turned away (Erlang B).
    Blocking(f64),
    /// At least `share` of calls is taken within `within_s` seconds (Erlang C).
    ServiceLevel {
        /// The share, 0..1.
        share: f64,
        /// Seconds.
        within_s: f64,
    },
}

/// The hard ceiling, streams: at so many the audio comes in as fast as the deployment worked through it at best, so that RTF is 1
/// and nothing is ever early. Each figure is seconds of audio a second, measured without pace.
#[must_use]
pub fn hard_ceiling(audio_s_per_s: impl Iterator<Item = f64>) -> Option<u32> {
    let best = audio_s_per_s.filter(|rate| rate.is_finite()).fold(0.0, f64::max);
    u32::try_from(whole(best)).ok().filter(|streams| *streams > 0)
}

/// Everything that a statement rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Basis {
    /// N* with short calls.
    pub short: Measured,
    /// N* with long calls, where it was measured.
    pub long: Option<Measured>,
    /// Streams at which everything broke when latency did not matter; where known.
    pub hard_ceiling: Option<u32>,
    /// Share of N* that is promised.
    pub safety: f64,
    /// Instances that carry it.
    pub instances: u32,
    /// How the cards are cut into them, in words, where known.
    pub topology: Option<String>,
    /// Whether connections are dealt out in turn, whatever is busy; else they go where there is room.
    pub round_robin: bool,
    /// What is promised.
    pub promise: Promise,
    /// The business's own call lengths, where known.
    pub own: Option<Durations>,
    /// Calls per hour that are expected, where known.
    pub demand_per_h: Option<f64>,
    /// Whether N* was measured on the built-in engine.
    pub simulated: bool,
}

/// What can be carried for calls of one distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Carried {
    /// The call lengths.
    pub calls: Durations,
    /// The N* that it rests on.
    pub n_star: u32,
    /// Which tape that N* comes from.
    pub n_star_from: String,
    /// Lines: floor(safety x N*), and no more than words allow.
    pub lines: u64,
    /// Traffic that these lines take within the promise, Erlang.
    pub erlang: f64,
    /// Calls per hour that this is.
    pub calls_per_h: f64,
    /// Blocking at that traffic if connections were dealt out in turn to instances with a limit of their own each;
    /// empty for one instance, or where the promise is a service level.
    pub blocking_in_turn: Option<f64>,
    /// Lines that the expected demand needs; empty where there is none, or no number meets the promise.
    pub lines_needed: Option<u64>,
    /// Traffic of the expected demand, Erlang.
    pub demand_erl: Option<f64>,
    /// Whether the lines are enough for it.
    pub enough: Option<bool>,
}

/// A statement with its figures, its sentences, and its caveats.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Figures, one for each distribution of call lengths.
    pub carried: Vec<Carried>,
    /// The statement in plain sentences.
    pub sentences: Vec<LocalizedText>,
    /// What is uncertain, in plain sentences.
    pub caveats: Vec<LocalizedText>,
    /// Whether the lines are enough for the demand at every distribution that was asked for; empty without a demand.
    pub enough: Option<bool>,
}

/// Turns a measured N* into lines and calls per hour, for the tapes and for the business's own calls.
///
/// # Errors
/// A figure out of range; an N* of 0; a ceiling below N*; a promise that no traffic keeps.
pub fn state(basis: &Basis) -> Result<Statement, SizingError> {
    check(basis)?;
    let mut books: Vec<(&Measured, &Durations)> = vec![(&basis.short, &basis.short.played)];
    if let Some(long) = &basis.long {
        books.push((long, &long.played));
    }
    let mut caveats = Vec::new();
    if let Some(own) = &basis.own {
        let beyond = own.share_longer(basis.short.played.longest_s);
        let measured = match &basis.long {
            Some(long) if beyond > 0.05 => long,
            _ => &basis.short,
        };
        if beyond > 0.05 {
            let played = basis.long.as_ref().map_or(basis.short.played.longest_s, |l| l.played.longest_s);
            let still = own.share_longer(played);
            if basis.long.is_none() {
                let (share, own, tape) = (100.0 * beyond, own.label(), &basis.short.played.name);
                caveats.push(localized!(
                    "{share:.0} % of the calls of {} are longer than any on {tape}; N* was not measured with such calls.",
                    "{} 的通话中有 {share:.0} % 比 {tape} 上任何一通都长；没有用这样的通话测过 N*。";
                    own
                ));
            } else if still > 0.05 {
                let (share, own) = (100.0 * still, own.label());
                caveats.push(localized!(
                    "{share:.0} % of the calls of {} are longer than the longest that was played ({played} s).",
                    "{} 的通话中有 {share:.0} % 比播放过的最长一通（{played} 秒）还长。";
                    own
                ));
            }
        }
        books.push((measured, own));
    }
    let carried =
        books.iter().map(|(measured, calls)| carry(basis, measured, calls)).collect::<Result<Vec<_>, _>>()?;
    let answers: Vec<bool> = match (&basis.own, carried.last()) {
        // Where the business told its own lengths, they decide.
        (Some(_), Some(own)) => own.enough.into_iter().collect(),
        _ => carried.iter().filter_map(|c| c.enough).collect(),
    };
    let enough = (!answers.is_empty()).then(|| answers.iter().all(|&yes| yes));
    let sentences =
        [known(basis)].into_iter().chain(carried.iter().flat_map(|c| sentences(basis, c))).collect();
    caveats.extend(uncertain(basis, &carried));
    Ok(Statement { carried, sentences, caveats, enough })
}

fn check(basis: &Basis) -> Result<(), SizingError> {
    share(StaticText::new("safety factor", "安全系数"), basis.safety)?;
    count(StaticText::new("instances", "实例数"), basis.instances)?;
    for measured in [Some(&basis.short), basis.long.as_ref()].into_iter().flatten() {
        if measured.n_star == 0 {
            return Err(SizingError::Nothing {
                what: StaticText::new("N* is 0", "N* 为 0"),
                hint: StaticText::new(
                    "a deployment that carries no stream can promise no call; measure again after a change",
                    "一路也承载不了的系统无法承诺任何通话；请改动后重测",
                ),
            });
        }
        if basis.hard_ceiling.is_some_and(|ceiling| ceiling < measured.n_star) {
            let ceiling = basis.hard_ceiling.unwrap_or_default();
            return Err(SizingError::CeilingBelowNStar { ceiling, n_star: measured.n_star });
        }
        if measured.quality_cap == Some(0) {
            return Err(SizingError::WordsAlwaysWorse);
        }
        if measured.lines(basis.safety) == 0 {
            return Err(SizingError::NoWholeLine { safety: basis.safety, n_star: measured.n_star });
        }
    }
    if let Some(calls) = basis.demand_per_h {
        positive(StaticText::new("calls per hour", "每小时通数"), calls, 1e12)?;
    }
    Ok(())
}

fn carry(basis: &Basis, measured: &Measured, calls: &Durations) -> Result<Carried, SizingError> {
    let lines = measured.lines(basis.safety);
    let erlang = match basis.promise {
        Promise::Blocking(blocking) => erlang_b::traffic(lines, blocking)?,
        Promise::ServiceLevel { share, within_s } => {
            erlang_c::traffic_for_service_level(lines, share, within_s / calls.mean_s)?
        }
    };
    let demand_erl = basis.demand_per_h.map(|per_h| busy_hour::traffic(per_h, calls.mean_s)).transpose()?;
    let lines_needed = demand_erl
        .map(|a| match basis.promise {
            Promise::Blocking(blocking) => erlang_b::lines(a, blocking),
            Promise::ServiceLevel { share, within_s } => {
                erlang_c::lines_for_service_level(a, share, within_s / calls.mean_s)
            }
        })
        .transpose()?;
    let each = lines / u64::from(basis.instances);
    let blocking_in_turn = match basis.promise {
        Promise::Blocking(_) if basis.instances > 1 && each > 0 => {
            Some(split::compare(erlang, u64::from(basis.instances), each)?.split)
        }
        _ => None,
    };
    Ok(Carried {
        calls: calls.clone(),
        n_star: measured.n_star,
        n_star_from: measured.played.name.clone(),
        lines,
        erlang,
        calls_per_h: busy_hour::calls_per_hour(erlang, calls.mean_s)?,
        blocking_in_turn,
        lines_needed,
        demand_erl,
        enough: lines_needed.map(|needed| needed <= lines),
    })
}

/// What everything else follows from.
fn known(basis: &Basis) -> LocalizedText {
    let n_star = |m: &Measured| {
        let (n, tape) = (m.n_star, &m.played.name);
        match m.firmness {
            Firmness::AtLeast => localized!("at least {n} on {tape}", "在 {tape} 上为至少 {n} 路"),
            Firmness::Exact | Firmness::Unknown => localized!("{n} on {tape}", "在 {tape} 上为 {n} 路"),
        }
    };
    let cut = basis.topology.as_ref().map_or_else(String::new, |topology| format!(" ({topology})"));
    let (short, instances) = (n_star(&basis.short), basis.instances);
    match basis.long.as_ref().map(n_star) {
        Some(long) => localized!(
            "N* is {} and {}; instances: {instances}{cut}.",
            "N* {}，{}；实例：{instances}{cut}。";
            short, long
        ),
        None => {
            localized!("N* is {}; instances: {instances}{cut}.", "N* {}；实例：{instances}{cut}。"; short)
        }
    }
}

fn sentences(basis: &Basis, carried: &Carried) -> Vec<LocalizedText> {
    let promise = match basis.promise {
        Promise::Blocking(share) => localized!(
            "at most {} % of calls find no free line",
            "至多 {} % 的来电找不到空闲线路",
            tidy(100.0 * share)
        ),
        Promise::ServiceLevel { share, within_s } => localized!(
            "at least {} % of calls are taken within {} s",
            "至少 {} % 的来电在 {} 秒内接通",
            tidy(100.0 * share),
            tidy(within_s)
        ),
    };
    let why = if carried.lines < whole(basis.safety * f64::from(carried.n_star)) {
        localized!("the most without an alarm of word errors", "没有错误率告警的最大路数")
    } else {
        let (safety, n_star) = (tidy(basis.safety), carried.n_star);
        localized!("{safety} x N* of {n_star}, rounded down", "{safety} × N*（{n_star} 路），向下取整")
    };
    let (mean_s, lines, erlang) = (tidy(carried.calls.mean_s), carried.lines, tidy(carried.erlang));
    let per_h = carried.calls_per_h.floor();
    let mut all = vec![localized!(
        "Calls of {}, {mean_s} s on average: {lines} lines ({}) carry {erlang} Erlang, which is {per_h} calls an hour, and {}.",
        "{} 的通话（平均 {mean_s} 秒）：{lines} 条线路（{}）可承载 {erlang} Erl，即每小时 {per_h} 通，{}。";
        carried.calls.label(), why, promise
    )];
    if let (Some(per_h), Some(erl), Some(needed), Some(enough)) =
        (basis.demand_per_h, carried.demand_erl, carried.lines_needed, carried.enough)
    {
        let enough = match enough {
            true => localized!("there are enough", "够用"),
            false => localized!("there are too few", "不够"),
        };
        let (per_h, erl) = (tidy(per_h), tidy(erl));
        all.push(localized!(
            "The demand of {per_h} calls an hour is {erl} Erlang and needs {needed} lines: {}.",
            "每小时 {per_h} 通的需求为 {erl} Erl，需要 {needed} 条线路：{}。";
            enough
        ));
    }
    all
}

fn uncertain(basis: &Basis, carried: &[Carried]) -> Vec<LocalizedText> {
    let measured = [Some(&basis.short), basis.long.as_ref()].into_iter().flatten();
    let mut caveats: Vec<LocalizedText> = measured.flat_map(of_measured).collect();
    caveats.push(of_ceiling(basis, carried));
    caveats.extend(of_instances(basis, carried));
    caveats.extend(of_promise(basis, carried));
    if basis.long.is_none() {
        caveats.push(localized!(
            "N* with long calls was not measured; it may be lower, for a call's memory grows with its length.",
            "没有测过长通话的 N*；它可能更低，因为一通电话占用的显存随时长增长。"
        ));
    }
    if basis.simulated {
        caveats.push(localized!(
            "N* was measured on the built-in engine: simulated, no promise about real servers.",
            "N* 是在内置引擎上测得的：属模拟数据，不代表真实服务器。"
        ));
    }
    caveats
}

/// How firm one N* is.
fn of_measured(measured: &Measured) -> Vec<LocalizedText> {
    let (n, tape) = (measured.n_star, &measured.played.name);
    let mut caveats = Vec::new();
    match measured.firmness {
        Firmness::Exact => caveats.extend(measured.first_fail.map(|fail| {
            localized!(
                "On {tape}, {n} streams passed and {fail} failed; what lies between them was not tried.",
                "在 {tape} 上，{n} 路通过，{fail} 路未通过；两者之间没有测过。"
            )
        })),
        Firmness::AtLeast => caveats.push(localized!(
            "N* = {n} on {tape} is a lower bound: nothing above it was shown to fail.",
            "{tape} 上的 N* = {n} 只是下界：没有证明更高的路数不行。"
        )),
        Firmness::Unknown => caveats.push(localized!(
            "How firm N* = {n} on {tape} is was not said.",
            "{tape} 上的 N* = {n} 有多可靠，没有说明。"
        )),
    }
    let near = |tier: &&u32| **tier == n || Some(**tier) == measured.first_fail;
    let tiers: Vec<String> = measured.by_estimate.iter().filter(near).map(ToString::to_string).collect();
    if !tiers.is_empty() {
        let tiers = tiers.join(", ");
        caveats.push(localized!(
            "On {tape}, the verdict at {tiers} rests on an estimate alone: its interval straddles a limit.",
            "在 {tape} 上，{tiers} 路的判定仅凭点估计：区间跨过上限。"
        ));
    }
    if let Some(cap) = measured.quality_cap {
        caveats.push(localized!(
            "On {tape}, words get worse above {cap} streams: do not use more lines than {cap}.",
            "在 {tape} 上，超过 {cap} 路时识别变差：线路不要多于 {cap} 条。"
        ));
    }
    caveats
}

fn of_ceiling(basis: &Basis, carried: &[Carried]) -> LocalizedText {
    let Some(ceiling) = basis.hard_ceiling else {
        return localized!(
            "The hard ceiling is unknown: how far beyond N* the deployment still answers was not measured.",
            "硬上限未知：没有测过超出 N* 多远时系统仍能作答。"
        );
    };
    let lines = carried.first().map_or(0, |c| c.lines);
    let below = u64::from(ceiling).saturating_sub(lines);
    localized!(
        "Beyond N* latency limits break; at {ceiling} streams (the hard ceiling) nothing keeps up at all. The {lines} lines stay {below} below that.",
        "超过 N* 后延迟超限；到 {ceiling} 路（硬上限）时完全跟不上。{lines} 条线路比它低 {below}。"
    )
}

fn of_instances(basis: &Basis, carried: &[Carried]) -> Option<LocalizedText> {
    let instances = basis.instances;
    if instances <= 1 {
        return None;
    }
    let worst = carried.iter().filter_map(|c| c.blocking_in_turn).fold(0.0, f64::max);
    Some(if basis.round_robin && worst > 0.0 {
        let worst = tidy(100.0 * worst);
        localized!(
            "Connections are dealt out in turn. If each of the {instances} instances turned calls away at its own share of the lines, {worst} % would be blocked, for a full instance cannot use a free line of another.",
            "连接按轮询分配。若 {instances} 个实例各自按自己那份线路拒接，将有 {worst} % 的来电被拒，因为满载的实例用不上别的实例的空闲线路。"
        )
    } else {
        localized!(
            "All {instances} instances count as one group of lines: that holds where the balancer sends a call to the instance with room.",
            "{instances} 个实例按一组线路计算：前提是负载均衡把来电送到有空位的实例。"
        )
    })
}

fn of_promise(basis: &Basis, carried: &[Carried]) -> Vec<LocalizedText> {
    if let Promise::Blocking(_) = basis.promise {
        return vec![localized!(
            "Erlang B supposes calls that arrive independently; it holds for any call lengths. A campaign that dials in bursts blocks more.",
            "Erlang B 假设来电彼此独立，对任何时长分布都成立。成批外呼的活动会有更多来电被拒。"
        )];
    }
    let uneven = carried.iter().filter(|c| (c.calls.cv - 1.0).abs() > 0.1);
    let supposed = uneven.map(|c| {
        let (cv, times) = (tidy(c.calls.cv), tidy(f64::midpoint(1.0, c.calls.cv.powi(2))));
        localized!(
            "Erlang C supposes exponential call lengths (CV 1); those of {} have a CV of {cv}, so waits are about {times} x as long as stated.",
            "Erlang C 假设时长服从指数分布（变异系数 1）；{} 的变异系数为 {cv}，因此等待约为所述的 {times} 倍。";
            c.calls.label()
        )
    });
    supposed.collect()
}

/// Four significant digits without idle zeros.
pub(crate) fn tidy(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    let places = (0..8).find(|&p| x.abs() * 10_f64.powi(p) >= 999.5).unwrap_or(8);
    let text = format!("{x:.0$}", usize::try_from(places).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
