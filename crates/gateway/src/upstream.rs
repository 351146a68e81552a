//! The servers behind: which of them are up, how busy they are, which model they hold.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use tapedeck_transport::{Connector, Endpoint, HttpError, HttpLimits, Secret, http_get};

use crate::error::UpstreamError;
use crate::options::Upstream;

/// How long a health check may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// One server and what is known of it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    up: AtomicBool,
    open: AtomicU32,
    served: AtomicU64,
    model: Mutex<Option<Model>>,
}

/// What a server says it holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Model {
    /// Its name in requests.
    pub(crate) id: String,
    /// Most tokens that a session may grow to.
    pub(crate) max_model_len: Option<u32>,
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

impl Server {
    /// A server that counts as up until it proves otherwise.
    pub(crate) fn new(upstream: &Upstream) -> Self {
        Self {
            name: upstream.name.clone(),
            endpoint: upstream.endpoint.clone(),
            up: AtomicBool::new(true),
            open: AtomicU32::new(0),
            served: AtomicU64::new(0),
            model: Mutex::default(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    pub(crate) fn mark(&self, up: bool) {
        self.up.store(up, Ordering::Relaxed);
    }

    /// Sessions it has now.
    pub(crate) fn open(&self) -> u32 {
        self.open.load(Ordering::Relaxed)
    }

    /// Takes one more session; [`leave`](Self::leave) gives it back.
    pub(crate) fn enter(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// How it compares with others: fewest sessions first, among equals the one that has served fewest.
    pub(crate) fn busyness(&self) -> (u32, u64) {
        (self.open(), self.served.load(Ordering::Relaxed))
    }

    /// Asks for `/health`; a server that comes up again is asked for its model anew.
    pub(crate) async fn check(&self, connector: &dyn Connector) {
        let limits = HttpLimits { timeout: CHECK_TIMEOUT, max_bytes: 64 << 10 };
        let answer = http_get(connector, &self.endpoint.with_path("/health"), None, limits).await;
        let up = answer.is_ok_and(|response| response.status == StatusCode::OK);
        if !up {
            *self.model.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        self.mark(up);
    }

    /// The model it holds, asked for once.
    pub(crate) async fn model(
        &self,
        connector: &dyn Connector,
        bearer: Option<&Secret>,
        wanted: Option<&str>,
    ) -> Result<Model, UpstreamError> {
        if let Some(model) = self.model.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(model);
        }
        let limits = HttpLimits { timeout: CHECK_TIMEOUT, max_bytes: 1 << 20 };
        let answer = http_get(connector, &self.endpoint.with_path("/v1/models"), bearer, limits).await;
        if let Err(HttpError::Connect(gone)) = answer {
            return Err(gone.into());
        }
        let listed = answer
            .ok()
            .filter(|response| response.status == StatusCode::OK)
            .and_then(|response| serde_json::from_slice::<Models>(&response.body).ok());
        let model = match (listed, wanted) {
            (Some(models), Some(name)) => models
                .data
                .into_iter()
                .find(|model| model.id == name)
                .unwrap_or_else(|| Model { id: name.to_owned(), max_model_len: None }),
            (Some(models), None) => models.data.into_iter().next().ok_or(UpstreamError::NoModel)?,
            // A name is enough to work with; the list is asked for again by the next session.
            (None, Some(name)) => return Ok(Model { id: name.to_owned(), max_model_len: None }),
            (None, None) => return Err(UpstreamError::NoModel),
        };
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Some(model.clone());
        Ok(model)
    }
}
