//! `tape-sizing`: memory per call, instances per card, what to promise, and what if.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use tapedeck_record::ExitCode;
use tapedeck_sizing::{Architecture, Dtype, SizingPlan, Topology};

use tapedeck_cli::{Failure, usage};

mod lengths;
mod output;
mod promise;
mod tables;
mod theory;
mod whatif;

pub use promise::StatementArgs;
pub use tables::{CallLengths, InstancesArgs, SupplyArgs};
pub use theory::CalibrateArgs;
pub use whatif::WhatIfArgs;

/// Memory per call, instances per card, what to promise, and what if.
///
/// Without flags it reckons with Qwen3-ASR-0.6B on an A40 of 48 GB, as the load-test plan does. See docs/sizing.md,
/// docs/from-n-star-to-a-sentence.md and docs/what-if.md.
#[derive(Debug, Parser)]
#[command(name = "tape-sizing", version, after_help = EXAMPLES)]
pub struct Cli {
    /// The question.
    #[command(subcommand)]
    pub command: Command,
    /// What is sized.
    #[command(flatten)]
    pub sized: Sized,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tape-sizing kv --call-s 30,300,600
  tape-sizing tape --tape a --session vllm-realtime
  tape-sizing supply --split 1,2,3,4 --call-s 300,600
  tape-sizing instances --calls 45 --call-s 300 --latency-calls 15
  tape-sizing calibrate --from results/RUN --deployment 3x0.30
  tape-sizing statement --from results/RUN --blocking 0.01 --calls-per-hour 50 --mean-s 180
  tape-sizing statement --from results/RUN --from-long results/RUN_B --histogram calls.csv
  tape-sizing what-if --from results/RUN --deployment 3x0.30 --topology 1x0.92,2x0.46

Exit codes: 0 answered; 1 answered, and the answer is no (too few lines, no number of instances);
2 wrong flags, figures or files; 4 not decidable (a fit that must not be used).";

/// The question.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What a token costs, and a call of each length
    Kv(CallLengths),
    /// What a stream needs that plays a tape
    Tape(lengths::Lengths),
    /// What a card gives to calls, cut into instances
    Supply(SupplyArgs),
    /// How many instances: by memory, by KV, by latency
    Instances(InstancesArgs),
    /// Theory beside what a run measured
    Calibrate(CalibrateArgs),
    /// From N* to lines and calls an hour, in plain sentences
    Statement(StatementArgs),
    /// Fit the engine model to a run and predict N* elsewhere
    WhatIf(WhatIfArgs),
}

/// What is sized: a `[sizing]` section, with single keys overridden.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What is sized")]
pub struct Sized {
    /// Config or plan (TOML) whose `sizing` section to use
    #[arg(long, value_name = "FILE", global = true)]
    pub plan: Option<PathBuf>,
    /// A model's config.json to take layers, heads and format from
    #[arg(long, value_name = "FILE", global = true)]
    pub model_config: Option<PathBuf>,
    /// Layers of the text stack
    #[arg(long, global = true)]
    pub layers: Option<u32>,
    /// KV heads of each layer
    #[arg(long, global = true)]
    pub kv_heads: Option<u32>,
    /// Numbers in one key or value
    #[arg(long, global = true)]
    pub head_dim: Option<u32>,
    /// Format of keys and values: float32, float16, bfloat16, fp8, int8
    #[arg(long, global = true)]
    pub dtype: Option<String>,
    /// How sessions are kept: plan, vllm-realtime, official-streaming, whole-utterance
    #[arg(long, value_name = "PRESET", global = true)]
    pub session: Option<String>,
    /// Audio in an inference window, seconds
    #[arg(long, value_name = "SECONDS", global = true, allow_negative_numbers = true)]
    pub window_s: Option<f64>,
    /// Text tokens per second
    #[arg(long, value_name = "TOKENS", global = true, allow_negative_numbers = true)]
    pub text_tokens_per_s: Option<f64>,
    /// How long a rolling or whole request holds its tokens, seconds
    #[arg(long, value_name = "SECONDS", global = true, allow_negative_numbers = true)]
    pub answer_s: Option<f64>,
    /// Memory of the card, GB (10^9 bytes)
    #[arg(long, value_name = "GB", global = true, allow_negative_numbers = true)]
    pub card_gb: Option<f64>,
    /// Weights of the model, GB
    #[arg(long, value_name = "GB", global = true, allow_negative_numbers = true)]
    pub weights_gb: Option<f64>,
    /// Overhead of an instance, GB
    #[arg(long, value_name = "GB", global = true, allow_negative_numbers = true)]
    pub overhead_gb: Option<f64>,
    /// Share of the card that all instances together may take
    #[arg(long, value_name = "SHARE", global = true, allow_negative_numbers = true)]
    pub share: Option<f64>,
    /// How the measured cards were cut: INSTANCESxSHARE or CARDS*INSTANCESxSHARE
    #[arg(long, value_name = "TOPOLOGY", global = true)]
    pub deployment: Option<String>,
    /// Longest context of a request, tokens
    #[arg(long, value_name = "TOKENS", global = true)]
    pub max_model_len: Option<u32>,
}

