//! One HTTP request over a connection of its own, and its response as it arrives.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::{
    Method, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT},
};
use http_body_util::BodyExt;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use crate::{Connector, Endpoint, HttpError, Io, Secret};

/// What is asked of a server: a GET with an empty body, unless told otherwise.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// Where to.
    pub endpoint: &'a Endpoint,
    /// Sent as `Authorization: Bearer`.
    pub bearer: Option<&'a Secret>,
    /// Headers beside the usual, name and value. `Accept` is `*/*` unless one of them says otherwise.
    pub headers: Vec<(String, String)>,
    /// The body, in pieces that are sent one after another and never copied into one.
    pub body: Vec<Bytes>,
    /// Largest response that is read, bytes; no limit by default.
    pub max_bytes: usize,
}

impl<'a> Request<'a> {
    /// A GET.
    #[must_use]
    pub const fn get(endpoint: &'a Endpoint) -> Self {
        Self {
            method: Method::GET,
            endpoint,
            bearer: None,
            headers: Vec::new(),
            body: Vec::new(),
            max_bytes: usize::MAX,
        }
    }

    /// A POST of a body in pieces.
    #[must_use]
    pub fn post(endpoint: &'a Endpoint, body: Vec<Bytes>) -> Self {
        Self { method: Method::POST, body, ..Self::get(endpoint) }
    }

    /// Method and address, for messages.
    #[must_use]
    pub fn asked(&self) -> String {
        format!("{} {}", self.method, self.endpoint)
    }

    /// Connects, sends, and returns when the head of the response has come. Has no time-out of its own. Dropping the
    /// future or the response closes the connection.
    ///
    /// # Errors
    /// When there is no connection, the request cannot be made, or what answers is no HTTP server. A status of 404 or
    /// 500 is a response.
    pub async fn send(self, connector: &dyn Connector) -> Result<ResponseStream, HttpError> {
        let request = self.prepare()?;
        let io = connector.connect(self.endpoint).await?;
        request.exchange(io).await
    }

    /// As [`send`](Self::send), over a connection that is already there.
    ///
    /// # Errors
    /// When the request cannot be made, or what answers is no HTTP server.
    pub async fn send_over(self, io: Io) -> Result<ResponseStream, HttpError> {
        self.prepare()?.exchange(io).await
    }

    fn prepare(&self) -> Result<Prepared, HttpError> {
        let cannot = |why: String| HttpError::Request { asked: self.asked(), why };
        let left: VecDeque<Bytes> = self.body.iter().filter(|piece| !piece.is_empty()).cloned().collect();
        let bytes = left.iter().map(|piece| piece.len() as u64).sum();
        let mut request = http::Request::builder()
            .method(&self.method)
            .uri(self.endpoint.path_and_query())
            .header(HOST, self.endpoint.authority())
            .header(USER_AGENT, concat!("tapedeck/", env!("CARGO_PKG_VERSION")));
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(ACCEPT.as_str())) {
            request = request.header(ACCEPT, "*/*");
        }
        if self.method != Method::GET {
            request = request.header(CONTENT_LENGTH, bytes);
        }
        request = request.header(CONNECTION, "close");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(secret) = self.bearer {
            let value = secret
                .bearer()
                .ok_or_else(|| cannot("the token holds characters no header can carry".into()))?;
            request = request.header(AUTHORIZATION, value);
        }
        let sent = Arc::new(OnceLock::new());
        let body = Pieces { left, bytes, sent: Arc::clone(&sent) };
        let request = request.body(body).map_err(|e| cannot(e.to_string()))?;
        Ok(Prepared { request, sent, asked: self.asked(), max_bytes: self.max_bytes })
    }
}

/// A request that can be sent.
struct Prepared {
    request: http::Request<Pieces>,
    sent: Arc<OnceLock<Instant>>,
    asked: String,
    max_bytes: usize,
}

impl Prepared {
    async fn exchange(self, io: Io) -> Result<ResponseStream, HttpError> {
        let Self { request, sent, asked, max_bytes } = self;
        let broken = |e: hyper::Error| HttpError::Broken { asked: asked.clone(), why: e.to_string() };
        let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(broken)?;
        let drive = Box::pin(async move { drop(connection.await) });
        let mut connection = Connection { drive, over: false };
        let response = connection.drive_until(sender.send_request(request)).await.map_err(broken)?;
        let status = response.status();
        let content_type =
            response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let body = response.into_body();
        Ok(ResponseStream { status, content_type, asked, body, connection, sent, max_bytes, read_bytes: 0 })
    }
}

