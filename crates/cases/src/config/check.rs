//! Values that no type can check.

use std::time::Duration;

use super::Config;
use crate::error::ConfigError;
use crate::sections::are_shares;

impl Config {
    /// Checks the values that no type can check.
    ///
    /// # Errors
    /// [`ConfigError::Value`] naming the first key that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let bad = |key: &str, why: String| Err(ConfigError::Value { key: key.into(), why });
        let tiers = &self.ladder.tiers;
        if tiers.is_empty() || tiers.contains(&0) || !tiers.is_sorted_by(|a, b| a < b) {
            return bad("ladder.tiers", format!("{tiers:?}: give ascending numbers of streams, all above 0"));
        }
        if self.ladder.repeat == 0 || self.ladder.max_loops == 0 {
            return bad("ladder.repeat", "0: a tier is played at least once, with at least one loop".into());
        }
        if self.load.chunk_ms == 0 || self.load.chunk_ms > 10_000 {
            return bad("load.chunk_ms", format!("{}: give 1 to 10000 milliseconds", self.load.chunk_ms));
        }
        if self.load.loops == 0 || self.load.loops_small == 0 {
            return bad("load.loops", "0 loops hold no call: give at least 1".into());
        }
        for (key, seconds) in [
            ("load.ramp_s", self.load.ramp_s),
            ("load.warm_up_s", self.load.warm_up_s),
            ("load.finish_s", self.load.finish_s),
            ("load.drain_s", self.load.drain_s),
            ("load.cool_down_s", self.load.cool_down_s),
            ("load.ping_s", self.load.ping_s),
            ("load.sample_s", self.load.sample_s),
            ("pool.draw_s", self.pool.draw_s),
            ("environment.timeout_s", self.environment.timeout_s),
            ("load.timeouts.connect_s", self.load.timeouts.connect_s),
            ("load.timeouts.mute_s", self.load.timeouts.mute_s),
            ("load.timeouts.idle_s", self.load.timeouts.idle_s),
            ("load.timeouts.final_s", self.load.timeouts.final_s),
        ] {
            if Duration::try_from_secs_f64(seconds).is_err() || seconds > 1e6 {
                return bad(key, format!("{seconds}: give 0 to 1000000 seconds"));
            }
        }
        if self.load.sample_s < 0.05 {
            return bad("load.sample_s", format!("{}: give at least 0.05 seconds", self.load.sample_s));
        }
        for (key, shares) in [
            ("soak.share", std::slice::from_ref(&self.soak.share)),
            ("fault.shares", &self.fault.shares[..]),
            ("topology.shares", &self.topology.shares[..]),
        ] {
            if shares.is_empty() || shares.iter().any(|s| !(*s > 0.0 && *s <= 10.0)) {
                return bad(key, format!("{shares:?}: give shares of N*, above 0 and at most 10"));
            }
        }
        for (key, value) in [
            ("soak.hours", self.soak.hours),
            ("soak.period_s", self.soak.period_s),
            ("fault.recovery.step_s", self.fault.recovery.step_s),
        ] {
            if !(value > 0.0 && value <= 1e6) {
                return bad(key, format!("{value}: give a number above 0"));
            }
        }
        for (key, value) in [
            ("fault.steady_s", self.fault.steady_s),
            ("fault.down_s", self.fault.down_s),
            ("fault.after_s", self.fault.after_s),
            ("fault.well_s", self.fault.well_s),
        ] {
            if !(0.0..=1e6).contains(&value) {
                return bad(key, format!("{value}: give 0 to 1000000 seconds"));
            }
        }
        let mut topologies: Vec<_> = self.topologies.iter().map(|t| t.name.as_str()).collect();
        topologies.sort_unstable();
        if let Some(twice) = topologies.windows(2).find(|w| w[0] == w[1]) {
            return bad("topologies.name", format!("`{}` stands twice: names must differ", twice[0]));
        }
        self.check_cases()?;
        let mut names: Vec<_> = self.instances.iter().map(|i| i.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|w| w[0] == w[1]) {
            return bad("instances.name", format!("`{}` stands twice: names must differ", twice[0]));
        }
        Ok(())
    }

    /// The values of single cases that no type can check.
    fn check_cases(&self) -> Result<(), ConfigError> {
        let bad = |key: &str, why: &str| Err(ConfigError::Value { key: key.into(), why: why.into() });
        for (key, shares) in
            [("long_calls.shares", &self.long_calls.shares), ("quality.shares", &self.quality.shares)]
        {
            if !are_shares(shares) {
                return bad(key, "give ascending shares of N*, above 0 and up to 1");
            }
        }
        let levels = &self.footprint.levels;
        if levels.is_empty() || levels.contains(&0) || !levels.is_sorted_by(|a, b| a < b) {
            return bad("footprint.levels", "give ascending numbers of streams, all above 0");
        }
        if !(1.0..=1e6).contains(&self.footprint.steady_s) {
            return bad("footprint.steady_s", "give 1 to 1000000 seconds");
        }
        if self.single.calls == 0 || self.single.passes < 2 {
            return bad("single.passes", "give at least one call and two passes: the first is the cold one");
        }
        if self.quality.baseline_loops == 0 || self.quality.loops == 0 || self.quality.draws == 0 {
            return bad("quality.baseline_loops", "give at least one loop, and at least one draw");
        }
        let of_sizing =
            |e: tapedeck_sizing::SizingError| ConfigError::Value { key: "sizing".into(), why: e.to_string() };
        self.sizing.architecture().map_err(of_sizing)?;
        self.sizing.session().map_err(of_sizing)?;
        self.sizing.card().map_err(of_sizing)?;
        self.sizing.topology().map_err(of_sizing)?;
        self.sizing.promise.check().map_err(of_sizing)?;
        Ok(())
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
            ("[load]\nchunk_ms = 0\n", "load.chunk_ms"),
            ("[load]\nramp_s = -1.0\n", "load.ramp_s"),
            ("[quality]\nshares = [0.5, 1.5]\n", "quality.shares"),
            ("[long_calls]\nshares = []\n", "long_calls.shares"),
            ("[footprint]\nlevels = [8, 1]\n", "footprint.levels"),
            ("[single]\npasses = 1\n", "single.passes"),
            ("[sizing]\nsession = \"no-such\"\n", "sizing"),
            ("[load]\nwarm_up_s = nan\n", "load.warm_up_s"),
            ("[[instances]]\nname = \"a\"\n[[instances]]\nname = \"a\"\n", "instances.name"),
        ] {
            let message = Config::parse(text, "x.toml".as_ref()).unwrap().check().unwrap_err().to_string();
            assert!(message.contains(key), "{text}: {message}");
        }
    }
}
