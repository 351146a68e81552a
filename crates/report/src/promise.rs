//! The capacity statement: from N* to lines and calls an hour, in plain sentences, with what is uncertain.

use tapedeck_l10n::Localize;
use tapedeck_record::Case;
use tapedeck_sizing::statement::{Basis, Carried, Measured, Statement, hard_ceiling, state};
use tapedeck_sizing::{Durations, PromisePlan};
use tapedeck_slo::Capacity;

use crate::answer::Answer;
use crate::messages::{LocalizedText, MessageId, message, number};
use crate::read::{Run, Step};
use crate::section::{Section, Table};

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
    let refused = |e: tapedeck_sizing::SizingError| e.text();
    plan.check().map_err(refused)?;
    let basis = Basis {
        short: short_seen,
        long,
        // A ladder without pace that had too few streams to reach N* found no ceiling.
        hard_ceiling: plan.hard_ceiling.or_else(|| ceiling(run).filter(|streams| *streams >= most)),
        safety: short.safety_factor,
        instances: u32::try_from(instances(run)).unwrap_or(u32::MAX).max(1),
        topology: run.config.as_ref().and_then(|c| c.config.sizing.topology.clone()),
        round_robin: plan.round_robin,
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
    let configured = run.config.as_ref().map_or(0, |c| c.config.instances.len());
    recorded.map_or(0, toml::Table::len).max(configured)
}

/// The business's own calls, where the plan says where they are.
fn own(plan: &PromisePlan) -> Result<Option<Durations>, LocalizedText> {
    let bad = |what: &std::path::Path, why: String| {
        message!(MessageId::StatementOwn, what.display().to_string(), why)
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
        Durations::of_mean(name, mean_s).map_err(|e| e.text())
    });
    mean.transpose()
}

/// The statement as a part of the report.
pub(crate) fn section(answer: &Answer) -> Option<Section> {
    let section = Section { id: "statement", title: message!(MessageId::Statement), ..Section::default() };
    match answer.statement.as_ref()? {
        Err(why) => Some(Section { lead: vec![message!(MessageId::StatementNone, why.clone())], ..section }),
        Ok(statement) => Some(Section {
            lead: statement.sentences.clone(),
            tables: vec![table(&statement.carried)],
            warnings: statement.caveats.clone(),
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
    let assertion = [MessageId::HeadDemand, MessageId::HeadLinesNeeded];
    let cell = |value: Option<f64>| value.map_or_else(|| message!(MessageId::NotKnown), |v| number(v).into());
    let rows = carried.iter().map(|c| {
        #[expect(clippy::cast_precision_loss, reason = "lines")]
        let needed = c.lines_needed.map(|lines| lines as f64);
        let mut row = vec![
            c.calls.label(),
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
        head: head.into_iter().chain(assertion.into_iter().filter(|_| asked)).map(MessageId::said).collect(),
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
            round_robin: false,
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
                round_robin: true,
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
            let refused = refused.unwrap_err().text();
            assert_ne!(refused.zh, refused.en, "not translated");
        }
        for basis in bases {
            let statement = state(&basis).unwrap();
            for LocalizedText { en: sentence, zh } in statement.sentences.iter().chain(&statement.caveats) {
                assert_ne!(zh, sentence, "not translated");
                let words = zh.split(|c: char| !c.is_ascii_alphabetic());
                let english: Vec<&str> =
                    words.filter(|w| w.len() > 3 && !["Erlang", "tape", "calls"].contains(w)).collect();
                assert!(english.is_empty(), "{english:?} of {sentence} stays English: {zh}");
            }
        }
    }
}
