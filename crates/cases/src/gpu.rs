//! `[gpu]`: how the GPUs under the engines are read.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tapedeck_metrics::gpu::{Dcgm, GpuSource, Nvml, SmiCommand};
use tapedeck_transport::{Connector, GetLimits};

use crate::error::ConfigError;
use crate::world::endpoint;

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

    /// The ways to read them, the preferred one first.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for an address that is none.
    pub fn sources(&self, connector: &Arc<dyn Connector>) -> Result<Vec<Arc<dyn GpuSource>>, ConfigError> {
        let mut sources: Vec<Arc<dyn GpuSource>> = Vec::new();
        if self.nvml {
            sources.push(Arc::new(Nvml::new()));
        }
        if let Some(url) = &self.url {
            sources.push(Arc::new(Dcgm {
                connector: Arc::clone(connector),
                endpoint: endpoint("gpu.url", url)?,
                bearer: None,
                limits: GetLimits::default(),
            }));
        }
        if let Some(command) = &self.command {
            sources.push(Arc::new(SmiCommand { command: command.clone(), ..SmiCommand::default() }));
        }
        Ok(sources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapedeck_transport::{NetConnector, NetOptions};

    fn sources(toml: &str) -> Result<Vec<Arc<dyn GpuSource>>, ConfigError> {
        let config: GpuConfig = toml::from_str(toml).unwrap();
        let connector: Arc<dyn Connector> = Arc::new(NetConnector::new(NetOptions::default()).unwrap());
        config.sources(&connector)
    }

    #[tokio::test]
    async fn every_way_becomes_a_source_and_none_is_the_default() {
        assert!(sources("").unwrap().is_empty());
        assert_eq!(sources("nvml = true\nurl = \"http://h:9400/metrics\"\n").unwrap().len(), 2);
        let command = "command = \"printf 'index, memory.used [MiB]\\\\n0, 1024 MiB\\\\n'\"\n";
        let read = sources(command).unwrap()[0].read().await.unwrap();
        assert_eq!(read[0].reading.memory_used_bytes, Some(1 << 30));
    }

    #[test]
    fn a_wrong_address_is_named() {
        let error = sources("url = \"gpu-host\"\n").unwrap_err().to_string();
        assert!(error.contains("gpu.url"), "{error}");
    }
}
