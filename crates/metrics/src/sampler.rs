//! The sampling loop: every source once an interval, on the tokio clock.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tapedeck_record::{Sample, SampleBody};
use tapedeck_transport::{BoxFuture, Connector, Endpoint, HttpLimits, Secret};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::ClientProbe;
use crate::gpu::{GpuDevice, GpuSource, distinct};
use crate::normalise::{Missing, Normalised};
use crate::pool::PoolInfo;
use crate::scrape::scrape;
use tapedeck_record::EngineKind;

/// One reading of one source.
#[derive(Debug, Default)]
pub struct Reading {
    /// When what was read was true; the middle of the reading if empty.
    pub at: Option<Instant>,
    /// What was read, under the name of who it is about.
    pub bodies: Vec<(String, SampleBody)>,
    /// What an engine's page said, for the summary.
    pub normalised: Option<Normalised>,
    /// What GPUs said, for the summary.
    pub gpus: Vec<GpuDevice>,
    /// Whether there is no use in asking again.
    pub over: bool,
}

/// Something that can be sampled. It bounds its own waiting; the sampler gives up on it after [`Sampler::timeout_after`].
pub trait Source: Send + Sync + fmt::Debug {
    /// Who it is about; gaps carry this name.
    fn name(&self) -> &str;
    /// Reads it once.
    fn read(&self) -> BoxFuture<'_, Reading>;
}

/// The metrics page of one instance.
#[derive(Debug, Clone)]
pub struct EngineSource {
    /// The instance's name.
    pub name: String,
    /// How to get there.
    pub connector: Arc<dyn Connector>,
    /// The page.
    pub endpoint: Endpoint,
    /// Token, if the page wants one.
    pub bearer: Option<Secret>,
    /// Whose names to expect.
    pub kind: EngineKind,
    /// Bounds of one reading.
    pub limits: HttpLimits,
}

impl Source for EngineSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self) -> BoxFuture<'_, Reading> {
        Box::pin(async move {
            let bearer = self.bearer.as_ref();
            match scrape(&*self.connector, &self.endpoint, bearer, self.kind, self.limits).await {
                Ok(scraped) => Reading {
                    at: Some(scraped.at),
                    bodies: vec![(self.name.clone(), SampleBody::Engine(scraped.normalised.scrape.clone()))],
                    normalised: Some(scraped.normalised),
                    ..Reading::default()
                },
                Err(error) => gap(&self.name, error.to_string()),
            }
        })
    }
}

/// Every GPU that any of several sources tells of, each uuid once.
#[derive(Debug, Clone)]
pub struct GpuWatch {
    /// The sources, the preferred one first.
    pub sources: Vec<Arc<dyn GpuSource>>,
}

impl Source for GpuWatch {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn read(&self) -> BoxFuture<'_, Reading> {
        Box::pin(async move {
            let (mut devices, mut whys, mut over) = (Vec::new(), Vec::new(), true);
            for way in &self.sources {
                match way.read().await {
                    Ok(found) => {
                        devices.extend(found);
                        over = false;
                    }
                    Err(error) => {
                        over &= error.is_final();
                        whys.push(error.to_string());
                    }
                }
            }
            let gpus = distinct(devices);
            let body = |gpu: &GpuDevice| match gpu.why_unreadable() {
                Some(why) => SampleBody::Gap { why: why.to_owned() },
                None => SampleBody::Gpu(gpu.reading.clone()),
            };
            let mut bodies: Vec<_> = gpus.iter().map(|gpu| (gpu.id.clone(), body(gpu))).collect();
            if !whys.is_empty() {
                bodies.push((self.name().to_owned(), SampleBody::Gap { why: whys.join("; ") }));
            }
            Reading { bodies, gpus, over, ..Reading::default() }
        })
    }
}

/// What our own process uses.
#[derive(Debug, Clone)]
pub struct ClientSource {
    /// How that is found out.
    pub probe: Arc<dyn ClientProbe>,
}

impl Source for ClientSource {
    fn name(&self) -> &'static str {
        "client"
    }

    fn read(&self) -> BoxFuture<'_, Reading> {
        Box::pin(async move {
            let used = self.probe.read();
            let body = SampleBody::Client { cpu_share: used.cpu_share, rss_bytes: used.rss_bytes };
            Reading { bodies: vec![(self.name().to_owned(), body)], ..Reading::default() }
        })
    }
}

fn gap(name: &str, why: String) -> Reading {
    Reading { bodies: vec![(name.to_owned(), SampleBody::Gap { why })], ..Reading::default() }
}

