//! Other topologies, as a rehearsal has them: a number of engines each, and what they are like.

use std::sync::Arc;

use tapedeck_config::{Config, ConfigError, key};
use tapedeck_engine::{EngineHandle, Fixtures};

use crate::pipes::BALANCER;
use crate::{Settings, described, spawn};

/// The engines of one topology, gone until they are started, and the host name of their balancer.
pub(crate) struct Rehearsed {
    pub(crate) host: String,
    pub(crate) settings: Settings,
    pub(crate) engines: Vec<EngineHandle>,
}

/// Engines for every topology of the config, whose addresses and instances are replaced. A first topology of which
/// `rehearsal` says nothing is the deployment that all other cases measure.
pub(crate) fn rehearsed(
    config: &mut Config,
    fixtures: &Arc<Fixtures>,
) -> Result<Vec<Rehearsed>, ConfigError> {
    let mut all = Vec::new();
    for (i, topology) in config.topologies.iter_mut().enumerate() {
        topology.balancer = Default::default();
        if i == 0 && topology.rehearsal.is_empty() {
            topology.url = None;
            topology.instances.clone_from(&config.instances);
            continue;
        }
        let mut table = config.rehearsal.clone();
        merge(&mut table, &topology.rehearsal);
        let key = key!(topologies[topology.name].rehearsal);
        let settings = Settings::from_table(&key, table)?;
        let host = format!("{BALANCER}-t{}", i + 1);
        let engines = spawn(&settings, &format!("t{}-inst", i + 1), config.run.seed, fixtures, &key)?;
        engines.iter().for_each(EngineHandle::kill);
        topology.url = Some(format!("ws://{host}/asr"));
        topology.instances = described(&engines);
        all.push(Rehearsed { host, settings, engines });
    }
    Ok(all)
}

/// Lays one table over another, key by key.
fn merge(under: &mut toml::Table, over: &toml::Table) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => merge(under, over),
            _ => {
                under.insert(key.clone(), value.clone());
            }
        }
    }
}
