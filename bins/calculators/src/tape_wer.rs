//! `tape-wer`: word and character error rates of transcripts, on the command line.

use std::io::Write;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use tapedeck_record::{ExitCode, HasExitCode};
use tapedeck_wer::{
    BootstrapError, BootstrapSettings, Counts, Digits, Measures, RateEstimate, Rules, measure_with,
    paired_difference, pooled_rate,
};

use tapedeck_cli::Failure;

mod input;
mod output;

use input::{InputError, Pair};

/// Word and character error rates of transcripts against their references.
///
/// A TSV file has one line per call: id, a tab, text. The line is split at its first tab, and quotation marks
/// mean nothing: further tabs and quotes belong to the text, where they part words like any punctuation. A
/// byte order mark and CRLF are accepted, empty lines skipped, and so is a first line `file<TAB>text` or
/// `id<TAB>text`. See docs/wer.md.
#[derive(Debug, Parser)]
#[command(
    name = "tape-wer",
    version,
    after_help = "Examples:\n  tape-wer ref.tsv hyp.tsv\n  tape-wer ref.tsv under-load.tsv --baseline alone.tsv --alarm 1.0\n  \
                  tape-wer --jsonl pairs.jsonl --json\n\n\
                  Exit codes: 0 counted (and no --alarm), 1 worse than --alarm allows, 2 usage or a text that cannot be read, \
                  4 --alarm cannot be decided."
)]
pub struct Cli {
    /// Reference transcripts (TSV: id, text)
    #[arg(value_name = "REF.tsv", required_unless_present = "jsonl")]
    pub reference: Option<PathBuf>,
    /// Hypotheses (TSV: id, text)
    #[arg(value_name = "HYP.tsv", required_unless_present = "jsonl")]
    pub hypothesis: Option<PathBuf>,
    /// Read pairs from one file instead: a JSON object per line with the strings id, ref and hyp
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reference", "hypothesis"])]
    pub jsonl: Option<PathBuf>,
    /// Hypotheses of the same calls without load, in the same form; prints the paired difference
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Answer "no" (exit code 1) if the rate is more than this many percentage points above the baseline's
    #[arg(long, value_name = "POINTS", requires = "baseline")]
    pub alarm: Option<f64>,
    /// Make digits comparable however they are written; off by default because it changes figures
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub normalise: Vec<DigitRule>,
    /// Count a call without a hypothesis as deleted throughout, instead of refusing
    #[arg(long)]
    pub missing_as_deleted: bool,
    /// Print the pooled figures only
    #[arg(long)]
    pub pooled_only: bool,
    /// Print one JSON object per call and a last one for all, whose id is "pooled"
    #[arg(long)]
    pub json: bool,
    /// Draws of the bootstrap
    #[arg(long = "resamples", alias = "draws", value_name = "N", default_value_t = 2_000)]
    pub draws: u32,
    /// Seed of the bootstrap (ChaCha8)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Share of draws inside an interval
    #[arg(long = "confidence", alias = "level", value_name = "SHARE", default_value_t = 0.95)]
    pub level: f64,
}

/// A rule for digits, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DigitRule {
    /// Chinese digits (〇 一 二 ... 九, 零, 幺) are Arabic ones, each a token of its own
    DigitsZh,
    /// English digits (zero, one, ... nine) are Arabic ones, each a token of its own
    DigitsEn,
}

impl DigitRule {
    const fn name(self) -> &'static str {
        match self {
            Self::DigitsZh => "digits-zh",
            Self::DigitsEn => "digits-en",
        }
    }
}

/// One call and what was counted on it.
struct Call {
    id: String,
    measures: Measures,
}

/// Everything that is said of all calls together.
struct Pooled {
    calls: usize,
    measures: Measures,
    words: Option<RateEstimate>,
    chars: Option<RateEstimate>,
    baseline: Option<Baseline>,
    rules: Vec<&'static str>,
    resampling: BootstrapSettings,
}

/// The comparison with the calls without load.
struct Baseline {
    measures: Measures,
    words: Option<RateEstimate>,
    chars: Option<RateEstimate>,
}

