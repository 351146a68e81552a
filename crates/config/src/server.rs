//! What is under test: `[server]`, `[[instances]]`, `[balancer]`, `[gpu]`, `[environment]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_record::EngineKind;

/// The balancer's name where instances have theirs.
pub const BALANCER: &str = "balancer";

/// `[server]`: what the streams speak to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// WebSocket address of the load balancer or gateway, e.g. `ws://asr-lb:9000/asr`.
    pub url: String,
    /// Wire protocol; `docs/dialects.md` lists them.
    pub dialect: String,
    /// Settings of that dialect, a table of its own.
    pub options: toml::Table,
    /// Fixed inference window of the server, milliseconds: 2000 for the official Qwen3-ASR streaming, 5000 for
    /// vLLM realtime; leave it out where the server has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u32>,
    /// Environment variable that holds the bearer token; left out, none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// PEM file with further certificate authorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Accept any certificate. For laboratories; the report says so.
    pub accept_any_certificate: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            url: String::new(),
            dialect: "pcm-json".into(),
            options: toml::Table::new(),
            window_ms: None,
            token_env: None,
            ca_file: None,
            accept_any_certificate: false,
        }
    }
}

/// `[[instances]]`: one engine behind the balancer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceConfig {
    /// Name in every output, e.g. `inst1`.
    pub name: String,
    /// Address that answers 200 while the engine lives, e.g. `http://gpu-host:9001/health`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// Prometheus page, e.g. `http://gpu-host:9001/metrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// The instance's own WebSocket address, past the balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<String>,
    /// Whose metric names to expect: `vllm`, `sglang` or `none`.
    #[serde(default)]
    pub kind: EngineKind,
    /// Whether it may be started, stopped and injured at all; false means hands off, whatever commands there are.
    #[serde(default = "managed")]
    pub managed: bool,
    /// What can be done to it: shell commands on the client's machine, e.g. `ssh gpu-host systemctl restart asr1`.
    #[serde(default)]
    pub commands: Commands,
}

const fn managed() -> bool {
    true
}

/// Commands of one instance, each run through `sh -c` on the client's machine: `ssh gpu-host ...` works.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Commands {
    /// Starts the instance. What it leaves running must not hold on to the output: use `systemctl`, or `nohup ... &`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Stops it in good order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Ends it at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill: Option<String>,
    /// Freezes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze: Option<String>,
    /// Lets it go on after a freeze.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thaw: Option<String>,
    /// Prints its log, from the start of the engine on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// `[balancer]`: commands for what stands in front of the instances.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BalancerConfig {
    /// What can be done to it; `stop` and `start` are a restart.
    pub commands: Commands,
}

/// `[gpu]`: how the GPUs under the engines are read. Several ways may be given; a GPU that two of them tell of is
/// taken from the first, in the order of the keys below.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GpuConfig {
    /// Through the driver of this machine (NVML). Off by default: a load generator that has a GPU of its own would
    /// take that one for the engines'.
    pub nvml: bool,
    /// Page of a DCGM exporter or of `tape-gpu-exporter`, e.g. `http://gpu-host:9400/metrics`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Command that prints nvidia-smi's CSV, e.g. `ssh gpu-host nvidia-smi --query-gpu=... --format=csv`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl GpuConfig {
    /// Whether there is any way to read a GPU.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !self.nvml && self.url.is_none() && self.command.is_none()
    }
}

/// `[environment]`: what no server tells and the record of the environment should hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvironmentConfig {
    /// What stands in front of the instances, in words: kind, and how it deals out connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<String>,
    /// Limit of one command, seconds.
    pub timeout_s: f64,
    /// Commands by name, run through `sh -c` when a case begins; what they print is written down.
    pub commands: BTreeMap<String, String>,
}

impl Default for EnvironmentConfig {
    fn default() -> Self {
        Self { load_balancer: None, timeout_s: 10.0, commands: BTreeMap::new() }
    }
}
