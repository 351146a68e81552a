//! `tc04`: words under load, on the command line.

use clap::Parser;
use tapedeck_answers::{QualityAnswer, QualityPoint, Rise};
use tapedeck_cases::Role;
use tapedeck_cases::quality;
use tapedeck_l10n::Localize;
use tapedeck_record::ExitCode;

use tapedeck_cli::Failure;

use crate::common::{Common, NStarFlag};
use crate::console::last_lines;

/// Count word errors alone and under load: do more streams cost accuracy?
#[derive(Debug, Parser)]
#[command(
    name = "tc04",
    version,
    after_help = "Examples:\n  tc04 --rehearse --n-star 39\n  tc04 --config site.toml --into results/tc03-20260101T080000Z\n\n\
                  Exit codes: 0 no point is worse than one stream by more than the limit, 1 one is, \
                  2 usage or config, 3 environment, 4 not decidable, 130 interrupted."
)]
pub struct Cli {
    /// N*, where the run directory holds none.
    #[command(flatten)]
    pub n_star: NStarFlag,
    /// What every case understands.
    #[command(flatten)]
    pub common: Common,
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let n_star = cli.n_star.given(&cli.common, "tc04")?;
    let config = cli.common.config()?;
    let (answer, console) =
        cli.common.carry_out(config, "tc04", &[Role::Labelled], async |world, dir, console| {
            console.head(&world.config.slo);
            quality::run(world, dir, console, n_star).await
        })?;
    console.conclude("tc04", &answer, summary);
    Ok(console.exit(answer.decision.exit_code(answer.interrupted)))
}

/// The last lines.
#[must_use]
pub fn summary(answer: &QualityAnswer) -> Vec<String> {
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let mut lines = vec![
        String::new(),
        format!(
            "Words of {} under load; N* = {} ({}){simulated}",
            answer.tape, answer.n_star.streams, answer.n_star.source
        ),
    ];
    if let Some(baseline) = &answer.baseline {
        for (name, rate) in [("WER", baseline.wer), ("CER", baseline.cer)] {
            if let Some(rate) = rate {
                lines.push(format!(
                    "{name} of one stream: {:.2} % ({} errors in {} tokens, {} calls)",
                    rate.rate * 100.0,
                    rate.errors,
                    rate.ref_tokens,
                    rate.calls
                ));
            }
        }
    }
    lines.push(
        "streams  labelled      WER  rise of WER, points         rise of CER, points         lost".into(),
    );
    lines.extend(answer.points.iter().map(point));
    lines.push(
        "A rise is paired by call, with the 95 % interval of a bootstrap by call; below about 20 calls it is a guide"
            .into(),
    );
    if answer.clean_up_to.is_some() {
        let published = answer.published;
        lines.push(format!(
            "{}; {published} streams may be published",
            capitalised(&answer.finding().text().en)
        ));
    }
    lines.extend(last_lines(answer.decision, answer.simulated, answer.interrupted, &answer.run));
    lines
}

fn capitalised(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map(|c| c.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

fn point(p: &QualityPoint) -> String {
    let rise = |r: Option<Rise>| {
        r.map_or_else(
            || "-".into(),
            |r| format!("{:+.2} ({:+.2} to {:+.2}, {})", r.points, r.low, r.high, r.calls),
        )
    };
    let alarm = match (p.alarm, p.sure, p.open) {
        (true, true, _) => "  ALARM",
        (true, false, _) => "  ALARM*",
        (false, _, true) => "  open",
        (false, _, false) => "",
    };
    format!(
        "{:>7} {:>9} {:>8}  {:<26}  {:<26}  {:>4}{alarm}",
        p.streams,
        p.labelled_streams,
        p.rates.wer.map_or_else(|| "-".into(), |w| format!("{:.2} %", w.rate * 100.0)),
        rise(p.wer_rise),
        rise(p.cer_rise),
        p.lost_calls,
    )
}
