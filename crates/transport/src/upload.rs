//! One HTTP upload: a body in pieces, an answer that is read as it comes.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{
    Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT},
};
use http_body_util::BodyExt;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::time::Instant;

use crate::{Endpoint, Io, Secret};

/// Why an upload got no answer, or not all of it.
#[derive(Debug, Error)]
pub enum UploadError {
    /// The endpoint, a header or the bearer token cannot be put into a request.
    #[error("POST {url} cannot be asked: {why}")]
    Request {
        /// What was to be asked.
        url: String,
        /// Why not.
        why: String,
    },
    /// The answer is not HTTP, or it broke off.
    #[error("POST {url} failed: {why}; does this port speak HTTP?")]
    Broken {
        /// What was asked.
        url: String,
        /// What the HTTP library says.
        why: String,
    },
}

impl UploadError {
    /// What went wrong, without the address.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::Request { why, .. } | Self::Broken { why, .. } => why,
        }
    }
}

/// What to upload.
#[derive(Debug, Clone, Default)]
pub struct Upload {
    /// Headers beside the usual, name and value.
    pub headers: Vec<(String, String)>,
    /// The body, in pieces that are sent one after another and never copied into one.
    pub body: Vec<Bytes>,
}

/// The answer to an upload, as far as it has come.
pub struct Answer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The `Content-Type` header, where there is a readable one.
    pub content_type: Option<String>,
    url: String,
    body: Incoming,
    connection: Connection,
    taken: Arc<OnceLock<Instant>>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).field("url", &self.url).finish_non_exhaustive()
    }
}

/// What drives the socket beside the exchange: no task is left behind whatever happens.
struct Connection {
    drive: Pin<Box<dyn Future<Output = ()> + Send>>,
    over: bool,
}

impl Connection {
    /// Waits for something that needs the socket to be driven.
    async fn beside<F: Future>(&mut self, wanted: F) -> F::Output {
        let mut wanted = std::pin::pin!(wanted);
        loop {
            tokio::select! {
                biased;
                got = &mut wanted => return got,
                // Its error, if any, reaches whoever waits as well.
                () = &mut self.drive, if !self.over => self.over = true,
            }
        }
    }
}

/// Body pieces, and the moment at which the last of them was taken.
#[derive(Debug)]
struct Pieces {
    left: VecDeque<Bytes>,
    bytes: u64,
    taken: Arc<OnceLock<Instant>>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.left.pop_front();
        if let Some(piece) = &piece {
            self.bytes = self.bytes.saturating_sub(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        }
        if self.left.is_empty() {
            self.taken.get_or_init(Instant::now);
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes)
    }
}

