//! One bounded GET against scripted servers, in memory under a paused clock.

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use tapedeck_transport::{
        BoxFuture, ConnectError, ConnectErrorKind, Connector, Endpoint, HttpError, HttpLimits, Io, Response,
        Secret, http_get,
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::{Instant, sleep},
    };

    /// Answers one request with these pieces, a second apart, and then hangs up (or not).
    #[derive(Debug, Default)]
    struct Server {
        pieces: Vec<Vec<u8>>,
        hold: bool,
        request: std::sync::Arc<Mutex<String>>,
    }

    impl Connector for Server {
        fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
            let (ours, mut theirs) = duplex(1 << 16);
            let (pieces, hold) = (self.pieces.clone(), self.hold);
            let request = std::sync::Arc::clone(&self.request);
            tokio::spawn(async move {
                let mut head = vec![0; 8_192];
                let n = theirs.read(&mut head).await.unwrap();
                *request.lock().unwrap() = String::from_utf8_lossy(&head[..n]).into_owned();
                for piece in pieces {
                    if theirs.write_all(&piece).await.is_err() {
                        return;
                    }
                    sleep(Duration::from_secs(1)).await;
                }
                if hold {
                    sleep(Duration::from_secs(3_600)).await;
                }
            });
            Box::pin(async move { Ok(Io::Pipe(ours)) })
        }
    }

    fn server(pieces: &[&str]) -> Server {
        Server { pieces: pieces.iter().map(|p| p.as_bytes().to_vec()).collect(), ..Server::default() }
    }

    async fn get(server: &Server) -> Result<Response, HttpError> {
        let endpoint: Endpoint = "http://inst1:8001/metrics?x=1".parse().unwrap();
        http_get(
            server,
            &endpoint,
            Some(&Secret::new("tok")),
            HttpLimits { max_bytes: 100, ..HttpLimits::default() },
        )
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_whole_answer_whatever_the_status() {
        let s =
            server(&["HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nab", "cde"]);
        let response = get(&s).await.unwrap();
        assert_eq!((response.status.as_u16(), &response.body[..]), (200, &b"abcde"[..]));
        assert_eq!(response.content_type.as_deref(), Some("text/plain"));
        let asked = s.request.lock().unwrap().to_lowercase();
        assert!(asked.starts_with("get /metrics?x=1 http/1.1\r\n"), "{asked}");
        assert!(asked.contains("host: inst1:8001\r\n") && asked.contains("authorization: bearer tok\r\n"));

        let s = server(&["HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"]);
        assert_eq!(get(&s).await.unwrap().status.as_u16(), 503);
        let s = server(&[
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "2\r\nde\r\n0\r\n\r\n",
        ]);
        assert_eq!(&get(&s).await.unwrap().body[..], b"abcde");
        let s = server(&["HTTP/1.0 200 OK\r\n\r\nuntil", " close"]);
        assert_eq!(&get(&s).await.unwrap().body[..], b"until close");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_hangs_and_nothing_fills_the_memory() {
        let slow = Server { hold: true, ..server(&["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab"]) };
        let before = Instant::now();
        assert!(matches!(get(&slow).await, Err(HttpError::TimedOut { .. })));
        assert_eq!(before.elapsed(), Duration::from_secs(5));
        let silent = Server { hold: true, ..Server::default() };
        assert!(matches!(get(&silent).await, Err(HttpError::TimedOut { .. })));

        let body = "x".repeat(101);
        let large = server(&[&format!("HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n{body}")]);
        assert!(matches!(get(&large).await, Err(HttpError::TooLarge { max_bytes: 100, .. })));
        let endless = server(&["HTTP/1.1 200 OK\r\n\r\n", &body, &body]);
        assert!(matches!(get(&endless).await, Err(HttpError::TooLarge { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_answer_says_why() {
        for broken in [
            server(&["220 mail ready\r\n"]),
            server(&["HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\ncut off"]),
            server(&[]),
        ] {
            let error = get(&broken).await.unwrap_err();
            assert!(matches!(&error, HttpError::Broken { .. }), "{error:?}");
            assert!(error.to_string().contains("http://inst1:8001/metrics?x=1"), "{error}");
        }
    }

    #[derive(Debug)]
    struct Refusing;

    impl Connector for Refusing {
        fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
            Box::pin(async move { Err(ConnectError::new(endpoint, ConnectErrorKind::Refused, "refused")) })
        }
    }

    #[tokio::test]
    async fn no_connection_stays_a_connect_error() {
        let endpoint = "http://inst1:8001/health".parse().unwrap();
        let error = http_get(&Refusing, &endpoint, None, HttpLimits::default()).await.unwrap_err();
        assert!(matches!(error, HttpError::Connect(e) if e.kind() == ConnectErrorKind::Refused));
    }
}
