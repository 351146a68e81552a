//! The capacity statement: from N* to lines and calls an hour, in plain sentences, with what is uncertain.

use tapedeck_record::Case;
use tapedeck_sizing::statement::{Basis, Carried, Measured, Statement, hard_ceiling, state};
use tapedeck_sizing::{Durations, PromisePlan};
use tapedeck_slo::Capacity;

use crate::answer::Answer;
use crate::messages::{LocalizedText, MessageId, message, number};
use crate::read::{Run, Step, recorded};
use crate::section::{Section, Table};

/// English pattern and Chinese for every sentence of a statement; see [`crate::recorded`].
pub(crate) const SENTENCES: &[(&str, &str)] = &[
    ("N* is {} on {} and {} on {}; instances: {}.", "N* 在 {1} 上为 {0} 路，在 {3} 上为 {2} 路；实例：{4}。"),
    ("N* is {} on {}; instances: {}.", "N* 在 {1} 上为 {0} 路；实例：{2}。"),
    (
        "Calls of {}, {} s on average: {} lines ({}) carry {} Erlang, which is {} calls an hour, and {}.",
        "{0} 的通话（平均 {1} 秒）：{2} 条线路（{3}）可承载 {4} Erl，即每小时 {5} 通，{6}。",
    ),
    ("{} x N* of {}, rounded down", "{0} × N*（{1} 路），向下取整"),
    ("the most without an alarm of word errors", "没有错误率告警的最大路数"),
    ("at most {} % of calls find no free line", "至多 {0} % 的来电找不到空闲线路"),
    ("at least {} % of calls are taken within {} s", "至少 {0} % 的来电在 {1} 秒内接通"),
    (
        "The demand of {} calls an hour is {} Erlang and needs {} lines: there are enough.",
        "每小时 {0} 通的需求为 {1} Erl，需要 {2} 条线路：够用。",
    ),
    (
        "The demand of {} calls an hour is {} Erlang and needs {} lines: there are too few.",
        "每小时 {0} 通的需求为 {1} Erl，需要 {2} 条线路：不够。",
    ),
    (
        "{} % of the calls of {} are longer than any on {}; N* was not measured with such calls.",
        "{1} 的通话中有 {0} % 比 {2} 上任何一通都长；没有用这样的通话测过 N*。",
    ),
    (
        "{} % of the calls of {} are longer than the longest that was played ({} s).",
        "{1} 的通话中有 {0} % 比播放过的最长一通（{2} 秒）还长。",
    ),
    (
        "On {}, {} streams passed and {} failed; what lies between them was not tried.",
        "在 {0} 上，{1} 路通过，{2} 路未通过；两者之间没有测过。",
    ),
    (
        "N* = {} on {} is a lower bound: nothing above it was shown to fail.",
        "{1} 上的 N* = {0} 只是下界：没有证明更高的路数不行。",
    ),
    ("How firm N* = {} on {} is was not said.", "{1} 上的 N* = {0} 有多可靠，没有说明。"),
    (
        "On {}, the verdict at {} rests on an estimate alone: its interval straddles a limit.",
        "在 {0} 上，{1} 路的判定仅凭点估计：区间跨过上限。",
    ),
    (
        "On {}, words get worse above {} streams: do not use more lines than {}.",
        "在 {0} 上，超过 {1} 路时识别变差：线路不要多于 {2} 条。",
    ),
    (
        "Beyond N* latency limits break; at {} streams (the hard ceiling) nothing keeps up at all. The {} lines stay {} below that.",
        "超过 N* 后延迟超限；到 {0} 路（硬上限）时完全跟不上。{1} 条线路比它低 {2}。",
    ),
    (
        "The hard ceiling is unknown: how far beyond N* the deployment still answers was not measured.",
        "硬上限未知：没有测过超出 N* 多远时系统仍能作答。",
    ),
    (
        "Connections are dealt out in turn. If each of the {} instances turned calls away at its own share of the lines, {} % would be blocked, for a full instance cannot use a free line of another.",
        "连接按轮询分配。若 {0} 个实例各自按自己那份线路拒接，将有 {1} % 的来电被拒，因为满载的实例用不上别的实例的空闲线路。",
    ),
    (
        "All {} instances count as one group of lines: that holds where the balancer sends a call to the instance with room.",
        "{0} 个实例按一组线路计算：前提是负载均衡把来电送到有空位的实例。",
    ),
    (
        "Erlang B supposes calls that arrive independently; it holds for any call lengths. A campaign that dials in bursts blocks more.",
        "Erlang B 假设来电彼此独立，对任何时长分布都成立。成批外呼的活动会有更多来电被拒。",
    ),
    (
        "Erlang C supposes exponential call lengths (CV 1); those of {} have a CV of {}, so waits are about {} x as long as stated.",
        "Erlang C 假设时长服从指数分布（变异系数 1）；{0} 的变异系数为 {1}，因此等待约为所述的 {2} 倍。",
    ),
    (
        "N* with long calls was not measured; it may be lower, for a call's memory grows with its length.",
        "没有测过长通话的 N*；它可能更低，因为一通电话占用的显存随时长增长。",
    ),
    (
        "N* was measured on the built-in engine: simulated, no promise about real servers.",
        "N* 是在内置引擎上测得的：属模拟数据，不代表真实服务器。",
    ),
    (
        "words get worse at every load: no line can be promised; see what TC-04 says",
        "任何负载下识别都变差：一条线路也不能承诺；见 TC-04 的结果",
    ),
    (
        "the hard ceiling ({}) is below N* ({}): no deployment keeps its limits above the load at which it breaks",
        "硬上限（{0}）低于 N*（{1}）：没有系统能在崩溃的负载之上仍满足上限",
    ),
    (
        "{} x N* = {} leaves no whole line; give a larger safety factor",
        "{0} × N*（{1} 路）不足一条线路；请用更大的安全系数",
    ),
    ("at least {}", "至少 {0}"),
    ("the given mean (spread unknown: taken as exponential)", "给定的平均时长（离散程度未知，按指数分布）"),
];