/// Measures the transcripts and writes what it finds to `out`.
///
/// # Errors
/// Files that cannot be read or do not fit together, settings that make no sense, or an output that cannot
/// be written.
pub fn run(cli: &Cli, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let rules = Rules {
        digits: Digits {
            chinese: cli.normalise.contains(&DigitRule::DigitsZh),
            english: cli.normalise.contains(&DigitRule::DigitsEn),
        },
    };
    if let Some(points) = cli.alarm
        && !points.is_finite()
    {
        return Err(Failure::Usage(format!(
            "--alarm is {points}: give a number of percentage points, such as 1.0"
        )));
    }
    let pairs = pairs(cli)?;
    let calls: Vec<Call> = pairs
        .iter()
        .map(|pair| Call {
            id: pair.id.clone(),
            measures: measure_with(rules, &pair.reference, &pair.hypothesis),
        })
        .collect();
    let unloaded = match &cli.baseline {
        None => None,
        Some(path) => Some(
            baseline(cli, path, &pairs)?
                .iter()
                .zip(&pairs)
                .map(|(hypothesis, pair)| measure_with(rules, &pair.reference, hypothesis))
                .collect::<Vec<Measures>>(),
        ),
    };
    let resampling = BootstrapSettings { draws: cli.draws, seed: cli.seed, level: cli.level };
    let pooled = pool(&calls, unloaded.as_deref(), cli, resampling)?;

    let written = if cli.json {
        output::json(out, if cli.pooled_only { &[] } else { &calls }, &pooled)
    } else {
        output::text(out, if cli.pooled_only { &[] } else { &calls }, &pooled)
    };
    match written {
        // Whoever reads has seen enough.
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::System { what: "write the answer", source })
        }
        _ => Ok(verdict(cli, &pooled)),
    }
}

impl HasExitCode for InputError {
    fn exit_code(&self) -> ExitCode {
        ExitCode::Usage
    }
}

fn pairs(cli: &Cli) -> Result<Vec<Pair>, InputError> {
    match (&cli.jsonl, &cli.reference, &cli.hypothesis) {
        (Some(path), ..) => input::pairs_of_json_lines(path),
        (None, Some(reference), Some(hypothesis)) => {
            input::pairs_of_tables(reference, hypothesis, cli.missing_as_deleted)
        }
        _ => Err(InputError::NoFiles),
    }
}

/// The hypotheses without load, one for each pair.
fn baseline(cli: &Cli, path: &std::path::Path, pairs: &[Pair]) -> Result<Vec<String>, InputError> {
    let hypotheses = if cli.jsonl.is_some() {
        input::pairs_of_json_lines(path)?.into_iter().map(|pair| (pair.id, pair.hypothesis)).collect()
    } else {
        input::table(path)?.into_iter().map(|row| (row.id, row.text)).collect()
    };
    input::matched(pairs, hypotheses, path, cli.missing_as_deleted)
}

fn pool(
    calls: &[Call],
    unloaded: Option<&[Measures]>,
    cli: &Cli,
    resampling: BootstrapSettings,
) -> Result<Pooled, Failure> {
    let words: Vec<Counts> = calls.iter().map(|call| call.measures.words).collect();
    let chars: Vec<Counts> = calls.iter().map(|call| call.measures.chars).collect();
    let baseline = unloaded.map(|unloaded| -> Result<Baseline, Failure> {
        let (own_words, own_chars): (Vec<Counts>, Vec<Counts>) =
            unloaded.iter().map(|measures| (measures.words, measures.chars)).unzip();
        Ok(Baseline {
            measures: unloaded.iter().copied().sum(),
            words: known(paired_difference(&own_words, &words, resampling))?,
            chars: known(paired_difference(&own_chars, &chars, resampling))?,
        })
    });
    Ok(Pooled {
        calls: calls.len(),
        measures: calls.iter().map(|call| call.measures).sum(),
        words: known(pooled_rate(&words, resampling))?,
        chars: known(pooled_rate(&chars, resampling))?,
        baseline: baseline.transpose()?,
        rules: cli.normalise.iter().map(|rule| rule.name()).collect(),
        resampling,
    })
}

/// An interval, or none where there is nothing to be known; settings that make no sense are an error.
fn known(found: Result<RateEstimate, BootstrapError>) -> Result<Option<RateEstimate>, Failure> {
    match found {
        Ok(estimate) => Ok(Some(estimate)),
        Err(BootstrapError::Settings) => Err(Failure::Usage(BootstrapError::Settings.to_string())),
        Err(_) => Ok(None),
    }
}

fn verdict(cli: &Cli, pooled: &Pooled) -> ExitCode {
    let (Some(points), Some(baseline)) = (cli.alarm, &pooled.baseline) else {
        return ExitCode::Ok;
    };
    match baseline.words {
        None => ExitCode::Undecidable,
        Some(difference) if 100.0 * difference.value > points => ExitCode::No,
        Some(_) => ExitCode::Ok,
    }
}
