//! What a reader should know of a fit, in plain sentences.

use tapedeck_engine_model::SessionModel;

use super::fit::{Fit, Grade};
use super::ladder::Ladder;

pub(super) fn say(fit: &Fit, ladder: &Ladder) -> Vec<String> {
    let percent = |x: f64| format!("{:.0} %", 100.0 * (x.exp() - 1.0));
    let mut all = vec![format!(
        "The fit to {} tiers is {}: its figures are off by {} on the tiers it saw, by {} on tiers left out (root mean square; {} for the middle one of them).",
        fit.tiers,
        fit.grade.name(),
        percent(fit.error),
        percent(fit.error_left_out),
        percent(fit.usual_error)
    )];
    for (figure, bias) in fit.bias.iter().filter(|(_, bias)| bias.abs() > 0.12) {
        let side = if *bias > 0.0 { "above" } else { "below" };
        all.push(format!(
            "{} of the model lies {} {side} what was measured, on average over the tiers.",
            figure.name(),
            percent(bias.abs())
        ));
    }
    if fit.grade == Grade::Poor {
        all.push(
            "The engine's costs follow another law than the model's: do not use the predictions.".into(),
        );
    }
    if let Some(alternative) = &fit.alternative {
        all.push(format!(
            "A lag that grows by about {:.0} ms with each minute of a call would explain it: the error falls from {} to {}. The plain law has no such term, so longer calls would be worse than predicted.",
            alternative.age_lag_ms_per_min,
            percent(fit.error),
            percent(alternative.error)
        ));
    }
    if let Some(slope) = ladder.age_slope_ms_per_min.filter(|s| *s > 60.0)
        && ladder.known.params.session == SessionModel::Resident
    {
        all.push(format!(
            "At the lowest load lag already grows by {slope:.0} ms with each minute of a call; the fitted law makes little of a call's age."
        ));
    }
    match (fit.kv_ratio, ladder.known.pool_tokens) {
        (Some(ratio), Some(_)) if (ratio - 1.0).abs() > 0.15 => all.push(format!(
            "Calls take {ratio:.2} x the KV that the model takes; predictions use the measured figure."
        )),
        (Some(_), None) => {
            all.push("The pool was not known; it was fitted to the measured use of it.".into())
        }
        (None, _) => {
            all.push("No KV figures: predictions know no memory limit but the model's own reckoning.".into())
        }
        _ => {}
    }
    if let Some(spread) = fit.kv_spread.filter(|s| *s > 0.35) {
        all.push(format!(
            "The KV in use does not follow the model over the tiers (up to {:.0} % off).",
            100.0 * spread
        ));
    }
    all
}
