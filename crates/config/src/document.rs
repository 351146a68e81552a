//! The config as it is shown: to begin with, and with every key.

/// A config to begin with: what has to be filled in, with comments.
pub const STARTER: &str = include_str!("starter.toml");

/// Every key of the config with its default and unit: the very block that `docs/config.md` shows.
#[must_use]
pub fn annotated_config() -> &'static str {
    let page = include_str!("../../../docs/config.md");
    let block = page.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```"));
    block.map_or("", |(block, _)| block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn what_is_printed_is_the_default_config() {
        let config = Config::parse(annotated_config(), "annotated".as_ref()).unwrap();
        assert_eq!(config, Config::default());
    }

    #[test]
    fn the_starter_works_and_so_does_every_line_that_it_comments_out() {
        let config = Config::parse(STARTER, "starter.toml".as_ref()).unwrap();
        config.check().unwrap();
        assert_eq!(config.instances.len(), 1);
        let all: String = STARTER
            .lines()
            .map(|line| {
                let bare = line.strip_prefix("# ").unwrap_or(line);
                let key = bare.split(' ').next().unwrap_or("");
                let is_key = key.starts_with('[') || bare[key.len()..].starts_with(" = ");
                format!("{}\n", if is_key { bare } else { line })
            })
            .collect();
        let config = Config::parse(&all, "starter.toml".as_ref()).unwrap();
        config.check().unwrap();
        assert!(config.gpu.nvml && config.server.window_ms.is_some());
        assert!(config.instances[0].commands.log.is_some() && !config.environment.commands.is_empty());
    }
}
