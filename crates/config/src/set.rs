//! One key, overridden by its name.

use std::fmt;
use std::str::FromStr;

use toml::{Table, Value};

use crate::Config;
use crate::error::ConfigError;
use crate::keys::{self, Key, Takes};

/// `KEY=VALUE`, as a flag gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The key, dotted.
    pub key: String,
    /// The value, as text.
    pub value: String,
}

/// A text that is no [`Setting`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no KEY=VALUE, e.g. slo.rtf_p95=0.6")]
pub struct NotASetting(String);

impl FromStr for Setting {
    type Err = NotASetting;

    fn from_str(text: &str) -> Result<Self, NotASetting> {
        let (key, value) = text.split_once('=').ok_or_else(|| NotASetting(text.to_owned()))?;
        Ok(Self { key: key.trim().to_owned(), value: value.trim().to_owned() })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, self.value)
    }
}

impl Config {
    /// Sets a key to a value given as text: `slo.rtf_p95` to `0.6`, `ladder.tiers` to `3,6,12`, `instances.inst1.kind` to
    /// `sglang`. The value is read as TOML, or as bare text where that is what the key takes. Ranges are held by
    /// [`Config::check`].
    ///
    /// # Errors
    /// [`ConfigError::Unknown`] with the nearest key, [`ConfigError::Type`] for a value that does not fit.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let mut tree = self.tree()?;
        let unknown = || ConfigError::unknown(key);
        let mut name = String::new();
        let slot = slot(&mut tree, key, &mut name).ok_or_else(unknown)?;
        let known =
            keys::holds(&name).filter(|known| keys::find(&known.name).is_some()).ok_or_else(unknown)?;
        *slot = read(&known, value);
        *self = serde_path_to_error::deserialize(Value::Table(tree))
            .map_err(|e| ConfigError::refused(None, e.path(), e.inner()))?;
        Ok(())
    }
}

/// Where a key's value stands in the tree, made where it is not there yet; and the key's `name` without those of the
/// elements of lists, which may hold dots themselves.
fn slot<'a>(tree: &'a mut Table, key: &str, name: &mut String) -> Option<&'a mut Value> {
    if !name.is_empty() {
        name.push('.');
    }
    let Some((first, rest)) = key.split_once('.') else {
        name.push_str(key);
        return Some(tree.entry(key).or_insert(Value::Boolean(false)));
    };
    name.push_str(first);
    match tree.entry(first).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(table) => slot(table, rest, name),
        Value::Array(elements) => elements.iter_mut().find_map(|element| {
            let element = element.as_table_mut()?;
            let own = element.get("name")?.as_str()?.to_owned();
            slot(element, rest.strip_prefix(own.as_str())?.strip_prefix('.')?, name)
        }),
        _ => None,
    }
}