/// Posts over a connection that is already there, and returns when the head of the answer has come. Has no
/// time-out of its own.
///
/// # Errors
/// When the request cannot be made, or what answers is no HTTP server. A status of 404 or 500 is an answer.
pub async fn http_upload(
    io: Io,
    endpoint: &Endpoint,
    bearer: Option<&Secret>,
    upload: Upload,
) -> Result<Answer, UploadError> {
    let url = endpoint.to_string();
    let cannot = |why: String| UploadError::Request { url: endpoint.to_string(), why };
    let broken = |e: hyper::Error| UploadError::Broken { url: endpoint.to_string(), why: e.to_string() };

    let left: VecDeque<Bytes> = upload.body.into_iter().filter(|piece| !piece.is_empty()).collect();
    let bytes = left.iter().map(Bytes::len).sum::<usize>();
    let mut request = Request::post(endpoint.path_and_query())
        .header(HOST, endpoint.authority())
        .header(USER_AGENT, concat!("tapedeck/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        .header(CONTENT_LENGTH, bytes)
        .header(CONNECTION, "close");
    for (name, value) in &upload.headers {
        request = request.header(name, value);
    }
    if let Some(secret) = bearer {
        let value =
            secret.bearer().ok_or_else(|| cannot("the token holds characters no header can carry".into()))?;
        request = request.header(AUTHORIZATION, value);
    }
    let taken = Arc::new(OnceLock::new());
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let body = Pieces { left, bytes, taken: Arc::clone(&taken) };
    let request = request.body(body).map_err(|e| cannot(e.to_string()))?;

    let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(broken)?;
    let drive = Box::pin(async move { drop(connection.await) });
    let mut connection = Connection { drive, over: false };
    let response = connection.beside(sender.send_request(request)).await.map_err(broken)?;
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let status = response.status();
    Ok(Answer { status, content_type, url, body: response.into_body(), connection, taken })
}

impl Answer {
    /// The next piece of the answer's body; nothing when it is complete.
    ///
    /// # Errors
    /// When the answer breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, UploadError> {
        loop {
            match self.connection.beside(self.body.frame()).await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(e)) => {
                    return Err(UploadError::Broken { url: self.url.clone(), why: e.to_string() });
                }
            }
        }
    }

    /// When the last piece of our body had been handed to the connection: a little before the socket took it.
    #[must_use]
    pub fn body_taken(&self) -> Option<Instant> {
        self.taken.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    /// Reads a whole request of that many body bytes.
    async fn request(io: &mut DuplexStream, body: usize) -> String {
        let mut all = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&all).into_owned();
            if text.split_once("\r\n\r\n").is_some_and(|(_, rest)| rest.len() == body) {
                return text;
            }
            let mut piece = [0; 1_024];
            let n = io.read(&mut piece).await.unwrap();
            assert!(n > 0, "{text}");
            all.extend_from_slice(&piece[..n]);
        }
    }

    fn upload() -> Upload {
        Upload {
            headers: vec![("content-type".into(), "text/x".into())],
            body: vec![Bytes::from_static(b"one"), Bytes::new(), Bytes::from_static(b" two")],
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_answer_is_read_as_it_comes() {
        let (ours, mut theirs) = duplex(64);
        let endpoint: Endpoint = "http://asr:8000/v1/x?y=1".parse().unwrap();
        let server = async move {
            let seen = request(&mut theirs, 7).await;
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            theirs.write_all(head.as_bytes()).await.unwrap();
            theirs.write_all(b"3\r\nabc\r\n").await.unwrap();
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            theirs.write_all(b"2\r\nde\r\n0\r\n\r\n").await.unwrap();
            seen
        };
        let client = async {
            let started = Instant::now();
            let secret = Secret::new("tok");
            let mut answer = http_upload(Io::Pipe(ours), &endpoint, Some(&secret), upload()).await.unwrap();
            assert_eq!(answer.status.as_u16(), 200);
            assert_eq!(answer.content_type.as_deref(), Some("text/event-stream"));
            assert_eq!(answer.body_taken(), Some(started));
            assert_eq!(answer.next().await.unwrap().as_deref(), Some(&b"abc"[..]));
            assert_eq!(started.elapsed().as_secs(), 0);
            assert_eq!(answer.next().await.unwrap().as_deref(), Some(&b"de"[..]));
            assert_eq!(started.elapsed().as_secs(), 2);
            assert_eq!(answer.next().await.unwrap(), None);
        };
        let (seen, ()) = tokio::join!(server, client);
        let (head, body) = seen.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /v1/x?y=1 HTTP/1.1\r\nhost: asr:8000\r\n"), "{head}");
        for line in ["content-length: 7", "content-type: text/x", "authorization: Bearer tok"] {
            assert!(head.contains(line), "{head}");
        }
        assert_eq!(body, "one two");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_http_or_breaks_off_says_so() {
        let endpoint: Endpoint = "http://asr/".parse().unwrap();
        let (ours, mut theirs) = duplex(1_024);
        theirs.write_all(b"220 mail.example.org\r\n").await.unwrap();
        let error = http_upload(Io::Pipe(ours), &endpoint, None, upload()).await.unwrap_err();
        assert!(error.to_string().contains("http://asr/"), "{error}");

        let (ours, mut theirs) = duplex(1_024);
        let server = async move {
            request(&mut theirs, 7).await;
            theirs.write_all(b"HTTP/1.1 500 Oh\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
        };
        let (answer, ()) = tokio::join!(http_upload(Io::Pipe(ours), &endpoint, None, upload()), server);
        let mut answer = answer.unwrap();
        assert_eq!(answer.next().await.unwrap().as_deref(), Some(&b"half"[..]));
        answer.next().await.unwrap_err();

        let (ours, _theirs) = duplex(1_024);
        let bad = Upload { headers: vec![("no header".into(), String::new())], body: Vec::new() };
        assert!(matches!(
            http_upload(Io::Pipe(ours), &endpoint, None, bad).await,
            Err(UploadError::Request { .. })
        ));
    }
}
