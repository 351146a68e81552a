//! One bounded POST against scripted servers, in memory under a paused clock.

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, Mutex},
        time::Duration,
    };

    use bytes::Bytes;
    use tapedeck_transport::{BoxFuture, ConnectError, Connector, Endpoint, HttpError, Io, Request, Secret};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::{Instant, sleep, timeout},
    };

    /// Answers one request with these pieces, a second apart.
    #[derive(Debug, Default)]
    struct Server {
        pieces: Vec<&'static str>,
        request: Arc<Mutex<String>>,
    }

    impl Connector for Server {
        fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
            let (ours, mut theirs) = duplex(1 << 16);
            let (pieces, request) = (self.pieces.clone(), Arc::clone(&self.request));
            tokio::spawn(async move {
                let mut head = vec![0; 8_192];
                let n = theirs.read(&mut head).await.unwrap();
                *request.lock().unwrap() = String::from_utf8_lossy(&head[..n]).into_owned();
                for piece in pieces {
                    if theirs.write_all(piece.as_bytes()).await.is_err() {
                        return;
                    }
                    sleep(Duration::from_secs(1)).await;
                }
            });
            Box::pin(async move { Ok(Io::Pipe(ours)) })
        }
    }

    /// What was received: seconds and text; the head as its status.
    async fn post(server: &Server, enough: &str) -> (Vec<(u64, String)>, Result<(), HttpError>) {
        let endpoint: Endpoint = "http://h:8000/v1/chat/completions".parse().unwrap();
        let (mut heard, start) = (Vec::new(), Instant::now());
        let secret = Secret::new("tok");
        let request = Request {
            bearer: Some(&secret),
            headers: vec![("content-type".into(), "application/json".into())],
            max_bytes: 20,
            ..Request::post(&endpoint, vec![Bytes::from_static(b"{}")])
        };
        let exchange = async {
            let mut response = request.send(server).await?;
            heard.push((
                start.elapsed().as_secs(),
                format!("{} {:?}", response.status, response.content_type),
            ));
            while let Some(piece) = response.next().await? {
                let text = String::from_utf8(piece.to_vec()).unwrap();
                let stop = text == enough;
                heard.push((start.elapsed().as_secs(), text));
                if stop {
                    break;
                }
            }
            Ok(())
        };
        let limit = Duration::from_secs(10);
        let done = timeout(limit, exchange)
            .await
            .unwrap_or(Err(HttpError::TimedOut { asked: "POST".into(), limit }));
        (heard, done)
    }

    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

    #[tokio::test(start_paused = true)]
    async fn each_piece_is_heard_when_it_comes() {
        let server = Server { pieces: vec![HEAD, "a", "b"], ..Server::default() };
        let (heard, done) = post(&server, "").await;
        done.unwrap();
        let texts: Vec<(u64, &str)> = heard.iter().map(|(at, text)| (*at, text.as_str())).collect();
        assert_eq!(texts, [(0, "200 OK Some(\"text/event-stream\")"), (1, "a"), (2, "b")]);
        let asked = server.request.lock().unwrap().to_lowercase();
        assert!(asked.starts_with("post /v1/chat/completions http/1.1\r\n"), "{asked}");
        for line in ["content-type: application/json", "authorization: bearer tok", "content-length: 2"] {
            assert!(asked.contains(line), "{asked}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_enough_was_heard_or_too_much_or_too_late() {
        let start = Instant::now();
        let server = Server { pieces: vec![HEAD, "a", "b", "c"], ..Server::default() };
        let (heard, done) = post(&server, "b").await;
        done.unwrap();
        assert_eq!((heard.len(), start.elapsed().as_secs()), (3, 2));

        let server = Server { pieces: vec![HEAD, "0123456789", "0123456789", "!"], ..Server::default() };
        let (heard, done) = post(&server, "").await;
        assert_eq!(heard.len(), 3);
        let error = done.unwrap_err();
        assert!(matches!(error, HttpError::TooLarge { max_bytes: 20, .. }));
        assert!(error.to_string().starts_with("POST http://h:8000/v1/chat"), "{error}");

        let mut pieces = vec![HEAD];
        pieces.extend(["."; 15]);
        let (heard, done) = post(&Server { pieces, ..Server::default() }, "").await;
        assert!(matches!(done, Err(HttpError::TimedOut { .. })) && heard.len() >= 9);
    }
}