impl Sized {
    /// The plan with the flags put over it.
    pub(crate) fn resolve(&self) -> Result<SizingPlan, Failure> {
        let mut plan = match &self.plan {
            Some(path) => section(path)?,
            None => SizingPlan::default(),
        };
        let dtype = self.dtype.as_deref().map(str::parse::<Dtype>).transpose().map_err(usage)?;
        if let Some(path) = &self.model_config {
            let found = Architecture::from_config_json(&read(path)?, dtype)
                .map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))?;
            (plan.layers, plan.kv_heads) = (found.layers, found.kv_heads);
            (plan.head_dim, plan.dtype) = (found.head_dim, found.dtype);
        }
        plan.layers = self.layers.unwrap_or(plan.layers);
        plan.kv_heads = self.kv_heads.unwrap_or(plan.kv_heads);
        plan.head_dim = self.head_dim.unwrap_or(plan.head_dim);
        plan.dtype = dtype.unwrap_or(plan.dtype);
        if let Some(session) = &self.session {
            plan.session.clone_from(session);
        }
        plan.window_s = self.window_s.or(plan.window_s);
        plan.text_tokens_per_s = self.text_tokens_per_s.or(plan.text_tokens_per_s);
        plan.answer_s = self.answer_s.or(plan.answer_s);
        plan.card_gb = self.card_gb.unwrap_or(plan.card_gb);
        plan.weights_gb = self.weights_gb.unwrap_or(plan.weights_gb);
        plan.overhead_gb = self.overhead_gb.unwrap_or(plan.overhead_gb);
        plan.share = self.share.unwrap_or(plan.share);
        plan.topology = self.deployment.clone().or(plan.topology);
        plan.max_model_len = self.max_model_len.or(plan.max_model_len);
        Ok(plan)
    }
}

/// The `[sizing]` section of a file; the rest of it is somebody else's.
fn section(path: &std::path::Path) -> Result<SizingPlan, Failure> {
    let bad = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    let table: toml::Table = read(path)?.parse().map_err(|e: toml::de::Error| bad(e.to_string()))?;
    let Some(sizing) = table.get("sizing") else {
        return Err(bad("there is no [sizing] section; docs/config.md shows its keys".into()));
    };
    sizing.clone().try_into().map_err(|e: toml::de::Error| bad(format!("[sizing]: {}", e.message())))
}

/// A text file.
pub(crate) fn read(path: &std::path::Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::Usage(format!("cannot read {}: {e}", path.display())))
}

/// Topologies parted by commas.
pub(crate) fn topologies(texts: &[String]) -> Result<Vec<Topology>, Failure> {
    texts.iter().map(|text| text.trim().parse::<Topology>().map_err(usage)).collect()
}

/// Answers the question on `out`.
///
/// # Errors
/// Figures, files or flags without an answer, or an output that cannot be written.
pub fn run(cli: &Cli, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let plan = cli.sized.resolve()?;
    let answer = match &cli.command {
        Command::Kv(args) => tables::kv(&plan, args),
        Command::Tape(args) => tables::tape(&plan, args),
        Command::Supply(args) => tables::supply(&plan, args),
        Command::Instances(args) => tables::instances(&plan, args),
        Command::Calibrate(args) => theory::calibrate(&plan, args),
        Command::Statement(args) => promise::statement(&cli.sized, args),
        Command::WhatIf(args) => whatif::what_if(&plan, args),
    }?;
    let written = if cli.json { answer.json(out) } else { answer.text(out) };
    match written {
        // Whoever reads has seen enough.
        Err(source) if source.kind() == std::io::ErrorKind::BrokenPipe => Ok(answer.code),
        Err(source) => Err(Failure::System { what: "write the answer", source }),
        Ok(()) => Ok(answer.code),
    }
}
