//! One reading of one page over HTTP.

use tapedeck_transport::{Connector, Endpoint, HttpError, HttpLimits, Secret, http_get};
use thiserror::Error;
use tokio::time::Instant;

use crate::normalise::{Normalised, normalise};
use crate::parse::{Page, parse, why_not_metrics};
use tapedeck_record::EngineKind;

/// Why a page could not be read. A gap, never a zero.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScrapeError {
    /// No answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// An answer, but not the page.
    #[error("{url} answers {status}{said}; is this the metrics page, and does it want a token?")]
    Status {
        /// What was asked.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says about that, in brackets; empty where it says nothing that a person would want to read.
        said: String,
    },
    /// A page, but not of metrics: a proxy's error page with status 200, for example.
    #[error("{url} is not a metrics page ({why}); does a proxy stand in between?")]
    NotMetrics {
        /// What was asked.
        url: String,
        /// What it is instead.
        why: String,
    },
    /// A metrics page of something else.
    #[error("{url} has {series} series and none that a {kind} engine has; is `kind` of the instance right?")]
    WrongKind {
        /// What was asked.
        url: String,
        /// How many series it has.
        series: usize,
        /// What was expected.
        kind: EngineKind,
    },
}

/// A page and when it was read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Fetched {
    /// The page.
    pub page: Page,
    /// When it was asked for.
    pub from: Instant,
    /// When the answer was there.
    pub to: Instant,
}

impl Fetched {
    /// The middle of the reading: the best guess of when the figures were true.
    #[must_use]
    pub fn middle(&self) -> Instant {
        self.from + self.to.saturating_duration_since(self.from) / 2
    }
}

/// A page, understood, and when it was read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Scraped {
    /// What it says.
    pub normalised: Normalised,
    /// Middle of the reading.
    pub at: Instant,
}

/// Fetches a page of exposition text.
///
/// # Errors
/// When there is no answer within the limits, or the answer is no metrics page.
pub async fn fetch_page(
    connector: &dyn Connector,
    endpoint: &Endpoint,
    bearer: Option<&Secret>,
    limits: HttpLimits,
) -> Result<Fetched, ScrapeError> {
    let from = Instant::now();
    let response = http_get(connector, endpoint, bearer, limits).await?;
    let to = Instant::now();
    if response.status.as_u16() != 200 {
        let (url, status) = (endpoint.to_string(), response.status.as_u16());
        return Err(ScrapeError::Status { url, status, said: said(&response.body) });
    }
    let page = parse(&String::from_utf8_lossy(&response.body));
    let html = response.content_type.is_some_and(|kind| kind.trim_start().starts_with("text/html"));
    if let Some(why) =
        why_not_metrics(&page).or_else(|| html.then(|| "it says text/html of itself".to_owned()))
    {
        return Err(ScrapeError::NotMetrics { url: endpoint.to_string(), why });
    }
    Ok(Fetched { page, from, to })
}

/// The first line of an answer, if a person may have written it for a person.
fn said(body: &[u8]) -> String {
    const LONGEST: usize = 200;
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let words = !line.is_empty() && line.len() <= LONGEST && !line.starts_with(['<', '{', '[']);
    if words { format!(" ({line})") } else { String::new() }
}

/// Reads and understands an instance's page.
///
/// # Errors
/// When there is no answer within the limits, or the answer is no metrics page of this kind of engine.
pub async fn scrape(
    connector: &dyn Connector,
    endpoint: &Endpoint,
    bearer: Option<&Secret>,
    kind: EngineKind,
    limits: HttpLimits,
) -> Result<Scraped, ScrapeError> {
    let fetched = fetch_page(connector, endpoint, bearer, limits).await?;
    let normalised = normalise(&fetched.page, kind);
    if kind != EngineKind::None
        && normalised.scrape.values.is_empty()
        && normalised.scrape.histograms.is_empty()
    {
        return Err(ScrapeError::WrongKind {
            url: endpoint.to_string(),
            series: fetched.page.series.len(),
            kind,
        });
    }
    Ok(Scraped { normalised, at: fetched.middle() })
}
