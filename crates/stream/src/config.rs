//! What is asked of a server, and how: one TOML file, every key with its default.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tapedeck_load::arrivals::ArrivalProcess;
use tapedeck_transport::Endpoint;
use thiserror::Error;

use crate::chat::Generation;
use crate::record::Setup;

/// Everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whom.
    pub server: Server,
    /// How the answers are to be made.
    pub generation: Generation,
    /// What is asked.
    pub prompts: Prompts,
    /// How often.
    pub load: Load,
    /// What makes an answer good.
    pub limits: Limits,
    /// What it costs.
    pub price: Price,
    /// What no server tells about itself.
    pub setup: Setup,
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Address, e.g. `http://gpu-host:8000`; `/v1/chat/completions` is added where the path is empty or `/v1`.
    pub url: String,
    /// Model, as the server calls it.
    pub model: String,
    /// Environment variable that holds the API key. Where the variable is not set, none is sent. Default
    /// `INFERENCE_API_KEY`.
    pub key_env: String,
    /// PEM file with further certificate authorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Accept any certificate. For laboratories.
    pub accept_any_certificate: bool,
    /// Longest time to connect, seconds. Default 10.
    pub connect_s: u32,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            url: String::new(),
            model: String::new(),
            key_env: "INFERENCE_API_KEY".into(),
            ca_file: None,
            accept_any_certificate: false,
            connect_s: 10,
        }
    }
}

impl Server {
    /// The address that is asked.
    ///
    /// # Errors
    /// No address, or one that is none.
    pub fn endpoint(&self) -> Result<Endpoint, ConfigError> {
        let bad = |why: String| ConfigError::Value { key: "server.url", why };
        if self.url.is_empty() {
            return Err(bad("missing: give an address such as http://gpu-host:8000".into()));
        }
        let endpoint: Endpoint = self.url.parse().map_err(|e| bad(format!("{e}")))?;
        Ok(match endpoint.path_and_query().trim_end_matches('/') {
            "" | "/v1" => endpoint.with_path("/v1/chat/completions"),
            _ => endpoint,
        })
    }
}

/// `[prompts]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prompts {
    /// File of prompts: one a line, or JSON lines with `prompt` or `messages` (and `max_tokens`).
    pub file: PathBuf,
    /// A text that stands in front of every prompt: the shared document of a prefix-cache experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_file: Option<PathBuf>,
    /// Puts the request's number in front of everything, so that no prefix cache can hit.
    pub unique: bool,
    /// Draws the order of the prompts from the seed instead of taking them as they stand.
    pub shuffle: bool,
}

/// How open arrivals are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Independent users.
    #[default]
    Poisson,
    /// Even gaps.
    Uniform,
    /// Bursts of `burst` at once.
    Bursty,
}

/// `[load]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// Requests under way at once: the closed loop. Default 1.
    pub concurrency: u32,
    /// Requests a second, whether or not earlier ones are answered: the open loop, instead of `concurrency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// How the open loop's requests are spread. Default `poisson`.
    pub arrivals: Spread,
    /// Requests in a burst. Default 8.
    pub burst: u32,
    /// Requests that count. Default 8.
    pub requests: u32,
    /// Requests before those. Default 0.
    pub warm_up: u32,
    /// Send one request alone before all others and report it apart: the server may be cold. Default true.
    pub cold_first: bool,
    /// Longest time for one request, seconds. Default 300.
    pub timeout_s: u32,
    /// Seed of arrivals and order. Default 1.
    pub seed: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            concurrency: 1,
            rate_per_s: None,
            arrivals: Spread::Poisson,
            burst: 8,
            requests: 8,
            warm_up: 0,
            cold_first: true,
            timeout_s: 300,
            seed: 1,
        }
    }
}

impl Load {
    /// The law of the open loop's arrivals; none in a closed loop.
    #[must_use]
    pub fn law(&self) -> Option<ArrivalProcess> {
        let per_hour = self.rate_per_s? * 3600.0;
        Some(match self.arrivals {
            Spread::Poisson => ArrivalProcess::Poisson { per_hour },
            Spread::Uniform => ArrivalProcess::Uniform { per_hour },
            Spread::Bursty => ArrivalProcess::Bursty { per_hour, burst: self.burst },
        })
    }
}

/// `[limits]`: an answer within all of them, and not cut or empty, is a good one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// First text, seconds. Default 1.
    pub ttft_s: f64,
    /// Whole answer, seconds. Default 30.
    pub total_s: f64,
    /// Longest gap between two chunks of the answer, seconds. Default 1.
    pub gap_s: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { ttft_s: 1.0, total_s: 30.0, gap_s: 1.0 }
    }
}