/// What a run lets one promise, or why nothing can be promised; empty where there is no N* to begin with.
pub(crate) fn promised(
    run: &Run,
    short: Option<&Capacity>,
    long: Option<&Capacity>,
) -> Option<Result<Statement, LocalizedText>> {
    let short = short.filter(|capacity| capacity.n_star.is_some())?;
    Some(statement(run, short, long))
}

fn statement(run: &Run, short: &Capacity, long: Option<&Capacity>) -> Result<Statement, LocalizedText> {
    let measured = |capacity: &Capacity, of_tape: fn(&Step) -> bool| {
        played(run, of_tape).map(|calls| Measured::found(capacity, calls))
    };
    let none = || message!(MessageId::StatementNoCalls);
    let short_seen = measured(short, Step::of_ladder).flatten().ok_or_else(none)?;
    let long = long.and_then(|capacity| measured(capacity, |step| step.id.case == Case::LongCalls).flatten());
    let most = long.as_ref().map_or(0, |long| long.n_star).max(short_seen.n_star);
    let plan = &run.promise;
    let refused = |e: tapedeck_sizing::SizingError| recorded(&e.to_string());
    plan.check().map_err(refused)?;
    let basis = Basis {
        short: short_seen,
        long,
        // A ladder without pace that had too few streams to reach N* found no ceiling.
        hard_ceiling: plan.hard_ceiling.or_else(|| ceiling(run).filter(|streams| *streams >= most)),
        safety: short.safety_factor,
        instances: u32::try_from(instances(run)).unwrap_or(u32::MAX).max(1),
        topology: sizing(run, "topology").and_then(toml::Value::as_str).map(str::to_owned),
        dealt_in_turn: plan.dealt_in_turn,
        promise: plan.promise().map_err(refused)?,
        own: own(plan)?,
        demand_per_h: plan.calls_per_hour,
        simulated: run.simulated() == Some(true),
    };
    state(&basis).map_err(refused)
}

/// The lengths of the calls that the tiers of a tape played, each call once.
fn played(run: &Run, of_tape: fn(&Step) -> bool) -> Option<Durations> {
    let step = run.steps.iter().find(|step| of_tape(step) && !step.partial && step.calls_agree)?;
    let calls: std::collections::BTreeMap<u32, f64> =
        step.calls.iter().filter(|call| call.counted).map(|call| (call.call, call.audio_s)).collect();
    let lengths: Vec<f64> = calls.into_values().collect();
    Durations::of_calls(step.report.tape.clone(), &lengths).ok()
}

/// The best that a ladder without pace reached in this run.
fn ceiling(run: &Run) -> Option<u32> {
    hard_ceiling(run.answers.offline.as_ref()?.iter().filter_map(|tier| tier.audio_s_per_s))
}

fn instances(run: &Run) -> usize {
    let recorded = run.environment.as_ref().and_then(|e| e.get("instances")?.as_table());
    let configured = run.config.as_ref().and_then(|c| c.get("instances")?.as_array());
    recorded.map_or(0, toml::Table::len).max(configured.map_or(0, Vec::len))
}

fn sizing<'a>(run: &'a Run, key: &str) -> Option<&'a toml::Value> {
    run.config.as_ref()?.get("sizing")?.get(key)
}

/// The business's own calls, where the plan says where they are.
fn own(plan: &PromisePlan) -> Result<Option<Durations>, LocalizedText> {
    let bad = |what: &std::path::Path, why: String| {
        message!(MessageId::StatementOwn, what.display().to_string(), recorded(&why))
    };
    if let Some(path) = &plan.histogram {
        let text = std::fs::read_to_string(path).map_err(|e| bad(path, e.to_string()))?;
        let name = path.display().to_string();
        return Durations::histogram(name, &text).map(Some).map_err(|e| bad(path, e.to_string()));
    }
    if let Some(folder) = &plan.pool {
        let lengths = tapedeck_tape::lengths_s(folder).map_err(|e| bad(folder, e.to_string()))?;
        let name = folder.display().to_string();
        return Durations::of_calls(name, &lengths).map(Some).map_err(|e| bad(folder, e.to_string()));
    }
    let mean = plan.mean_s.map(|mean_s| {
        let name = tapedeck_sizing::Durations::OF_MEAN;
        Durations::of_mean(name, mean_s).map_err(|e| recorded(&e.to_string()))
    });
    mean.transpose()
}