/// What drives the socket beside the exchange: no task is left behind whatever happens.
struct Connection {
    drive: Pin<Box<dyn Future<Output = ()> + Send>>,
    over: bool,
}

impl Connection {
    /// Waits for something that needs the socket to be driven.
    async fn drive_until<F: Future>(&mut self, wanted: F) -> F::Output {
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
    sent: Arc<OnceLock<Instant>>,
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
            self.bytes = self.bytes.saturating_sub(piece.len() as u64);
        }
        if self.left.is_empty() {
            self.sent.get_or_init(Instant::now);
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

/// A response whose head has come and whose body is read as it arrives.
pub struct ResponseStream {
    /// The HTTP status.
    pub status: StatusCode,
    /// The `Content-Type` header, where there is a readable one.
    pub content_type: Option<String>,
    asked: String,
    body: Incoming,
    connection: Connection,
    sent: Arc<OnceLock<Instant>>,
    max_bytes: usize,
    read_bytes: usize,
}

impl fmt::Debug for ResponseStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseStream")
            .field("status", &self.status)
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

impl ResponseStream {
    /// The next piece of the body, as the network cut it; nothing when the body is complete.
    ///
    /// # Errors
    /// When the response breaks off, or is larger than the request's `max_bytes`.
    pub async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let Some(frame) = self.connection.drive_until(self.body.frame()).await else { return Ok(None) };
            let frame =
                frame.map_err(|e| HttpError::Broken { asked: self.asked.clone(), why: e.to_string() })?;
            let Ok(data) = frame.into_data() else { continue };
            self.read_bytes += data.len();
            if self.read_bytes > self.max_bytes {
                return Err(HttpError::TooLarge { asked: self.asked.clone(), max_bytes: self.max_bytes });
            }
            return Ok(Some(data));
        }
    }

    /// The rest of the body in one piece.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn rest(&mut self) -> Result<Bytes, HttpError> {
        let mut all = BytesMut::new();
        while let Some(piece) = self.next().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// When the last piece of the request's body was handed to the connection: a little before the socket took it.
    #[must_use]
    pub fn body_sent(&self) -> Option<Instant> {
        self.sent.get().copied()
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

    fn upload(endpoint: &Endpoint) -> Request<'_> {
        let body = vec![Bytes::from_static(b"one"), Bytes::new(), Bytes::from_static(b" two")];
        Request { headers: vec![("content-type".into(), "text/x".into())], ..Request::post(endpoint, body) }
    }

    #[tokio::test(start_paused = true)]
    async fn the_response_is_read_as_it_arrives() {
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
            let mut answer = Request { bearer: Some(&secret), ..upload(&endpoint) }
                .send_over(Io::Pipe(ours))
                .await
                .unwrap();
            assert_eq!(answer.status.as_u16(), 200);
            assert_eq!(answer.content_type.as_deref(), Some("text/event-stream"));
            assert_eq!(answer.body_sent(), Some(started));
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
        let error = upload(&endpoint).send_over(Io::Pipe(ours)).await.unwrap_err();
        assert!(error.to_string().contains("http://asr/"), "{error}");

        let (ours, mut theirs) = duplex(1_024);
        let server = async move {
            request(&mut theirs, 7).await;
            theirs.write_all(b"HTTP/1.1 500 Oh\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
        };
        let (answer, ()) = tokio::join!(upload(&endpoint).send_over(Io::Pipe(ours)), server);
        let mut answer = answer.unwrap();
        assert_eq!(answer.next().await.unwrap().as_deref(), Some(&b"half"[..]));
        answer.next().await.unwrap_err();

        let (ours, _theirs) = duplex(1_024);
        let bad = Request {
            headers: vec![("no header".into(), String::new())],
            ..Request::post(&endpoint, Vec::new())
        };
        assert!(matches!(bad.send_over(Io::Pipe(ours)).await, Err(HttpError::Request { .. })));
    }
}