/// `[price]`: rent, or a price per token, or both. Without either, the cost is unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Price {
    /// Currency, for the column's head.
    pub currency: String,
    /// Rent of the whole deployment, per hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_hour: Option<f64>,
    /// Price of a million prompt tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_million_prompt: Option<f64>,
    /// Price of a million tokens of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_million_completion: Option<f64>,
}

/// A config that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// Not TOML, or a key that is not known.
    #[error("{}: {why}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and what.
        why: String,
    },
    /// A line of the file of prompts.
    #[error("{}:{line}: {why}", path.display())]
    Prompt {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A value that cannot work.
    #[error("config key {key}: {why}")]
    Value {
        /// The key, dotted.
        key: &'static str,
        /// What is wrong and what to write instead.
        why: String,
    },
}

impl Config {
    /// Reads a config file; relative paths in it are relative to the file.
    ///
    /// # Errors
    /// A file that cannot be read, is no TOML, or holds an unknown key.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let mut config: Self = toml::from_str(&text).map_err(|e| ConfigError::Syntax {
            path: path.to_owned(),
            why: e.to_string().trim().to_owned(),
        })?;
        let base = path.parent().unwrap_or(Path::new(""));
        let files = [&mut config.prompts.file].into_iter();
        let files = files.chain(&mut config.prompts.prefix_file).chain(&mut config.server.ca_file);
        for file in files.filter(|f| !f.as_os_str().is_empty()) {
            *file = base.join(&*file);
        }
        Ok(config)
    }

    /// Checks the values that no type can check.
    ///
    /// # Errors
    /// The first key that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let bad = |key: &'static str, why: String| Err(ConfigError::Value { key, why });
        self.server.endpoint()?;
        if self.server.model.is_empty() {
            return bad(
                "server.model",
                "missing: give the model's name as the server lists it under /v1/models".into(),
            );
        }
        let load = &self.load;
        let counts = [
            ("load.concurrency", load.concurrency),
            ("load.requests", load.requests),
            ("load.timeout_s", load.timeout_s),
            ("load.burst", load.burst),
            ("server.connect_s", self.server.connect_s),
            ("generation.max_tokens", self.generation.max_tokens),
        ];
        for (key, value) in counts {
            if value == 0 {
                return bad(key, "0: give at least 1".into());
            }
        }
        if let Some(law) = load.law()
            && let Err(e) = law.check()
        {
            return bad("load.rate_per_s", e.to_string());
        }
        let limits = [
            ("limits.ttft_s", self.limits.ttft_s),
            ("limits.total_s", self.limits.total_s),
            ("limits.gap_s", self.limits.gap_s),
        ];
        let price = &self.price;
        let prices = [
            ("price.per_hour", price.per_hour),
            ("price.per_million_prompt", price.per_million_prompt),
            ("price.per_million_completion", price.per_million_completion),
        ];
        for (key, value) in limits {
            if !(value.is_finite() && value > 0.0) {
                return bad(key, format!("{value}: give a number of seconds above 0"));
            }
        }
        for (key, value) in prices.into_iter().filter_map(|(key, v)| Some((key, v?))) {
            if !(value.is_finite() && value >= 0.0) {
                return bad(key, format!("{value}: give a price of 0 or more"));
            }
        }
        if !(self.generation.temperature.is_finite() && self.generation.temperature >= 0.0) {
            return bad("generation.temperature", format!("{}: give 0 or more", self.generation.temperature));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_completed() {
        let at = |url: &str| Server { url: url.into(), ..Server::default() }.endpoint().unwrap().to_string();
        assert_eq!(at("http://h:8000"), "http://h:8000/v1/chat/completions");
        assert_eq!(at("http://h:8000/v1/"), "http://h:8000/v1/chat/completions");
        assert_eq!(at("https://h/openai/chat"), "https://h/openai/chat");
    }

    #[test]
    fn impossible_values_are_named() {
        let good = "[server]\nurl = \"http://h\"\nmodel = \"m\"\n";
        toml::from_str::<Config>(good).unwrap().check().unwrap();
        for (text, key) in [
            ("[server]\nmodel = \"m\"\n", "server.url"),
            ("[server]\nurl = \"http://h\"\n", "server.model"),
            (&format!("{good}[load]\nconcurrency = 0\n"), "load.concurrency"),
            (&format!("{good}[load]\nrate_per_s = nan\n"), "load.rate_per_s"),
            (&format!("{good}[load]\nrate_per_s = -1.0\n"), "load.rate_per_s"),
            (&format!("{good}[limits]\nttft_s = inf\n"), "limits.ttft_s"),
            (&format!("{good}[price]\nper_hour = -2.0\n"), "price.per_hour"),
        ] {
            let message = toml::from_str::<Config>(text).unwrap().check().unwrap_err().to_string();
            assert!(message.contains(key), "{text}: {message}");
        }
        assert!(toml::from_str::<Config>("[load]\nconcurency = 1\n").is_err());
    }
}
