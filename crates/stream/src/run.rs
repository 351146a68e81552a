//! Sending the requests: in a closed loop, or at a rate of their own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use tapedeck_load::arrivals::ArrivalProcess;
use tapedeck_transport::{Connector, Endpoint, HttpError, HttpLimits, Request, Secret};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use crate::chat::{Generation, Prompt, body};
use crate::reply::{Reader, Reply};

/// The server.
#[derive(Debug, Clone)]
pub struct Target {
    /// How to get there.
    pub connector: Arc<dyn Connector>,
    /// Where it is.
    pub endpoint: Endpoint,
    /// The API key, where there is one.
    pub bearer: Option<Secret>,
    /// The model.
    pub model: String,
}

/// When requests go out.
#[derive(Debug, Clone, PartialEq)]
pub enum Pace {
    /// So many at once; the next goes out when one has been answered.
    Closed {
        /// Requests under way.
        concurrency: u32,
    },
    /// When the law says so.
    Open {
        /// The law.
        law: ArrivalProcess,
        /// Its seed.
        seed: u64,
    },
}

/// What is sent.
#[derive(Debug, Clone)]
pub struct Plan {
    /// When.
    pub pace: Pace,
    /// Send one request alone first.
    pub cold_first: bool,
    /// Requests that do not count, before those that do.
    pub warm_up: usize,
    /// The prompts.
    pub prompts: Vec<Prompt>,
    /// Which prompt each request takes: all of them, the cold one and the warm-up included.
    pub order: Vec<usize>,
    /// Put the request's number in front of everything.
    pub unique: bool,
    /// How the answers are to be made.
    pub generation: Generation,
    /// Bounds of one request.
    pub limits: HttpLimits,
}

/// One request, ready to be sent.
struct Prepared {
    n: u32,
    prompt: u32,
    cold: bool,
    counted: bool,
    body: Bytes,
}

impl Plan {
    fn request(&self, site: &Target, n: usize) -> Option<Prepared> {
        let index = *self.order.get(n)?;
        let mut prompt = self.prompts.get(index)?.clone();
        if self.unique {
            prompt.put_in_front(&format!("[{n}] "));
        }
        let cold = self.cold_first && n == 0;
        Some(Prepared {
            n: u32::try_from(n).ok()?,
            prompt: u32::try_from(index).ok()?,
            cold,
            counted: n >= self.warm_up + usize::from(self.cold_first),
            body: body(&site.model, &prompt, &self.generation),
        })
    }
}

/// Sends every request of the plan and hands each reply to `out` when its answer has ended. Returns false where
/// `stop` turned true first: what was under way then is given up and leaves no reply.
pub async fn run(
    plan: Plan,
    site: Target,
    mut stop: watch::Receiver<bool>,
    out: mpsc::UnboundedSender<Reply>,
) -> bool {
    let sending = send(Arc::new(plan), Arc::new(site), out);
    tokio::select! {
        biased;
        Ok(_) = stop.wait_for(|stop| *stop) => false,
        () = sending => true,
    }
}

async fn send(plan: Arc<Plan>, site: Arc<Target>, out: mpsc::UnboundedSender<Reply>) {
    let origin = Instant::now();
    let mut first = 0;
    if plan.cold_first {
        if let Some(request) = plan.request(&site, 0) {
            let _ = out.send(ask(&plan, &site, request, origin, Instant::now()).await);
        }
        first = 1;
    }
    let mut under_way = JoinSet::new();
    match &plan.pace {
        Pace::Closed { concurrency } => {
            let next = Arc::new(AtomicUsize::new(first));
            for _ in 0..*concurrency {
                let (plan, site, next, out) = (plan.clone(), site.clone(), next.clone(), out.clone());
                under_way.spawn(async move {
                    while let Some(request) = plan.request(&site, next.fetch_add(1, Ordering::Relaxed)) {
                        // If nobody listens any more, the run still ends as planned.
                        let _ = out.send(ask(&plan, &site, request, origin, Instant::now()).await);
                    }
                });
            }
        }
        Pace::Open { law, seed } => {
            let start = Instant::now();
            for (n, at) in (first..plan.order.len()).zip(law.moments(*seed)) {
                let Some(request) = plan.request(&site, n) else { break };
                let planned = start + at;
                sleep_until(planned).await;
                let (plan, site, out) = (plan.clone(), site.clone(), out.clone());
                under_way.spawn(async move {
                    let _ = out.send(ask(&plan, &site, request, origin, planned).await);
                });
            }
        }
    }
    while under_way.join_next().await.is_some() {}
}

async fn ask(plan: &Plan, site: &Target, request: Prepared, origin: Instant, planned: Instant) -> Reply {
    let after = |at: Instant, from: Instant| at.saturating_duration_since(from).as_secs_f64();
    let late_ms = after(Instant::now(), planned) * 1e3;
    let Prepared { n, prompt, cold, counted, body } = request;
    let mut reader = Reader::new(n, prompt, cold, after(planned, origin), late_ms);
    let request = Request {
        bearer: site.bearer.as_ref(),
        headers: vec![
            ("content-type".into(), "application/json".into()),
            ("accept".into(), "text/event-stream, application/json".into()),
        ],
        max_bytes: plan.limits.max_bytes,
        ..Request::post(&site.endpoint, vec![body])
    };
    let asked = request.asked();
    let exchange = async {
        let mut response = request.send(&*site.connector).await?;
        reader.on_head(&response, after(Instant::now(), planned));
        while let Some(piece) = response.next().await? {
            if reader.on_body(&piece, after(Instant::now(), planned)).is_break() {
                break;
            }
        }
        Ok(())
    };
    let limit = plan.limits.timeout;
    let ended = timeout(limit, exchange).await.unwrap_or(Err(HttpError::TimedOut { asked, limit }));
    Reply { counted, ..reader.end(ended, after(Instant::now(), planned)) }
}