/// The value that a text means for a key; what does not fit is left to serde to refuse.
fn read(key: &Key, text: &str) -> Value {
    let bare = || Value::String(text.to_owned());
    let toml = |text: &str| {
        let table: Table = toml::from_str(&format!("v = {text}")).ok()?;
        (table.len() == 1).then_some(table)?.remove("v")
    };
    let one = |text: &str| match key.takes {
        Takes::Text | Takes::Words(_) => {
            toml(text).filter(Value::is_str).unwrap_or_else(|| Value::String(text.to_owned()))
        }
        Takes::Number | Takes::Switch | Takes::Table => toml(text).unwrap_or_else(bare),
    };
    if !key.list {
        return one(text);
    }
    let elements = || text.split(',').map(str::trim).filter(|text| !text.is_empty());
    toml(text).filter(Value::is_array).unwrap_or_else(|| elements().map(one).collect::<Vec<_>>().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LadderContent;
    use tapedeck_answers::Part;

    fn set(config: &mut Config, key: &str, value: &str) -> Result<(), String> {
        config.set(key, value).map_err(|e| e.to_string())
    }

    #[test]
    fn every_kind_of_value_is_read_as_its_key_takes_it() {
        let text = "[[instances]]\nname = \"a.b\"\n[[topologies]]\nname = \"3x0.30\"\n\
                    [[topologies.instances]]\nname = \"t1\"\n";
        let mut config = Config::parse(text, "x.toml".as_ref()).unwrap();
        for (key, value) in [
            ("slo.rtf_p95", "1"),
            ("server.window_ms", "5000"),
            ("server.url", "ws://h:1/asr"),
            ("server.options.language", "zh"),
            ("ladder.tiers", "3,6,12"),
            ("footprint.levels", "[1, 8]"),
            ("ladder.content", "pool"),
            ("ladder.refine", "false"),
            ("campaign.skip", "tc02,tc07"),
            ("instances.a.b.kind", "sglang"),
            ("topologies.3x0.30.url", "\"ws://t\""),
            ("topologies.3x0.30.instances.t1.managed", "false"),
            ("rehearsal.engine.max_sessions", "4"),
            ("run.out", "2024"),
        ] {
            set(&mut config, key, value).unwrap();
        }
        assert_eq!((config.slo.rtf_p95, config.server.window_ms), (1.0, Some(5000)));
        assert_eq!(config.ladder.tiers, [3, 6, 12]);
        assert_eq!((config.footprint.levels.len(), config.ladder.refine), (2, false));
        assert_eq!(config.ladder.content, LadderContent::Pool);
        assert_eq!(config.campaign.skip, [Part::Tc02, Part::Tc07]);
        assert_eq!(config.instances[0].kind.name(), "sglang");
        assert_eq!(config.topologies[0].url.as_deref(), Some("ws://t"));
        assert!(!config.topologies[0].instances[0].managed);
        assert_eq!(config.server.options["language"].as_str(), Some("zh"));
        assert_eq!(config.rehearsal["engine"]["max_sessions"].as_integer(), Some(4));
        assert_eq!(config.run.out.to_str(), Some("2024"));
        config.set("campaign.skip", "").unwrap();
        assert!(config.campaign.skip.is_empty());
    }

    #[test]
    fn a_setting_is_a_key_and_a_value() {
        let setting: Setting = "server.url = ws://h/asr?a=b".parse().unwrap();
        assert_eq!((setting.key.as_str(), setting.value.as_str()), ("server.url", "ws://h/asr?a=b"));
        assert_eq!(setting.to_string(), "server.url = ws://h/asr?a=b");
        assert!("slo.rtf_p95".parse::<Setting>().unwrap_err().to_string().contains("KEY=VALUE"));
    }

    #[test]
    fn what_is_not_a_key_or_does_not_fit_is_refused_and_changes_nothing() {
        let mut config = Config::default();
        for (key, value, says) in [
            ("rtf_p95", "1", "there is no config key `rtf_p95`: did you mean `slo.rtf_p95`?"),
            ("slo.rtf", "1", "did you mean `slo.rtf_p95`?"),
            ("tape.unique_per_session", "true", "did you mean `load.unique_per_session`?"),
            ("slo", "1", "there is no config key `slo`"),
            ("instances.nobody.kind", "vllm", "there is no config key `instances.nobody.kind`"),
            ("slo.rtf_p95", "wide", "config key slo.rtf_p95: invalid type"),
            ("slo.rtf_p95.x", "1", "there is no config key `slo.rtf_p95.x`"),
            ("slo.ttft_basis", "wier", "expected one of `wire`, `speech`, `window`"),
            ("load.loops", "-1", "config key load.loops: "),
            ("load.loops", "1\n[slo]\nrtf_p95 = 9", "config key load.loops: "),
        ] {
            let refused = set(&mut config, key, value).unwrap_err();
            assert!(refused.contains(says), "{key}={value}: {refused}");
        }
        assert_eq!(config, Config::default());
    }
}
