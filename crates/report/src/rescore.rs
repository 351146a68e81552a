//! Other limits, anchors or rules on the traces of an old run, without a new one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tapedeck_config::{Config, ConfigError, Recorded, Setting, key};
use tapedeck_record::{CallMeta, CallRecord, Sample};
use tapedeck_rundir::{RunDir, RunDirError, RunInfo, read_run, samples_of};
use tapedeck_score::{Rules, Words, score};
use tapedeck_slo::{Limits, StepEvidence, TierReport, judge};
use tapedeck_tape::{Manifest, TapeError, md5_hex};

use crate::newrun::{Derived, NewRun, NewStep};
use crate::read::{Run, Step};
use crate::traces::{TraceError, traces};

/// Why a run cannot be scored anew.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RescoreError {
    /// A setting that does not exist or does not fit.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A setting that was decided when the run was played.
    #[error(
        "`{key}` was decided when the run was played: only {}.*, {} and {SPEECH_MIN} can be rescored with",
        key!(slo),
        key!(server.window_ms)
    )]
    Played {
        /// What was given.
        key: String,
    },
    /// A value that does not fit.
    #[error("`{key}` cannot be `{value}`: {why}")]
    Value {
        /// The setting.
        key: String,
        /// What was given.
        value: String,
        /// Why not.
        why: String,
    },
    /// A part of the run is not there.
    #[error("{what}; without it nothing can be scored anew")]
    Missing {
        /// What.
        what: String,
    },
    /// A run of schema 1, whose journal does not hold what its steps were judged from.
    #[error(
        "step {step} of {run} was written by version 0.1.0 (commit 13300b5) or an earlier one, which did not keep \
         what it was judged from: score it anew with that version; everything else of the run can be read"
    )]
    NoEvidence {
        /// Name of the run.
        run: String,
        /// The first step without it.
        step: String,
    },
    /// A tape that is not the one that was played.
    #[error("{} has MD5 {found}, the run played {expected}: give the tape that was played with --tape", path.display())]
    OtherTape {
        /// The manifest.
        path: PathBuf,
        /// Its MD5.
        found: String,
        /// The MD5 in run.json.
        expected: String,
    },
    /// A manifest that cannot be read.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// Traces that cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The journal or the samples cannot be read, the result cannot be written, or its folder holds something that was
    /// measured.
    #[error(transparent)]
    Run(#[from] RunDirError),
}

/// What to change.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// `slo.rtf_p95 = 0.6` and the like, also `server.window_ms` and `score.window_speech_min_ms`.
    pub settings: Vec<Setting>,
    /// Manifests to use instead of those that the config names.
    pub tapes: Vec<PathBuf>,
}

/// What came of it.
#[derive(Debug)]
pub struct Rescored {
    /// Steps that were scored anew.
    pub steps: usize,
    /// Steps that could not be (drawn from a pool, or on a tape that is not there), by name.
    pub left_out: Vec<String>,
}

/// Scores and judges a run anew and writes the result as a run directory of its own.
///
/// # Errors
/// [`RescoreError`]: settings that do not exist, tapes or traces that are not those of the run, a result that would
/// replace what was measured.
pub fn rescore(run: &Run, changes: &Changes, out: &Path) -> Result<Rescored, RescoreError> {
    RunDir::may_derive(out)?;
    let missing =
        |what: &str| RescoreError::Missing { what: format!("{what} of {} cannot be read", run.name()) };
    let mut recorded = run.config.clone().ok_or_else(|| missing("run.toml"))?;
    let mut speech_min_ms = None;
    for setting in &changes.settings {
        apply(&mut recorded, setting, &mut speech_min_ms)?;
    }
    for needed in [key!(slo), key!(server)] {
        recorded.section(needed, |_| ()).ok_or_else(|| missing(&format!("[{needed}] in run.toml")))?;
    }
    let config = &recorded.config;
    config.check()?;
    let limits = config.slo.clone();
    let unjudged = |s: &&Step| !s.partial && s.evidence.is_none();
    if let Some(step) = run.steps.iter().find(unjudged) {
        return Err(RescoreError::NoEvidence { run: run.name(), step: step.name.clone() });
    }
    let window_ms = config.server.window_ms;
    let metas = tapes(run, config, &changes.tapes)?;
    let (_, committed) = read_run(&run.path)?;
    let mut steps = Vec::new();
    let mut left_out = Vec::new();
    for step in run.steps.iter().filter(|s| !s.partial) {
        let Some(kept) = &step.evidence else { continue };
        let mut rules = Rules::new(kept.evidence, window_ms);
        if let Some(ms) = speech_min_ms {
            rules.window_speech_min_ms = ms;
        }
        let Some(calls) = calls(run, step, &metas, &rules)? else {
            left_out.push(step.name.clone());
            continue;
        };
        let samples = samples_of(&run.path, &committed, &step.name)?;
        let evidence = StepEvidence { window_ms, ..kept.clone() };
        let report = rejudge(&step.report, &evidence, &calls, &samples, &limits);
        steps.push(NewStep { id: step.id.clone(), report, evidence: Some(evidence), calls, samples });
    }
    let scored = steps.len();
    let info = run.info.clone().ok_or_else(|| missing("run.json"))?;
    let new = NewRun {
        info: RunInfo { run_id: format!("{}-rescored", info.run_id), ..info },
        config: recorded.tree,
        environment: run.environment.clone(),
        steps,
        events: run.events.clone(),
        limits,
        derived: Derived::Rescored {
            left_out: left_out.clone(),
            rescored_from: run.name(),
            settings: changes.settings.iter().map(ToString::to_string).collect(),
        },
    };
    new.write(out)?;
    Ok(Rescored { steps: scored, left_out })
}

