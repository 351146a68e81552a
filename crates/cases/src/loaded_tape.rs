//! The tapes that a run plays, by what they are for.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapedeck_config::{Config, ConfigError, LoadConfig, TapeConfig, key};
use tapedeck_l10n::{LocalizedText, localized};
use tapedeck_load::PreparedCalls;
use tapedeck_protocol::Dialect;
use tapedeck_tape::{FreezeOptions, Pool, Quota, ScanOptions, Spec, Tape, freeze, nominal_bucket, scan};

use crate::error::CaseError;

/// What a tape is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Tape-A, `[tape]`: the short calls of the ladder. Always there.
    #[default]
    A,
    /// Tape-B, `[tape_b]`: with long calls.
    B,
    /// `[labelled]`: calls whose words are known.
    Labelled,
    /// `[pool]`: every recording of a folder.
    Pool,
}

impl Role {
    /// Section of the config that names it.
    #[must_use]
    pub const fn section(self) -> &'static str {
        match self {
            Self::A => "tape",
            Self::B => "tape_b",
            Self::Labelled => "labelled",
            Self::Pool => "pool",
        }
    }

    /// What to do where it is missing.
    fn hint(self) -> LocalizedText {
        let section = self.section();
        let spec = match self {
            Self::A => "tape-a",
            Self::B => "tape-b",
            Self::Labelled => "labelled",
            Self::Pool => {
                return localized!("give the folder of recordings in [pool]", "请在 [pool] 给出录音目录");
            }
        };
        localized!(
            "freeze one with `tapectl freeze POOL --spec {spec}` and name it in [{section}]",
            "请用 `tapectl freeze POOL --spec {spec}` 冻结一条带，并写入 [{section}]"
        )
    }

    pub(crate) fn missing(self) -> CaseError {
        CaseError::NoTape { section: self.section(), hint: self.hint() }
    }
}

/// A tape, and the same framed for the dialect; shared by all streams.
#[derive(Debug, Clone)]
pub struct LoadedTape {
    /// What is played.
    pub tape: Arc<Tape>,
    /// The same, ready to be sent.
    pub prepared: Arc<PreparedCalls>,
}

impl LoadedTape {
    /// Frames a tape.
    ///
    /// # Errors
    /// [`CaseError::PreparedCalls`] where it cannot be cut into chunks, [`CaseError::Config`] where a call is longer than
    /// the server is known to survive.
    pub fn new(tape: Tape, dialect: &dyn Dialect, load: &LoadConfig) -> Result<Self, CaseError> {
        survivable(&tape, dialect, load)?;
        let prepared = PreparedCalls::new(
            dialect,
            Duration::from_millis(load.chunk_ms.into()),
            Duration::from_millis(load.tail_silence_ms.into()),
            tape.calls.iter().map(|c| (c.meta.clone(), c.pcm.clone())),
        )?;
        Ok(Self { tape: Arc::new(tape), prepared: Arc::new(prepared) })
    }

    /// Name of the tape.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.tape.manifest.name
    }
}

/// Refuses a tape with a call that may outgrow what the server survives: such a call would end the others too.
fn survivable(tape: &Tape, dialect: &dyn Dialect, load: &LoadConfig) -> Result<(), ConfigError> {
    let Some(longest) = dialect.longest_call() else { return Ok(()) };
    let tail_ms = u64::from(load.tail_silence_ms);
    let over = |ms: u64| Duration::from_millis(ms) > longest;
    match tape.calls.iter().find(|call| over(u64::from(call.meta.duration_ms) + tail_ms)) {
        None => Ok(()),
        Some(call) => Err(ConfigError::value(
            key!(server.options),
            format!(
                "call {} of {} lasts {} ms{}, but a session of {} longer than {} s may kill the engine for all; \
                 raise the server's limit and the option that tells it, or play shorter calls",
                call.meta.id,
                tape.manifest.name,
                call.meta.duration_ms,
                if tail_ms > 0 { format!(" and {tail_ms} ms of silence") } else { String::new() },
                dialect.name(),
                longest.as_secs(),
            ),
        )),
    }
}

/// Loads the tapes that a case needs; Tape-A always.
///
/// # Errors
/// A tape that the config does not name, or that cannot be loaded.
pub fn load(config: &Config, needs: &[Role]) -> Result<BTreeMap<Role, Tape>, CaseError> {
    let mut tapes = BTreeMap::new();
    for &role in [Role::A].iter().chain(needs) {
        if tapes.contains_key(&role) {
            continue;
        }
        let tape = match role {
            Role::A => Tape::load(&config.tape.manifest, &config.tape.pool)?,
            Role::B => load_named(&config.tape_b, role)?,
            Role::Labelled => load_named(&config.labelled, role)?,
            Role::Pool => {
                if config.pool.folder.as_os_str().is_empty() {
                    return Err(role.missing());
                }
                whole_pool(&config.pool.folder, config.pool.channel.as_deref())?
            }
        };
        tapes.insert(role, tape);
    }
    Ok(tapes)
}

fn load_named(tape: &TapeConfig, role: Role) -> Result<Tape, CaseError> {
    if tape.manifest.as_os_str().is_empty() {
        return Err(role.missing());
    }
    Ok(Tape::load(&tape.manifest, &tape.pool)?)
}

/// Nominal durations that between them hold every call from a moment to two hours, seconds.
const BUCKETS_S: [u32; 9] = [5, 15, 30, 60, 180, 300, 600, 1800, 3600];

/// Every usable recording of a folder as one tape, silent ones included.
fn whole_pool(folder: &Path, channel: Option<&str>) -> Result<Tape, CaseError> {
    let channel = match channel {
        Some(name) => Some(tapedeck_audio::Channel::from_name(name).ok_or_else(|| {
            ConfigError::value(key!(pool.channel), format!("`{name}`: give left, right or mix"))
        })?),
        None => None,
    };
    let pool = Pool::list(folder)?;
    let reports = scan(&pool, ScanOptions { hash: true, threads: None }, &BTreeMap::new(), |_| {});
    // The same recording under two names is one call.
    let distinct: BTreeMap<&str, u64> =
        reports.iter().filter(|r| r.ok).filter_map(|r| Some((r.md5.as_deref()?, r.duration_ms()?))).collect();
    let mut calls: BTreeMap<u32, u32> = BTreeMap::new();
    for ms in distinct.into_values() {
        if let Some(bucket_s) = nominal_bucket(ms, &BUCKETS_S, 1.0) {
            *calls.entry(bucket_s).or_default() += 1;
        }
    }
    if calls.is_empty() {
        let why = format!("no recording under {} can be used; `tapectl scan` tells why", folder.display());
        return Err(ConfigError::value(key!(pool.folder), why).into());
    }
    let quotas = calls.into_iter().map(|(bucket_s, calls)| Quota { bucket_s, calls }).collect();
    let options = FreezeOptions {
        spec: Spec { name: "pool".into(), quotas },
        seed: 0,
        tolerance: 1.0,
        strata: Vec::new(),
        channel,
        threads: None,
    };
    let manifest = freeze(folder, &reports, &options)?;
    Ok(Tape::of_manifest(manifest, folder)?)
}
