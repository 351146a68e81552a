//! KV pools: how large they are, and what a tape will take of them.

use tapedeck_answers::{FootprintAnswer, InstancePool, Occupation, OccupationSource};
use tapedeck_config::{ConfigError, key};
use tapedeck_l10n::Localize;
use tapedeck_metrics::{EngineKind, PoolInfo, scrape};
use tapedeck_rundir::RunDir;
use tapedeck_sizing::{PoolSource, SizingError, kv};
use tapedeck_transport::HttpLimits;

use crate::environment;
use crate::error::CaseError;
use crate::loaded_tape::Role;
use crate::prior_results;
use crate::world::World;

/// Asks every instance for its pool: the page, else the log.
pub async fn pools(world: &World) -> Vec<InstancePool> {
    let mut all = Vec::new();
    for instance in &world.instances {
        let mut why = PoolSource::NoPage;
        let mut page: Option<PoolInfo> = None;
        if let Some(endpoint) = instance.metrics.as_ref().filter(|_| instance.kind != EngineKind::None) {
            let bearer = instance.bearer.as_ref();
            match scrape(&*world.connector, endpoint, bearer, instance.kind, HttpLimits::default()).await {
                Ok(scraped) => {
                    why = PoolSource::NotTold;
                    page = scraped.normalised.pool;
                }
                Err(e) => why = PoolSource::Unreadable { why: e.to_string() },
            }
        }
        let on_page = page.as_ref().is_some_and(|pool| pool.size_tokens.is_some());
        let pool = environment::pool(world, &instance.name, page).await;
        let tokens = pool.as_ref().and_then(|p| p.size_tokens);
        let source = match pool.filter(|_| tokens.is_some()) {
            Some(pool) if on_page => PoolSource::Page { series: pool.source },
            Some(_) => PoolSource::Log,
            None => why,
        };
        all.push(InstancePool { name: instance.name.clone(), tokens, source });
    }
    all
}

/// Tokens of all pools together; empty where one of them is not known.
#[must_use]
pub fn total_tokens(pools: &[InstancePool]) -> Option<u64> {
    if pools.is_empty() { None } else { pools.iter().map(|p| p.tokens).sum() }
}

/// What a tape is expected to take of the pools at these loads: theory of its call lengths, scaled by what TC-02 of
/// the same run measured of theory on Tape-A, where it did.
///
/// # Errors
/// Figures of `[sizing]` that cannot be used, a tape that is not there.
pub async fn occupation(
    world: &World,
    dir: &RunDir,
    role: Role,
    loads: &[u32],
) -> Result<Vec<Occupation>, CaseError> {
    let theory = stream_tokens(world, role)?;
    let measured = prior_results::read::<FootprintAnswer>(dir)?.and_then(|a| a.measured_over_theory());
    let (stream_tokens, source) = match measured {
        Some(ratio) => (theory * ratio, OccupationSource::Measured { ratio }),
        None => (theory, OccupationSource::Theory { session: world.config.sizing.session.clone() }),
    };
    let total = total_tokens(&pools(world).await);
    #[expect(clippy::cast_precision_loss, reason = "tokens of a few pools are far below 2^53")]
    let share = |streams: u32| total.map(|t| f64::from(streams) * stream_tokens / t as f64);
    let expected = |&streams: &u32| {
        let source = source.clone();
        Occupation { streams, stream_tokens, share: share(streams), source }
    };
    Ok(loads.iter().map(expected).collect())
}

/// Tokens that a stream holds on average while it plays a tape, by theory.
fn stream_tokens(world: &World, role: Role) -> Result<f64, CaseError> {
    let loaded_tape = world.loaded_tape(role)?;
    let lengths: Vec<f64> = loaded_tape.prepared.calls().iter().map(|c| c.audio().as_secs_f64()).collect();
    let session = world.config.sizing.session().map_err(of_sizing)?;
    // Bytes of a token cancel: one byte each gives tokens.
    Ok(kv::tape(&session, 1, &lengths).map_err(of_sizing)?.mean_bytes)
}

pub(crate) fn of_sizing(error: SizingError) -> CaseError {
    ConfigError::value(key!(sizing), error.text()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(tokens: Option<u64>) -> InstancePool {
        InstancePool { name: "a".into(), tokens, source: PoolSource::Log }
    }

    #[test]
    fn one_unknown_pool_leaves_the_sum_unknown() {
        assert_eq!(total_tokens(&[pool(Some(5)), pool(Some(7))]), Some(12));
        assert_eq!(total_tokens(&[pool(Some(5)), pool(None)]), None);
        assert_eq!(total_tokens(&[]), None);
    }
}
