//! Hands on the built-in engines: what commands in the config are for real ones.

use std::collections::BTreeMap;

use tapedeck_engine::{EngineHandle, State};
use tapedeck_fleet::{Action, Control, ControlError, Output};
use tapedeck_transport::BoxFuture;

/// Starts, stops, kills and freezes built-in engines.
#[derive(Debug)]
pub struct InstanceControl {
    engines: BTreeMap<String, EngineHandle>,
}

impl InstanceControl {
    /// Hands on these engines, by their names.
    #[must_use]
    pub fn new(engines: &[EngineHandle]) -> Self {
        Self { engines: engines.iter().map(|e| (e.name().to_owned(), e.clone())).collect() }
    }

    fn act(&self, instance: &str, action: Action) -> Result<Output, ControlError> {
        let engine = self
            .engines
            .get(instance)
            .ok_or_else(|| ControlError::NotManaged { instance: instance.to_owned(), action })?;
        let mut said = String::new();
        match action {
            Action::Start if engine.state() == State::Up => {}
            Action::Start => engine.revive(),
            // A real server finishes what it is told to finish; calls that are still open when a case stops an
            // engine are calls it has given up on.
            Action::Stop | Action::Kill => engine.kill(),
            Action::Freeze => engine.freeze(),
            Action::Thaw => engine.thaw(),
            Action::Log => {
                let tokens = engine.params().kv_tokens();
                said = format!("GPU KV cache size: {tokens} tokens\n");
            }
        }
        Ok(Output { stdout: said, stderr: String::new() })
    }
}

impl Control for InstanceControl {
    fn can(&self, instance: &str, _: Action) -> bool {
        self.engines.contains_key(instance)
    }

    fn run<'a>(&'a self, instance: &'a str, action: Action) -> BoxFuture<'a, Result<Output, ControlError>> {
        Box::pin(std::future::ready(self.act(instance, action)))
    }
}
