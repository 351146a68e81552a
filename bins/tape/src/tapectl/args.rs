//! The command line of `tapectl`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use tapedeck_audio::Channel;

/// Make tapes out of pools of call recordings, and tell whether they are still what they were.
#[derive(Debug, Clone, Parser)]
#[command(name = "tapectl", version, after_help = HELP)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const HELP: &str = "\
Examples:
  tapectl scan calls/
  tapectl freeze calls/ --spec tape-a --seed 1 -o tape-a.json
  tapectl verify tape-a.json calls/

Exit codes: 0 done, 1 the answer is no (recordings missing, changed or unusable), 2 usage or an unreadable pool or \
manifest, 3 environment.";

/// What `tapectl` can do.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Look at every recording of a pool: lengths, formats, what cannot be used and why
    Scan(Scan),
    /// Convert a whole pool to 16 kHz s16 WAV
    Resample(Resample),
    /// Choose calls from a pool and write the manifest of a tape
    Freeze(Freeze),
    /// Check that a tape's recordings are byte for byte what was frozen
    Verify(Verify),
    /// Show what a tape holds and what it will ask of a server
    Show(Show),
    /// Show which call each of N streams starts with, and when
    Phases(Phases),
    /// Moved
    #[command(hide = true)]
    Completions(Moved),
    /// Moved
    #[command(hide = true)]
    Man(Moved),
}

/// What another program does now.
#[derive(Debug, Clone, ClapArgs)]
pub struct Moved {
    /// What was asked for
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub rest: Vec<String>,
}

/// `tapectl scan`
#[derive(Debug, Clone, ClapArgs)]
pub struct Scan {
    /// Folder of recordings, or a single file
    pub pool: PathBuf,
    /// One JSON object per file on standard output instead of a summary
    #[arg(long)]
    pub json: bool,
    /// Nominal durations of the summary, seconds
    #[arg(long, value_delimiter = ',', default_values_t = [30, 60, 180, 300, 600])]
    pub buckets: Vec<u32>,
    /// Allowed distance from a nominal duration, as a share of it
    #[arg(long, default_value_t = 0.1)]
    pub tolerance: f64,
    /// CSV or TSV with a column `file` and one column per tag
    #[arg(long, value_name = "FILE")]
    pub tags: Option<PathBuf>,
    /// Where to keep what is known of the files, so that a scan goes on where it was cut [default: the cache folder]
    #[arg(long, value_name = "FILE", conflicts_with = "no_index")]
    pub index: Option<PathBuf>,
    /// Keep no index and believe none: look at every file
    #[arg(long)]
    pub no_index: bool,
    /// Read every byte, not only the headers: gives each file's MD5 and names duplicates
    #[arg(long)]
    pub md5: bool,
    /// Exit with 1 if any file cannot be used, not only if none can
    #[arg(long)]
    pub strict: bool,
    /// Threads [default: one per core]
    #[arg(long = "threads", alias = "jobs", short = 'j', value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
}

/// `tapectl resample`
#[derive(Debug, Clone, ClapArgs)]
pub struct Resample {
    /// Folder of recordings
    pub pool: PathBuf,
    /// Folder to write to
    pub out: PathBuf,
    /// What to take of stereo recordings
    #[arg(long, value_enum)]
    pub channel: Option<ChannelArg>,
    /// Convert again what is already there
    #[arg(long)]
    pub force: bool,
    /// Threads [default: one per core]
    #[arg(long = "threads", alias = "jobs", short = 'j', value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
}

/// `tapectl freeze`
#[derive(Debug, Clone, ClapArgs)]
pub struct Freeze {
    /// Folder of recordings
    pub pool: PathBuf,
    /// What the tape holds: tape-a, tape-b, labelled, fallback, or seconds:calls,...
    #[arg(long, visible_aliases = ["tape", "preset"], default_value = "tape-a")]
    pub spec: String,
    /// Name of the tape [default: the preset's]
    #[arg(long)]
    pub name: Option<String>,
    /// Seed of the choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Manifest to write [default: NAME.json]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Allowed distance from a nominal duration, as a share of it; calls are never cut or padded
    #[arg(long, default_value_t = 0.1)]
    pub tolerance: f64,
    /// CSV or TSV with a column `file` and one column per tag
    #[arg(long, value_name = "FILE")]
    pub tags: Option<PathBuf>,
    /// Tags whose values share each bucket's quota evenly
    #[arg(long, value_name = "TAG,...", value_delimiter = ',', requires = "tags")]
    pub by: Vec<String>,
    /// What to take of stereo recordings; `both` makes two tapes of the same calls
    #[arg(long, value_enum)]
    pub channel: Option<ChannelArg>,
    /// Also copy the chosen recordings, and their lines of the tables beside the pool, to this folder
    #[arg(long, value_name = "DIR")]
    pub with_pool: Option<PathBuf>,
    /// Replace a manifest that says something else
    #[arg(long)]
    pub force: bool,
    /// Threads [default: one per core]
    #[arg(long = "threads", alias = "jobs", short = 'j', value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
}

/// `tapectl verify`
#[derive(Debug, Clone, ClapArgs)]
pub struct Verify {
    /// Manifest of the tape
    pub tape: PathBuf,
    /// Folder of its recordings
    pub pool: PathBuf,
    /// Threads [default: one per core]
    #[arg(long = "threads", alias = "jobs", short = 'j', value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
}

/// `tapectl show`
#[derive(Debug, Clone, ClapArgs)]
pub struct Show {
    /// Manifest of the tape
    pub tape: PathBuf,
    /// Numbers of streams to work out who speaks at once for
    #[arg(long, value_delimiter = ',', default_values_t = [3, 6, 12, 24, 48, 90])]
    pub streams: Vec<u32>,
    /// Delay between the starts of two streams, seconds
    #[arg(long = "ramp-s", alias = "ramp", value_name = "SECONDS", default_value_t = 0.5)]
    pub ramp: f64,
}

/// `tapectl phases`
#[derive(Debug, Clone, ClapArgs)]
pub struct Phases {
    /// Manifest of the tape
    pub tape: PathBuf,
    /// Number of streams
    pub streams: u32,
    /// Delay between the starts of two streams, seconds
    #[arg(long = "ramp-s", alias = "ramp", value_name = "SECONDS", default_value_t = 0.5)]
    pub ramp: f64,
    /// One JSON object per stream
    #[arg(long)]
    pub json: bool,
}

/// What to take of stereo recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChannelArg {
    /// The first channel
    Left,
    /// The second channel
    Right,
    /// The average of both
    Mix,
    /// Each on its own
    Both,
}

impl ChannelArg {
    /// The channels to take, one after another.
    pub(super) const fn channels(self) -> &'static [Channel] {
        match self {
            Self::Left => &[Channel::Left],
            Self::Right => &[Channel::Right],
            Self::Mix => &[Channel::Mix],
            Self::Both => &[Channel::Left, Channel::Right],
        }
    }
}