/// The statement as a part of the report.
pub(crate) fn section(answer: &Answer) -> Option<Section> {
    let section = Section { id: "statement", title: message!(MessageId::Statement), ..Section::default() };
    match answer.statement.as_ref()? {
        Err(why) => Some(Section { lead: vec![message!(MessageId::StatementNone, why.clone())], ..section }),
        Ok(statement) => Some(Section {
            lead: statement.sentences.iter().map(|s| recorded(s)).collect(),
            tables: vec![table(&statement.carried)],
            doubts: statement.doubts.iter().map(|s| recorded(s)).collect(),
            ..section
        }),
    }
}

fn table(carried: &[Carried]) -> Table {
    let asked = carried.iter().any(|c| c.demand_erl.is_some());
    let head = [
        MessageId::HeadCallsOf,
        MessageId::HeadMeanLength,
        MessageId::DefNStar,
        MessageId::HeadLines,
        MessageId::HeadTraffic,
        MessageId::HeadPerHourCalls,
        MessageId::HeadInTurn,
    ];
    let demand = [MessageId::HeadDemand, MessageId::HeadLinesNeeded];
    let cell = |value: Option<f64>| value.map_or_else(|| message!(MessageId::NotKnown), |v| number(v).into());
    let rows = carried.iter().map(|c| {
        #[expect(clippy::cast_precision_loss, reason = "lines")]
        let needed = c.lines_needed.map(|lines| lines as f64);
        let mut row = vec![
            recorded(&c.calls.name),
            number(c.calls.mean_s).into(),
            c.n_star.into(),
            c.lines.into(),
            number(c.erlang).into(),
            number(c.calls_per_h.floor()).into(),
            c.blocking_in_turn.map_or_else(
                || message!(MessageId::NotKnown),
                |share| format!("{} %", number(100.0 * share)).into(),
            ),
        ];
        if asked {
            row.extend([cell(c.demand_erl), cell(needed)]);
        }
        row
    });
    Table {
        caption: Some(message!(MessageId::StatementCaption)),
        head: head.into_iter().chain(demand.into_iter().filter(|_| asked)).map(MessageId::said).collect(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use tapedeck_sizing::statement::{Firmness, Promise};

    use super::*;

    /// Every sentence that a statement can hold has its Chinese.
    #[test]
    fn a_statement_is_said_in_chinese_whatever_it_says() {
        let tape = |name: &str| Durations::of_calls(name, &[30.0, 60.0, 180.0]).unwrap();
        let firm = Measured {
            firmness: Firmness::Exact,
            first_fail: Some(39),
            quality_cap: Some(20),
            by_estimate: vec![36, 39],
            ..Measured::said(36, tape("tape-a"))
        };
        let lower = Measured { firmness: Firmness::AtLeast, ..Measured::said(24, tape("tape-b")) };
        let own = Durations::of_calls("calls.csv", &[60.0, 600.0]).unwrap();
        let mean = Durations::of_mean(Durations::OF_MEAN, 180.0).unwrap();
        let basis = Basis {
            short: firm,
            long: Some(lower.clone()),
            hard_ceiling: Some(800),
            safety: 0.7,
            instances: 3,
            topology: Some("3x0.30".into()),
            dealt_in_turn: false,
            promise: Promise::Blocking(0.01),
            own: Some(own.clone()),
            demand_per_h: Some(50.0),
            simulated: true,
        };
        let bases = [
            basis.clone(),
            Basis {
                short: Measured::said(30, tape("tape-a")),
                long: None,
                hard_ceiling: None,
                topology: None,
                dealt_in_turn: true,
                own: Some(mean),
                demand_per_h: Some(5_000.0),
                ..basis.clone()
            },
            Basis {
                short: lower,
                promise: Promise::ServiceLevel { share: 0.8, within_s: 20.0 },
                instances: 1,
                ..basis
            },
        ];
        for (n_star, quality_cap, ceiling) in [(36, Some(0), None), (1, None, None), (36, None, Some(20))] {
            let short = Measured { quality_cap, ..Measured::said(n_star, tape("tape-a")) };
            let refused = state(&Basis { short, hard_ceiling: ceiling, long: None, ..bases[0].clone() });
            let refused = refused.unwrap_err().to_string();
            assert_ne!(recorded(&refused).zh, refused, "not translated");
        }
        for basis in bases {
            let statement = state(&basis).unwrap();
            for sentence in statement.sentences.iter().chain(&statement.doubts) {
                let zh = recorded(sentence).zh;
                assert_ne!(&zh, sentence, "not translated");
                let words = zh.split(|c: char| !c.is_ascii_alphabetic());
                let english: Vec<&str> =
                    words.filter(|w| w.len() > 3 && !["Erlang", "tape", "calls"].contains(w)).collect();
                assert!(english.is_empty(), "{english:?} of {sentence} stays English: {zh}");
            }
        }
    }
}
