//! Values that no type can check.

use tapedeck_l10n::{Localize, LocalizedText, localized};

use crate::error::ConfigError;
use crate::{Config, key, ranges};

impl Config {
    /// Checks what no type can: every number against its range, lists, names, and what belongs together. Call it once the
    /// config is complete, before anything is made.
    ///
    /// # Errors
    /// [`ConfigError::Range`] or [`ConfigError::Value`] naming the first key that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        ranges::check(self)?;
        for (key, streams) in
            [(key!(ladder.tiers), &self.ladder.tiers), (key!(footprint.levels), &self.footprint.levels)]
        {
            if streams.is_empty() || !streams.is_sorted_by(|a, b| a < b) {
                return bad(
                    key,
                    localized!(
                        "{streams:?}: give ascending numbers of streams",
                        "{streams:?}：请按升序给出路数"
                    ),
                );
            }
        }
        for (key, shares, ascending) in [
            (key!(long_calls.shares), &self.long_calls.shares, true),
            (key!(quality.shares), &self.quality.shares, true),
            (key!(fault.shares), &self.fault.shares, false),
            (key!(topology.shares), &self.topology.shares, false),
        ] {
            if shares.is_empty() {
                return bad(
                    key,
                    localized!("[]: give at least one share of N*", "[]：请至少给出一个 N* 的比例"),
                );
            }
            if ascending && !shares.is_sorted_by(|a, b| a < b) {
                return bad(
                    key,
                    localized!(
                        "{shares:?}: give ascending shares of N*",
                        "{shares:?}：请按升序给出 N* 的比例"
                    ),
                );
            }
        }
        unique(key!(topologies[].name), self.topologies.iter().map(|t| t.name.as_str()))?;
        unique(key!(instances[].name), self.instances.iter().map(|i| i.name.as_str()))?;
        self.dialect()?;
        let of = |key: &'static str| move |e: tapedeck_sizing::SizingError| ConfigError::value(key, e.text());
        self.sizing.session().map_err(of(key!(sizing.session)))?;
        self.sizing.card().map_err(of(key!(sizing.card_gb)))?;
        self.sizing.topology().map_err(of(key!(sizing.topology)))?;
        self.sizing.promise.check().map_err(of(key!(sizing.promise)))
    }
}

fn bad<T>(key: &str, why: LocalizedText) -> Result<T, ConfigError> {
    Err(ConfigError::value(key, why))
}

fn unique<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Result<(), ConfigError> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => bad(
            key,
            localized!("`{}` stands twice: names must differ", "`{}` 出现两次：名称须不同", twice[0]),
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_values_are_named() {
        for (text, key) in [
            ("[ladder]\ntiers = [6, 3]\n", "ladder.tiers"),
            ("[ladder]\ntiers = []\n", "ladder.tiers"),
            ("[ladder]\ntiers = [0, 3]\n", "ladder.tiers"),
            ("[ladder]\nmax_loops = 0\n", "ladder.max_loops"),
            ("[load]\nchunk_ms = 0\n", "load.chunk_ms"),
            ("[load]\nramp_s = -1.0\n", "load.ramp_s"),
            ("[load]\nloops_small = 0\n", "load.loops_small"),
            ("[quality]\nshares = [0.5, 1.5]\n", "quality.shares"),
            ("[quality]\nshares = [1.0, 0.5]\n", "quality.shares"),
            ("[long_calls]\nshares = []\n", "long_calls.shares"),
            ("[fault]\nshares = []\n", "fault.shares"),
            ("[footprint]\nlevels = [8, 1]\n", "footprint.levels"),
            ("[single]\npasses = 1\n", "single.passes"),
            ("[sizing]\nsession = \"no-such\"\n", "sizing"),
            ("[sizing.promise]\nservice_level = 0.8\n", "sizing.promise"),
            ("[load]\nwarm_up_s = nan\n", "load.warm_up_s"),
            ("[server]\ndialect = \"pcmjson\"\n", "server.dialect"),
            ("[[instances]]\nname = \"a\"\n[[instances]]\nname = \"a\"\n", "instances.name"),
        ] {
            let message = Config::parse(text, "x.toml".as_ref()).unwrap().check().unwrap_err().text();
            assert!(message.en.contains(key) && message.zh.contains(key), "{text}: {message:?}");
            // Only what a dialect says of its own settings stays English.
            assert!(message.zh.starts_with("配置项"), "{message:?}");
        }
    }
}
