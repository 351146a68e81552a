//! The metrics page of the gateway.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use tapedeck_metrics::{Exposition, Kind, NumberStyle, count};

use crate::core::Core;
use crate::counters::Refusal;
use crate::log::Outcome;

/// The page at this instant.
pub(crate) fn page(core: &Core) -> String {
    let mut page = Exposition::new(NumberStyle::Python);
    let counters = &core.counters;
    let mut family = |name: &str, kind: Kind, help: &str, label: &str, samples: &[(&str, f64)]| {
        let name = format!("tapedeck_gateway_{name}");
        page.family(&name, kind, help);
        for (of, value) in samples {
            let labels = [(label, *of)];
            page.sample(&name, if label.is_empty() { &[] } else { &labels }, *value);
        }
    };
    let mut one = |name, kind, help, value: f64| family(name, kind, help, "", &[("", value)]);
    let flag = |on: bool| f64::from(u8::from(on));
    one("sessions_open", Kind::Gauge, "Sessions now.", f64::from(core.open_sessions()));
    one("sessions_max", Kind::Gauge, "Sessions allowed.", f64::from(core.options.max_sessions));
    one("draining", Kind::Gauge, "1 when no new session is taken.", flag(core.is_draining()));
    let ended = counters.ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let samples =
        Outcome::ALL.map(|outcome| (outcome.name(), count(ended.get(&outcome).copied().unwrap_or_default())));
    let help = "Sessions that are over, by how they ended.";
    family("sessions_total", Kind::Counter, help, "outcome", &samples);
    let refused = counters.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let samples = Refusal::ALL.map(|why| (why.name(), count(refused.get(&why).copied().unwrap_or_default())));
    family("refused_total", Kind::Counter, "Callers turned away at the door.", "reason", &samples);
    let mut total = |name, help, value: f64| family(name, Kind::Counter, help, "", &[("", value)]);
    let audio_s = count(counters.audio_bytes.load(Ordering::Relaxed)) / 32_000.0;
    total("audio_seconds_total", "Audio of the sessions that are over.", audio_s);
    let windows = count(counters.windows.load(Ordering::Relaxed));
    total("windows_total", "Windows or segments of the sessions that are over.", windows);
    let moves = count(counters.moves.load(Ordering::Relaxed));
    total("moves_total", "Upstreams that died under a session which went on at another.", moves);
    let up: Vec<_> = core.servers.iter().map(|s| (s.name.as_str(), flag(s.is_up()))).collect();
    family("upstream_up", Kind::Gauge, "Whether an upstream takes sessions.", "upstream", &up);
    let open: Vec<_> = core.servers.iter().map(|s| (s.name.as_str(), f64::from(s.open()))).collect();
    family("upstream_sessions_open", Kind::Gauge, "Sessions of an upstream now.", "upstream", &open);
    page.finish()
}
