//! Waiting until nothing is left to do: the next load point must not meet the last one's calls.

use std::time::Duration;

use futures_util::future::join_all;
use tapedeck_metrics::{EngineKind, scrape};
use tapedeck_record::{DrainReason, Metric, Scrape};
use tapedeck_transport::{Connector, HttpLimits};
use tokio::time::{Instant, sleep_until};

use crate::instance::Instance;

/// When a fleet counts as drained, and how long to wait for that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrainRules {
    /// Give up after this; 120 s by default.
    pub timeout: Duration,
    /// How many scrapes in a row must be clean on every instance; 2 by default, because gauges lag by seconds.
    pub clean_scrapes: u32,
    /// Time between scrapes; 1 s by default.
    pub interval: Duration,
    /// Bounds of one scrape.
    pub limits: HttpLimits,
}

impl Default for DrainRules {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            clean_scrapes: 2,
            interval: Duration::from_secs(1),
            limits: HttpLimits { timeout: Duration::from_secs(5), ..HttpLimits::default() },
        }
    }
}

/// How a drain ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Drain {
    /// Whether every instance that can be asked was clean, often enough in a row; empty if none can be asked.
    pub drained: Option<bool>,
    /// From the call to the first of the clean scrapes, or to giving up, seconds.
    pub seconds: f64,
    /// What held it up, where it was held up; what could not be checked, where it was not.
    pub why: Vec<DrainReason>,
    /// What could not be checked and on which instance: a kind of engine, or a version, does not tell everything.
    pub unchecked: Vec<DrainReason>,
}

/// How far a drain is.
#[derive(Debug, Clone, PartialEq)]
pub struct DrainStep {
    /// Since the start, seconds.
    pub seconds: f64,
    /// Scrapes in a row that were clean everywhere.
    pub clean: u32,
    /// What is still busy; empty when nothing is.
    pub busy: Vec<DrainReason>,
}

/// Waits until running, waiting for room and open sessions are zero on every instance in enough scrapes in a row.
/// `progress` hears every round.
pub async fn drain(
    connector: &dyn Connector,
    instances: &[Instance],
    rules: DrainRules,
    mut progress: impl FnMut(&DrainStep) + Send,
) -> Drain {
    let start = Instant::now();
    let end = start + rules.timeout;
    let mut unchecked = Vec::new();
    let mut asked = Vec::new();
    for instance in instances {
        let name = instance.name.clone();
        match (&instance.metrics, instance.kind) {
            (_, EngineKind::None) => unchecked.push(DrainReason::NoMetrics { instance: name }),
            (None, _) => unchecked.push(DrainReason::NoMetricsUrl { instance: name }),
            (Some(endpoint), kind) => asked.push((instance, endpoint, kind)),
        }
    }
    if asked.is_empty() {
        return Drain { drained: None, seconds: 0.0, why: unchecked.clone(), unchecked };
    }
    let mut tick = start;
    let mut clean = 0;
    let mut first_clean_s = 0.0;
    loop {
        let round = join_all(asked.iter().map(|(instance, endpoint, kind)| async move {
            let read = scrape(connector, endpoint, instance.bearer.as_ref(), *kind, rules.limits).await;
            match read {
                Ok(scraped) => busy(&instance.name, &scraped.normalised.scrape),
                Err(error) => {
                    let unreadable =
                        DrainReason::Unreadable { instance: instance.name.clone(), error: error.to_string() };
                    Busy { with: vec![unreadable], unchecked: Vec::new() }
                }
            }
        }))
        .await;
        let seconds = start.elapsed().as_secs_f64();
        let mut still = Vec::new();
        for one in round {
            still.extend(one.with);
            for what in one.unchecked {
                if !unchecked.contains(&what) {
                    unchecked.push(what);
                }
            }
        }
        if still.is_empty() {
            if clean == 0 {
                first_clean_s = seconds;
            }
            clean += 1;
        } else {
            clean = 0;
        }
        progress(&DrainStep { seconds, clean, busy: still.clone() });
        if clean >= rules.clean_scrapes.max(1) {
            return Drain { drained: Some(true), seconds: first_clean_s, why: unchecked.clone(), unchecked };
        }
        tick = (tick + rules.interval).max(Instant::now());
        if tick > end {
            let why = if still.is_empty() {
                vec![DrainReason::FewCleanScrapes { clean, within_s: rules.timeout.as_secs_f64() }]
            } else {
                still
            };
            return Drain { drained: Some(false), seconds, why, unchecked };
        }
        sleep_until(tick).await;
    }
}

/// What an instance is still busy with, and what it does not tell.
struct Busy {
    with: Vec<DrainReason>,
    unchecked: Vec<DrainReason>,
}

fn busy(instance: &str, scrape: &Scrape) -> Busy {
    let value = |metric: Metric| scrape.values.get(&metric).copied();
    let mut busy = Busy { with: Vec::new(), unchecked: Vec::new() };
    // An engine that does not split its queue may still show one that is empty.
    let waiting =
        if value(Metric::WaitingCapacity).is_some() { Metric::WaitingCapacity } else { Metric::Waiting };
    for metric in [Metric::Running, waiting, Metric::OpenSessions] {
        let instance = instance.to_owned();
        match value(metric) {
            // A gauge of whole things, printed as a float.
            Some(count) if count.abs() < 0.5 => {}
            Some(count) => busy.with.push(DrainReason::Busy { instance, metric, count }),
            None => busy.unchecked.push(DrainReason::NotTold { instance, metric }),
        }
    }
    busy
}
