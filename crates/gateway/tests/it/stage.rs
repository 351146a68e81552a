//! Scripted engines behind a connector, and a caller.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tapedeck_gateway::{Gateway, Options, SessionLog, Upstream};
use tapedeck_transport::{BoxFuture, ConnectError, ConnectErrorKind, Connector, Endpoint, Io};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};

/// What a scripted `/v1/realtime` does with one session.
type Script = Arc<dyn Fn(Engine) -> BoxFuture<'static, ()> + Send + Sync>;
/// What a scripted `/v1/chat/completions` answers to the n-th request: after how long, status, body.
type Replies = Arc<dyn Fn(usize, &Value) -> (Duration, u16, String) + Send + Sync>;

/// Everything that stands behind the gateway.
pub(crate) struct Stage {
    script: Option<Script>,
    replies: Option<Replies>,
    pub(crate) requests: Mutex<Vec<Value>>,
    /// Requests whose connection was closed before the answer.
    pub(crate) cancelled: AtomicU32,
    /// Connections to each host, `/health` and `/v1/models` apart.
    pub(crate) reached: Mutex<BTreeMap<String, u32>>,
    /// Hosts that refuse connections.
    pub(crate) down: Mutex<Vec<String>>,
    pub(crate) max_model_len: u32,
    pub(crate) logs: Mutex<Vec<SessionLog>>,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stage")
    }
}

impl Stage {
    fn empty() -> Self {
        Self {
            script: None,
            replies: None,
            requests: Mutex::default(),
            cancelled: AtomicU32::new(0),
            reached: Mutex::default(),
            down: Mutex::default(),
            max_model_len: 65_536,
            logs: Mutex::default(),
        }
    }

    pub(crate) fn realtime<F>(script: impl Fn(Engine) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let script: Script = Arc::new(move |engine| Box::pin(script(engine)));
        Self { script: Some(script), ..Self::empty() }
    }

    pub(crate) fn chat(
        replies: impl Fn(usize, &Value) -> (Duration, u16, String) + Send + Sync + 'static,
    ) -> Self {
        Self { replies: Some(Arc::new(replies)), ..Self::empty() }
    }

    /// A gateway in front of it with one upstream, `inst1`, or more.
    pub(crate) fn gateway(self: &Arc<Self>, n: u32, change: impl FnOnce(&mut Options)) -> Gateway {
        let upstreams = (1..=n)
            .map(|n| Upstream::new(format!("inst{n}"), format!("http://inst{n}:9000").parse().unwrap()));
        let mut options = Options::new(upstreams.collect());
        change(&mut options);
        let logs = Arc::clone(self);
        let log = move |log: &SessionLog| logs.logs.lock().unwrap().push(log.clone());
        Gateway::new(options, Arc::new(Shared(Arc::clone(self))), log).unwrap()
    }

    pub(crate) fn log(&self) -> SessionLog {
        self.logs.lock().unwrap().last().unwrap().clone()
    }

    async fn play(self: Arc<Self>, path: String, mut io: DuplexStream) {
        match path.as_str() {
            "/health" => answer(&mut io, Duration::ZERO, 200, "").await,
            "/v1/models" => {
                let list = json!({"data": [{"id": "toy", "max_model_len": self.max_model_len}]});
                answer(&mut io, Duration::ZERO, 200, &list.to_string()).await;
            }
            "/v1/realtime" => match &self.script {
                Some(script) => script(Engine(accept_async(io).await.unwrap())).await,
                None => answer(&mut io, Duration::ZERO, 403, "").await,
            },
            _ => {
                let Some(body) = request(&mut io).await else { return };
                let body: Value = serde_json::from_slice(&body).unwrap();
                let n = {
                    let mut requests = self.requests.lock().unwrap();
                    requests.push(body.clone());
                    requests.len()
                };
                let (after, status, body) = self.replies.as_ref().unwrap()(n, &body);
                let gone = async {
                    let mut byte = [0];
                    while io.read(&mut byte).await.is_ok_and(|n| n > 0) {}
                };
                tokio::select! {
                    biased;
                    () = gone => { self.cancelled.fetch_add(1, Ordering::Relaxed); }
                    () = tokio::time::sleep(after) => respond(&mut io, status, &body).await,
                }
            }
        }
    }
}

/// The connector's own type: traits want one that can be named.
#[derive(Debug)]
struct Shared(Arc<Stage>);

