//! The sources to read the GPUs under the engines, as `[gpu]` names them.

use std::sync::Arc;

use tapedeck_config::{ConfigError, GpuConfig, key};
use tapedeck_metrics::gpu::{Dcgm, GpuSource, Nvml, SmiCommand};
use tapedeck_transport::{Connector, HttpLimits};

use crate::world::endpoint;

/// The sources to read them, the preferred one first.
///
/// # Errors
/// [`ConfigError::Value`] for an address that is none.
pub fn sources(
    config: &GpuConfig,
    connector: &Arc<dyn Connector>,
) -> Result<Vec<Arc<dyn GpuSource>>, ConfigError> {
    let mut sources: Vec<Arc<dyn GpuSource>> = Vec::new();
    if config.nvml {
        sources.push(Arc::new(Nvml::new()));
    }
    if let Some(url) = &config.url {
        sources.push(Arc::new(Dcgm {
            connector: Arc::clone(connector),
            endpoint: endpoint(key!(gpu.url), url)?,
            bearer: None,
            limits: HttpLimits::default(),
        }));
    }
    if let Some(command) = &config.command {
        sources.push(Arc::new(SmiCommand { command: command.clone(), ..SmiCommand::default() }));
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapedeck_transport::{NetConnector, NetOptions};

    fn sources(toml: &str) -> Result<Vec<Arc<dyn GpuSource>>, ConfigError> {
        let config: GpuConfig = toml::from_str(toml).unwrap();
        let connector: Arc<dyn Connector> = Arc::new(NetConnector::new(NetOptions::default()).unwrap());
        super::sources(&config, &connector)
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
