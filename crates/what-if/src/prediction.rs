//! Topologies predicted for TC-07, from the ladder of its run.

use std::collections::BTreeMap;
use std::path::Path;

use tapedeck_answers::Predicted;
use tapedeck_cases::prediction::{Prediction, Predictor};
use tapedeck_l10n::{Localize, LocalizedText};
use tapedeck_sizing::Topology;
use tapedeck_sizing::whatif::{Scenario, Supposition, fit, pool_tokens, predict};

use crate::error::RunError;
use crate::ladder::{Told, ladder};
use crate::run::Run;

/// Fits the engine model to the ladder of a run, as `tape-sizing what-if` does.
#[derive(Debug, Clone, Copy)]
pub struct WhatIf;

impl Predictor for WhatIf {
    fn prediction(&self, run: &Path, topologies: &[(String, u32)]) -> Result<Prediction, LocalizedText> {
        prediction(run, topologies).map_err(|error| error.text())
    }
}

fn prediction(run: &Path, topologies: &[(String, u32)]) -> Result<Prediction, RunError> {
    let run = Run::read(run)?;
    let plan = &run.config.sizing;
    let told = Told { round_robin: plan.promise.round_robin, ..Told::default() };
    let ladder = ladder(plan, &told, &run)?;
    let seed = run.info.seed;
    let fitted = fit(&ladder, seed)?;
    let card = plan.card()?;
    let token_bytes = plan.architecture().and_then(|a| a.kv_bytes_per_token())?;
    // A name such as 3x0.30 says how the card is cut; another one leaves the pool of an instance as it was.
    let cut = |name: &str| name.parse::<Topology>().ok();
    let old = topologies.first().and_then(|(name, _)| cut(name));
    let mut of = BTreeMap::new();
    for (at, (name, instances)) in topologies.iter().enumerate() {
        let mut scenario = Scenario { instances: *instances, ..Scenario::as_measured(&ladder) };
        if let (true, Some(new)) = (at > 0, cut(name)) {
            let known = ladder.known.pool_tokens.zip(old);
            scenario.pool_tokens = Some(pool_tokens(known, new, &card, token_bytes)?);
        }
        let shared = f64::from(*instances) / f64::from(ladder.instances.max(1));
        let suppositions: &[(Supposition, f64)] = if at == 0 || *instances == ladder.instances {
            &[(Supposition::Nothing, 1.0)]
        } else {
            &[(Supposition::Independent, 1.0), (Supposition::Shared, shared)]
        };
        let mut all = Vec::new();
        for (given, step_factor) in suppositions {
            let scenario = Scenario { step_factor: *step_factor, ..scenario.clone() };
            let found = predict(&ladder, &fitted, &scenario)?;
            all.push(Predicted {
                given: given.clone(),
                n_star: found.n_star,
                low: found.low,
                high: found.high,
                agrees: None,
            });
        }
        of.insert(name.clone(), all);
    }
    Ok(Prediction { of, notes: fitted.notes })
}