impl Connector for Shared {
    fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
        Box::pin(async move {
            let host = endpoint.host().to_owned();
            if self.0.down.lock().unwrap().contains(&host) {
                return Err(ConnectError::new(endpoint, ConnectErrorKind::Refused, "down"));
            }
            if !matches!(endpoint.path_and_query(), "/health" | "/v1/models") {
                *self.0.reached.lock().unwrap().entry(host).or_default() += 1;
            }
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            tokio::spawn(Arc::clone(&self.0).play(endpoint.path_and_query().to_owned(), theirs));
            Ok(Io::Pipe(ours))
        })
    }
}

/// Head and body of one request.
async fn request(io: &mut DuplexStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
    let mut body = vec![0; length.parse().unwrap()];
    io.read_exact(&mut body).await.ok()?;
    Some(body)
}

async fn respond(io: &mut DuplexStream, status: u16, body: &str) {
    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len());
    io.write_all(head.as_bytes()).await.unwrap();
    io.write_all(body.as_bytes()).await.unwrap();
}

async fn answer(io: &mut DuplexStream, after: Duration, status: u16, body: &str) {
    if request(io).await.is_some() {
        tokio::time::sleep(after).await;
        respond(io, status, body).await;
    }
}

/// A chat completion that says `text`.
pub(crate) fn completion(text: &str) -> String {
    json!({"choices": [{"message": {"role": "assistant", "content": text}}]}).to_string()
}

/// The engine's end of a realtime session.
pub(crate) struct Engine(WebSocketStream<DuplexStream>);

impl Engine {
    pub(crate) async fn send(&mut self, event: Value) {
        let _ = self.0.send(Message::Text(event.to_string().into())).await;
    }

    pub(crate) async fn raw(&mut self, message: Message) {
        let _ = self.0.send(message).await;
    }

    /// The next event of the gateway; none when it is gone.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    pub(crate) async fn greet(&mut self) {
        self.send(json!({"type": "session.created", "id": "s", "created": 1})).await;
    }

    pub(crate) async fn delta(&mut self, delta: &str) {
        self.send(json!({"type": "transcription.delta", "delta": delta})).await;
    }

    /// Waits until so much audio has come in all, milliseconds; the total so far is kept by the caller.
    pub(crate) async fn hear(&mut self, total_ms: &mut usize, until_ms: usize) {
        while *total_ms < until_ms {
            let Some(event) = self.next().await else { return };
            if let Some(audio) = event["audio"].as_str() {
                *total_ms += audio.len() / 4 * 3 / 32;
            }
        }
    }

    /// Waits for the final commit.
    pub(crate) async fn until_final(&mut self) -> bool {
        while let Some(event) = self.next().await {
            if event["final"] == true {
                return true;
            }
        }
        false
    }
}

/// A caller on a pipe.
pub(crate) struct Caller(WebSocketStream<DuplexStream>);

impl Caller {
    /// Calls; a refusal gives status and words.
    pub(crate) async fn call(gateway: &Gateway) -> Result<Self, (u16, String)> {
        let (ours, theirs) = tokio::io::duplex(16 * 1024);
        tokio::spawn(gateway.serve(theirs));
        match client_async("ws://gateway/asr", ours).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => {
                let body = response.body().clone().unwrap_or_default();
                Err((response.status().as_u16(), String::from_utf8(body).unwrap()))
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Speaks in chunks of 100 ms, on time.
    pub(crate) async fn speak(&mut self, ms: usize) {
        for _ in 0..ms / 100 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if self.raw(Message::Binary(vec![1; 3_200].into())).await.is_err() {
                return;
            }
        }
    }

    pub(crate) async fn raw(&mut self, message: Message) -> Result<(), Error> {
        self.0.send(message).await
    }

    pub(crate) async fn end(&mut self) {
        self.raw(Message::Text(r#"{"type":"end"}"#.into())).await.unwrap();
    }

    /// Everything up to the close code.
    pub(crate) async fn rest(mut self) -> (Vec<Value>, Option<u16>) {
        let mut all = Vec::new();
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => all.push(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => return (all, frame.map(|f| f.code.into())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return (all, None),
            }
        }
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Whatever a GET answers.
pub(crate) async fn get(gateway: &Gateway, path: &str) -> String {
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(gateway.serve(theirs));
    let request = format!("GET {path} HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n");
    ours.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    ours.read_to_string(&mut answer).await.unwrap();
    answer
}