/// What was learnt about the sources besides the samples.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Per source.
    pub sources: BTreeMap<String, SourceSummary>,
    /// Every GPU that was seen, as it was seen last.
    pub gpus: BTreeMap<String, GpuDevice>,
}

/// What was learnt about one source.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SourceSummary {
    /// Readings that succeeded.
    pub read: u64,
    /// Readings that failed.
    pub failed: u64,
    /// What no page of this source ever carried, once each.
    pub missing: Vec<Missing>,
    /// The KV pool, as told last.
    pub pool: Option<PoolInfo>,
    /// Most lines of a single page that were not understood.
    pub not_understood: u32,
}

/// Samples a list of sources, each on ticks of its own so that a slow one does not hold up the others.
#[derive(Debug)]
pub struct Sampler {
    /// What `at_s` of a sample counts from.
    pub origin: Instant,
    /// Time between two readings of one source; 1 s by default: KV peaks are shorter than 5 s.
    pub interval: Duration,
    /// After how long a reading is given up and becomes a gap; 5 s by default.
    pub timeout_after: Duration,
    sources: Vec<Arc<dyn Source>>,
}

impl Sampler {
    /// A sampler without sources, on the default interval.
    #[must_use]
    pub fn new(origin: Instant) -> Self {
        Self {
            origin,
            interval: Duration::from_secs(1),
            timeout_after: Duration::from_secs(5),
            sources: Vec::new(),
        }
    }

    /// Adds a source.
    #[must_use]
    pub fn with(mut self, source: impl Source + 'static) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Samples until `stop` turns true or its sender is gone, or nobody takes the samples any more. Ticks are absolute:
    /// they do not drift, and a tick that falls into a reading that still runs is left out.
    pub async fn run(self, stop: watch::Receiver<bool>, out: mpsc::UnboundedSender<Sample>) -> Summary {
        let summary = Mutex::new(Summary::default());
        let start = Instant::now();
        join_all(self.sources.iter().map(|source| {
            let looping = Loop { sampler: &self, source: &**source, out: out.clone(), summary: &summary };
            looping.run(start, stop.clone())
        }))
        .await;
        summary.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Loop<'a> {
    sampler: &'a Sampler,
    source: &'a dyn Source,
    out: mpsc::UnboundedSender<Sample>,
    summary: &'a Mutex<Summary>,
}

impl Loop<'_> {
    async fn run(self, start: Instant, mut stop: watch::Receiver<bool>) {
        let interval = self.sampler.interval.max(Duration::from_millis(1));
        let mut tick = start;
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                () = sleep_until(tick) => {}
            }
            let from = Instant::now();
            let reading = tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                reading = timeout(self.sampler.timeout_after, self.source.read()) => {
                    reading.unwrap_or_else(|_| {
                        gap(self.source.name(), format!("no answer within {:?}", self.sampler.timeout_after))
                    })
                }
            };
            let now = Instant::now();
            let middle = reading.at.unwrap_or(from + now.saturating_duration_since(from) / 2);
            let over = reading.over;
            self.note(&reading);
            let at_s = middle.saturating_duration_since(self.sampler.origin).as_secs_f64();
            for (source, body) in reading.bodies {
                if self.out.send(Sample { at_s, source, body }).is_err() {
                    return;
                }
            }
            if over {
                return;
            }
            while tick <= now {
                tick += interval;
            }
        }
    }

    fn note(&self, reading: &Reading) {
        let mut summary = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        for gpu in &reading.gpus {
            summary.gpus.insert(gpu.id.clone(), gpu.clone());
        }
        let failed = reading.bodies.iter().any(|(_, body)| matches!(body, SampleBody::Gap { .. }));
        let own = summary.sources.entry(self.source.name().to_owned()).or_default();
        if failed {
            own.failed += 1;
        } else {
            own.read += 1;
        }
        let Some(normalised) = &reading.normalised else { return };
        if own.read == 1 {
            own.missing.clone_from(&normalised.missing);
        } else {
            // Some counters show up with the first event they count.
            own.missing.retain(|known| normalised.missing.iter().any(|now| now.what == known.what));
        }
        if normalised.pool.is_some() {
            own.pool.clone_from(&normalised.pool);
        }
        own.not_understood = own.not_understood.max(normalised.not_understood);
    }
}

/// Ends when sampling shall stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone can never say stop, so its going says it.
    let _ = stop.wait_for(|stop| *stop).await;
}
