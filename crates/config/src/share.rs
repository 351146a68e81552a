//! Whether two configs may write into one run.

use crate::Config;

impl Config {
    /// What keeps a run that was made with the config `was` from being shared: the first of the settings that decide
    /// what a figure means and that are not the same. Tapes are compared by their content, elsewhere.
    #[must_use]
    pub fn differs(&self, was: &str) -> Option<String> {
        let was: Self = match toml::from_str(was) {
            Ok(was) => was,
            Err(e) => return Some(format!("its config cannot be read: {}", e.message())),
        };
        type Section = fn(&Config) -> Result<toml::Value, toml::ser::Error>;
        let sections: [(&str, Section); 4] = [
            ("server", |c| toml::Value::try_from(&c.server)),
            ("load", |c| toml::Value::try_from(&c.load)),
            ("slo", |c| toml::Value::try_from(&c.slo)),
            ("rehearsal", |c| toml::Value::try_from(&c.rehearsal)),
        ];
        sections.into_iter().find_map(|(name, section)| match (section(&was), section(self)) {
            (Ok(was), Ok(now)) => first_difference(name, &was, &now),
            _ => Some(format!("[{name}] has no TOML form")),
        })
    }
}

/// The first key, dotted, that two values do not share.
fn first_difference(key: &str, was: &toml::Value, now: &toml::Value) -> Option<String> {
    match (was, now) {
        (toml::Value::Table(was), toml::Value::Table(now)) => {
            let keys = was.keys().chain(now.keys().filter(|k| !was.contains_key(*k)));
            keys.map(|k| (format!("{key}.{k}"), was.get(k), now.get(k))).find_map(|(key, was, now)| {
                match (was, now) {
                    (Some(was), Some(now)) => first_difference(&key, was, now),
                    (was, now) => {
                        let shown = |v: Option<&toml::Value>| v.map_or("nothing".into(), ToString::to_string);
                        Some(format!("{key}: then {}, now {}", shown(was), shown(now)))
                    }
                }
            })
        }
        (was, now) if was == now => None,
        (was, now) => Some(format!("{key}: then {was}, now {now}")),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, LadderConfig};

    fn parse(text: &str) -> Config {
        Config::parse(text, "x.toml".as_ref()).unwrap()
    }

    #[test]
    fn what_decides_must_agree_and_the_rest_may_differ() {
        let config = parse("[load]\nramp_s = 0.1\n[rehearsal]\ninstances = 2\n");
        let was = config.to_toml().unwrap();
        let other =
            Config { ladder: LadderConfig { tiers: vec![1], ..LadderConfig::default() }, ..config.clone() };
        assert_eq!(other.differs(&was), None);
        let mut slower = config.clone();
        slower.load.timeouts.final_s = 5.0;
        assert_eq!(slower.differs(&was).unwrap(), "load.timeouts.final_s: then 30.0, now 5.0");
        let three = Config { rehearsal: toml::Table::new(), ..config };
        assert_eq!(three.differs(&was).unwrap(), "rehearsal.instances: then 2, now nothing");
        assert!(three.differs("[load\n").unwrap().contains("cannot be read"));
    }
}
