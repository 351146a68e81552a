//! One instance under test and whether it is well.

use std::time::Duration;

use futures_util::future::join_all;
use tapedeck_metrics::{EngineKind, fetch_page};
use tapedeck_transport::{Connector, Endpoint, HttpError, HttpLimits, Secret, http_get};
use thiserror::Error;
use tokio::time::{Instant, sleep_until};

/// A server under test, as the config describes it.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Name, unique in the fleet.
    pub name: String,
    /// Where it says whether it is well; without one its metrics page answers for it.
    pub health: Option<Endpoint>,
    /// Its metrics page.
    pub metrics: Option<Endpoint>,
    /// Where it takes calls itself, past the balancer.
    pub direct: Option<Endpoint>,
    /// What kind of engine it is.
    pub kind: EngineKind,
    /// Token for the two pages, where they want one.
    pub bearer: Option<Secret>,
}

/// Whether an instance is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It answers and says so.
    Up,
    /// It does not, and why.
    Down {
        /// In one line.
        why: String,
    },
    /// Nobody knows: it has neither a health URL nor a metrics URL.
    Unknown,
}

impl Health {
    /// Whether it is well for certain.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        matches!(self, Self::Up)
    }
}

/// Asks an instance once.
pub async fn health(connector: &dyn Connector, instance: &Instance, limits: HttpLimits) -> Health {
    let bearer = instance.bearer.as_ref();
    if let Some(endpoint) = &instance.health {
        match http_get(connector, endpoint, bearer, limits).await {
            Ok(response) if response.status.is_success() => Health::Up,
            Ok(response) => Health::Down { why: format!("{endpoint} answers {}", response.status) },
            // An answer that is too long is an answer.
            Err(HttpError::TooLarge { .. }) => Health::Up,
            Err(error) => Health::Down { why: error.to_string() },
        }
    } else if let Some(endpoint) = &instance.metrics {
        match fetch_page(connector, endpoint, bearer, limits).await {
            Ok(_) => Health::Up,
            Err(error) => Health::Down { why: error.to_string() },
        }
    } else {
        Health::Unknown
    }
}

/// How long to wait for health, and how often to ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaitRules {
    /// Give up after this; 10 min by default, because loading a model takes that long on a slow disk.
    pub timeout: Duration,
    /// Ask every so often; 1 s by default.
    pub interval: Duration,
    /// Bounds of one question.
    pub limits: HttpLimits,
}

impl Default for WaitRules {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(600),
            interval: Duration::from_secs(1),
            limits: HttpLimits { timeout: Duration::from_secs(5), ..HttpLimits::default() },
        }
    }
}

/// Some instances did not become well in time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not healthy after {seconds} s: {}; look into the instance's log", list(.down))]
pub struct NotHealthy {
    /// How long was waited, seconds.
    pub seconds: u64,
    /// Which, and why.
    pub down: Vec<(String, String)>,
}

fn list(down: &[(String, String)]) -> String {
    down.iter().map(|(name, why)| format!("{name} ({why})")).collect::<Vec<_>>().join(", ")
}

/// Waits until no instance is down and returns how long that took. An instance of which nobody knows does not hold it up.
/// `progress` hears the names that are still down after each round.
///
/// # Errors
/// When some are still down at the time-out.
pub async fn wait_healthy(
    connector: &dyn Connector,
    instances: &[Instance],
    rules: WaitRules,
    mut progress: impl FnMut(&[(String, String)]) + Send,
) -> Result<Duration, NotHealthy> {
    let start = Instant::now();
    let end = start + rules.timeout;
    let mut tick = start;
    loop {
        let asked = instances.iter().map(|instance| health(connector, instance, rules.limits));
        let down: Vec<_> = instances
            .iter()
            .zip(join_all(asked).await)
            .filter_map(|(instance, health)| match health {
                Health::Down { why } => Some((instance.name.clone(), why)),
                Health::Up | Health::Unknown => None,
            })
            .collect();
        if down.is_empty() {
            return Ok(start.elapsed());
        }
        progress(&down);
        tick = (tick + rules.interval).max(Instant::now());
        if tick >= end {
            return Err(NotHealthy { seconds: start.elapsed().as_secs(), down });
        }
        sleep_until(tick).await;
    }
}
