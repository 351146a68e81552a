//! How it is played: `[load]`, `[load.timeouts]`, `[ladder]`.

use serde::{Deserialize, Serialize};

/// `[load]`: how it is played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadConfig {
    /// Delay between the starts of two streams, seconds.
    pub ramp_s: f64,
    /// Warm-up after the last stream has started, seconds.
    pub warm_up_s: f64,
    /// Loops of the tape that each stream's window holds.
    pub loops: u32,
    /// Loops for small tiers, whose single loop holds too few calls for a p95.
    pub loops_small: u32,
    /// Largest tier that counts as small, streams.
    pub small_up_to: u32,
    /// Audio per message, milliseconds.
    pub chunk_ms: u32,
    /// Silence sent after each recording before end-of-audio, milliseconds.
    pub tail_silence_ms: u32,
    /// Change one inaudible sample per session, so that no cache keyed by content can hit.
    pub unique_per_session: bool,
    /// How long streams may finish their calls at the end of a tier before they are cut, seconds.
    pub finish_s: f64,
    /// How long the engines may take to become idle afterwards, seconds.
    pub drain_s: f64,
    /// Rest between two tiers, seconds.
    pub cool_down_s: f64,
    /// Distance between two WebSocket pings of a stream, seconds; 0 sends none.
    pub ping_s: f64,
    /// Distance between two read-outs of metrics and GPU, seconds.
    pub sample_s: f64,
    /// Limits on single waits.
    pub timeouts: TimeoutConfig,
}

impl Default for LoadConfig {
    fn default() -> Self {
        Self {
            ramp_s: 0.5,
            warm_up_s: 120.0,
            loops: 1,
            loops_small: 3,
            small_up_to: 6,
            chunk_ms: 100,
            tail_silence_ms: 0,
            unique_per_session: false,
            finish_s: 60.0,
            drain_s: 120.0,
            cool_down_s: 60.0,
            ping_s: 10.0,
            sample_s: 1.0,
            timeouts: TimeoutConfig::default(),
        }
    }
}

/// `[load.timeouts]`: limits on single waits; each expiry is an outcome of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeoutConfig {
    /// Connect, TLS, upgrade and the dialect's ready handshake together, seconds.
    pub connect_s: f64,
    /// No text while speech is owed, seconds.
    pub mute_s: f64,
    /// No byte of any kind, seconds.
    pub idle_s: f64,
    /// From end-of-audio to the final, seconds.
    pub final_s: f64,
}

impl Default for TimeoutConfig {
    fn default() -> Self {
        Self { connect_s: 10.0, mute_s: 30.0, idle_s: 60.0, final_s: 30.0 }
    }
}

/// `[ladder]`: the tiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LadderConfig {
    /// Concurrent streams of each tier, ascending.
    pub tiers: Vec<u32>,
    /// Refine between the last passing and the first failing tier.
    pub refine: bool,
    /// Restart the instances before each tier, where draining them is not enough.
    pub restart_each_tier: bool,
    /// What the streams play.
    pub content: LadderContent,
    /// How fast they speak.
    pub pace: Pace,
    /// How often each tier is played.
    pub repeat: u32,
    /// Play a tier again with twice the loops while only its estimate decides.
    pub until_sure: bool,
    /// Loops beyond which `until_sure` gives up.
    pub max_loops: u32,
}

/// What the streams of a ladder play.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LadderContent {
    /// All of them Tape-A.
    #[default]
    Tape,
    /// Each its own draw from the pool.
    Pool,
}

/// How fast streams speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As people do: at 1x real time.
    #[default]
    Real,
    /// Whole calls as fast as the server takes them: the hard ceiling, never N*.
    Off,
}

impl Default for LadderConfig {
    fn default() -> Self {
        Self {
            tiers: vec![3, 6, 12, 18, 24, 30, 36, 48, 60, 75, 90],
            refine: true,
            restart_each_tier: false,
            content: LadderContent::Tape,
            pace: Pace::Real,
            repeat: 1,
            until_sure: false,
            max_loops: 8,
        }
    }
}
