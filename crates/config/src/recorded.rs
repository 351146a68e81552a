//! The config of an old run, as far as it can be read.

use tapedeck_l10n::{Localize, LocalizedText};
use toml::{Table, Value};

use crate::Config;
use crate::error::ConfigError;
use crate::ranges;

/// A section of a recorded config that cannot be read.
#[derive(Debug, Clone)]
pub struct Unread {
    /// Its name, e.g. `slo`.
    pub section: String,
    /// Why.
    pub why: LocalizedText,
}

/// The config of a run as another version may have written it.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Everything, as it was written.
    pub tree: Table,
    /// What could be read; a section that could not has its defaults.
    pub config: Config,
    /// What could not.
    pub unread: Vec<Unread>,
}

impl Recorded {
    /// Reads the `run.toml` of a run. A key of another version, or a number that is out of range today, makes its whole
    /// section unknown: a limit must never be the wrong one.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`] where the text is no TOML.
    pub fn parse(text: &str, path: &std::path::Path) -> Result<Self, ConfigError> {
        let place = |e: &toml::de::Error| crate::Place::of(path, text, e.span());
        let tree: Table = toml::from_str(text).map_err(|e| ConfigError::syntax(place(&e), &e))?;
        let mut unread = Vec::new();
        let mut whole = Table::new();
        for (section, value) in tree.clone() {
            match read(Table::from_iter([(section.clone(), value.clone())])).and_then(|c| ranges::check(&c)) {
                Ok(()) => drop(whole.insert(section, value)),
                Err(e) => unread.push(Unread { section, why: e.text() }),
            }
        }
        // Each section was read alone, so all of them can be read together.
        Ok(Self { config: read(whole)?, tree, unread })
    }

    /// Something of a section; nothing where the section could not be read.
    pub fn section<T>(&self, section: &str, of: impl FnOnce(&Config) -> T) -> Option<T> {
        let unread = self.unread.iter().any(|unread| unread.section == section);
        (!unread).then(|| of(&self.config))
    }

    /// Sets a key as [`Config::set`] does, in what was written as well.
    ///
    /// # Errors
    /// As [`Config::set`].
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        self.config.set(key, value)?;
        let section = key.split('.').next().unwrap_or(key);
        if let Some(value) = self.config.tree()?.remove(section) {
            self.tree.insert(section.to_owned(), value);
        }
        Ok(())
    }
}

fn read(tree: Table) -> Result<Config, ConfigError> {
    serde_path_to_error::deserialize(Value::Table(tree))
        .map_err(|e| ConfigError::refused(None, e.path(), e.inner()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_section_leaves_the_others() {
        let text =
            "[other]\nx = 1\n[slo]\nconfidence = 7\n[sizing.promise]\nbloking = 1\n[load]\nramp_s = 2.0\n";
        let mut recorded = Recorded::parse(text, "run.toml".as_ref()).unwrap();
        assert!((recorded.config.load.ramp_s - 2.0).abs() < 1e-9);
        let unread: Vec<&str> = recorded.unread.iter().map(|unread| unread.section.as_str()).collect();
        assert_eq!(unread, ["other", "sizing", "slo"]);
        assert!(recorded.unread[2].why.en.contains("slo.confidence = 7"));
        assert_eq!(recorded.section("slo", |config| config.slo.confidence), None);
        assert_eq!(recorded.section("load", |config| config.load.ramp_s), Some(2.0));
        recorded.set("load.loops", "2").unwrap();
        assert_eq!(recorded.tree["load"]["loops"].as_integer(), Some(2));
        assert_eq!(recorded.tree["other"]["x"].as_integer(), Some(1));
        assert!(Recorded::parse("[slo\n", "run.toml".as_ref()).is_err());
    }
}