/// A rule of scoring that no config holds: speech that a window needs before text is owed, milliseconds.
const SPEECH_MIN: &str = "score.window_speech_min_ms";

fn apply(
    recorded: &mut Recorded,
    Setting { key, value }: &Setting,
    speech_min_ms: &mut Option<u32>,
) -> Result<(), RescoreError> {
    if key == SPEECH_MIN {
        let why = "it must be a whole number of milliseconds".to_owned();
        let wrong = |_| RescoreError::Value { key: key.clone(), value: value.clone(), why };
        *speech_min_ms = Some(value.parse().map_err(wrong)?);
        return Ok(());
    }
    recorded.set(key, value)?;
    let scores = key == key!(server.window_ms)
        || key.strip_prefix(key!(slo)).is_some_and(|rest| rest.starts_with('.'));
    if scores { Ok(()) } else { Err(RescoreError::Played { key: key.clone() }) }
}

/// The calls of every tape whose manifest is there and is the one that was played.
fn tapes(
    run: &Run,
    config: &Config,
    given: &[PathBuf],
) -> Result<BTreeMap<String, Vec<CallMeta>>, RescoreError> {
    let digests = run.info.as_ref().map(|i| i.tapes.clone()).unwrap_or_default();
    let named =
        [&config.tape, &config.tape_b, &config.labelled].into_iter().map(|tape| tape.manifest.clone());
    let named = named.filter(|path| !path.as_os_str().is_empty());
    let mut all = BTreeMap::new();
    for (path, must) in given.iter().cloned().map(|p| (p, true)).chain(named.map(|p| (p, false))) {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if must => {
                return Err(RescoreError::Missing { what: format!("{}: {e}", path.display()) });
            }
            Err(_) => continue,
        };
        let manifest = Manifest::parse(&bytes, &path)?;
        let found = md5_hex(&bytes);
        match digests.get(&manifest.name) {
            Some(expected) if *expected != found && !all.contains_key(&manifest.name) => {
                return Err(RescoreError::OtherTape { path, found, expected: expected.clone() });
            }
            _ => {}
        }
        let metas = (0_u32..).zip(&manifest.calls).map(|(i, c)| c.meta(i)).collect();
        all.entry(manifest.name.clone()).or_insert(metas);
    }
    Ok(all)
}

/// The calls of a step with new figures; nothing where their tape is not known.
fn calls(
    run: &Run,
    step: &Step,
    metas: &BTreeMap<String, Vec<CallMeta>>,
    rules: &Rules,
) -> Result<Option<Vec<CallRecord>>, RescoreError> {
    // Words were counted while the texts were at hand; they do not depend on limits, anchors or rules.
    let words: BTreeMap<(u32, u32), Words> = step
        .calls
        .iter()
        .map(|c| {
            let words = Words { finals: c.words_finals, finals_and_tail: c.words, chars: c.chars };
            ((c.stream, c.seq), words)
        })
        .collect();
    let mut all = Vec::new();
    for trace in traces(&run.path, &step.name)? {
        let tape = trace.tape.as_ref().unwrap_or(&step.report.tape);
        let index = usize::try_from(trace.call).unwrap_or(usize::MAX);
        let Some(meta) = metas.get(tape).and_then(|calls| calls.get(index)) else { return Ok(None) };
        let words = words.get(&(trace.stream, trace.seq)).copied().unwrap_or_default();
        all.push(score(&trace, meta, rules, &words));
    }
    Ok((!all.is_empty()).then_some(all))
}

/// Judges a step by other limits. What was not decided from its records stays as it was.
fn rejudge(
    old: &TierReport,
    evidence: &StepEvidence,
    calls: &[CallRecord],
    samples: &[Sample],
    limits: &Limits,
) -> TierReport {
    let mut report = judge(&evidence.tier(calls, samples), limits);
    report.labels.clone_from(&old.labels);
    report
}
