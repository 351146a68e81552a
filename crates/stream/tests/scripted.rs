//! Answers of every odd kind, from a scripted server in memory under a paused clock.

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    };
    use std::time::Duration;

    use tapedeck_load::arrivals::ArrivalProcess;
    use tapedeck_stream::{Generation, Outcome, Pace, Plan, Prompt, Reply, Target, prompts, run};
    use tapedeck_transport::{
        BoxFuture, ConnectError, ConnectErrorKind, Connector, Endpoint, HttpLimits, Io, Secret,
    };
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::sync::{mpsc, watch};
    use tokio::time::sleep;

    /// What is written, and how many milliseconds after the piece before.
    type Script = Vec<(u64, Vec<u8>)>;

    /// Answers every connection with a script; remembers what was asked.
    struct Server {
        script: Box<dyn Fn(usize) -> Script + Send + Sync>,
        connections: AtomicUsize,
        asked: Arc<Mutex<Vec<String>>>,
    }

    impl std::fmt::Debug for Server {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Server")
        }
    }

    impl Connector for Server {
        fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
            let (ours, mut theirs) = duplex(8 << 20);
            let n = self.connections.fetch_add(1, Ordering::Relaxed);
            let (script, asked) = ((self.script)(n), Arc::clone(&self.asked));
            tokio::spawn(async move {
                let mut head = vec![0; 64 << 10];
                let n = theirs.read(&mut head).await.unwrap();
                asked.lock().unwrap().push(String::from_utf8_lossy(&head[..n]).into_owned());
                for (ms, piece) in script {
                    sleep(Duration::from_millis(ms)).await;
                    if theirs.write_all(&piece).await.is_err() {
                        return;
                    }
                }
            });
            Box::pin(async move { Ok(Io::Pipe(ours)) })
        }
    }

    fn server(script: impl Fn(usize) -> Script + Send + Sync + 'static) -> Arc<Server> {
        Arc::new(Server { script: Box::new(script), connections: AtomicUsize::new(0), asked: Arc::default() })
    }

    const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";

    fn event(json: &str) -> Vec<u8> {
        format!("data: {json}\n\n").into_bytes()
    }

    fn content(text: &str) -> Vec<u8> {
        event(&format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}},"finish_reason":null}}]}}"#))
    }

    fn finish(reason: &str) -> Vec<u8> {
        event(&format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#))
    }

    fn usage() -> Vec<u8> {
        event(r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":5,"total_tokens":17}}"#)
    }

    fn done() -> Vec<u8> {
        event("[DONE]")
    }

    /// An answer of two chunks, half a second to the first and a quarter to the second.
    fn good() -> Script {
        vec![
            (100, SSE.into()),
            (0, event(r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#)),
            (400, content("hel")),
            (250, content("lo")),
            (0, finish("stop")),
            (0, usage()),
            (0, done()),
        ]
    }

    fn plan(requests: usize, pace: Pace) -> Plan {
        let prompts = vec![Prompt::user("why?"), Prompt::user("how?")];
        Plan {
            pace,
            cold_first: false,
            warm_up: 0,
            order: prompts::order(prompts.len(), requests, None),
            prompts,
            unique: false,
            generation: Generation::default(),
            limits: HttpLimits { timeout: Duration::from_secs(20), max_bytes: 8 << 20 },
        }
    }

    fn site(connector: Arc<dyn Connector>) -> Target {
        Target {
            connector,
            endpoint: "http://h:8000/v1/chat/completions".parse().unwrap(),
            bearer: Some(Secret::new("tok")),
            model: "m".into(),
        }
    }

    async fn replies(plan: Plan, connector: Arc<dyn Connector>) -> Vec<Reply> {
        let (_keep, stop) = watch::channel(false);
        let (out, mut replies) = mpsc::unbounded_channel();
        assert!(run(plan, site(connector), stop, out).await);
        let mut all = Vec::new();
        while let Some(reply) = replies.recv().await {
            all.push(reply);
        }
        all.sort_by_key(|r| r.n);
        all
    }

    async fn answer(script: Script) -> Reply {
        let server = server(move |_| script.clone());
        replies(plan(1, Pace::Closed { concurrency: 1 }), server).await.remove(0)
    }

    fn ms(s: Option<f64>) -> Option<u64> {
        #[expect(clippy::cast_possible_truncation, reason = "a test's waits are seconds")]
        s.map(|s| (s * 1e3).round() as u64)
    }

    #[tokio::test(start_paused = true)]
    async fn every_instant_is_where_it_should_be() {
        let r = answer(good()).await;
        assert_eq!((r.outcome, r.status, r.words.as_deref()), (Outcome::Ok, Some(200), None));
        assert_eq!((ms(r.head_s), ms(r.ttft_s), ms(Some(r.total_s))), (Some(100), Some(500), Some(750)));
        assert_eq!((r.gaps_s.len(), ms(r.gaps_s.first().copied())), (1, Some(250)));
        assert_eq!((r.chunks, r.chars, r.done), (2, 5, true));
        assert_eq!(r.finish_reason.as_deref(), Some("stop"));
        assert_eq!(r.usage.unwrap().completion_tokens, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn thinking_is_no_first_text_and_alone_no_answer() {
        let think = || event(r#"{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}"#);
        let r = answer(vec![
            (0, SSE.into()),
            (200, think()),
            (300, content("a")),
            (0, finish("stop")),
            (0, done()),
        ])
        .await;
        assert_eq!((r.outcome, ms(r.first_event_s), ms(r.ttft_s)), (Outcome::Ok, Some(200), Some(500)));
        assert!(r.reasoning);
        let r = answer(vec![(0, SSE.into()), (200, think()), (0, finish("stop")), (0, done())]).await;
        assert_eq!(
            (r.outcome, r.ttft_s, r.words.as_deref()),
            (Outcome::Empty, None, Some("thinking, but no answer"))
        );
        let r = answer(vec![(0, SSE.into()), (200, think()), (0, finish("length")), (0, done())]).await;
        assert_eq!(r.outcome, Outcome::Empty, "cut while thinking is no answer either");
    }

    #[tokio::test(start_paused = true)]
    async fn cut_and_empty_answers_are_marked() {
        let r = answer(vec![(0, SSE.into()), (0, content("a")), (0, finish("length")), (0, done())]).await;
        assert_eq!((r.outcome, r.outcome.answered()), (Outcome::LengthCut, true));
        let r = answer(vec![(0, SSE.into()), (0, content("")), (0, finish("stop")), (0, done())]).await;
        assert_eq!((r.outcome, r.words), (Outcome::Empty, None));
        let r = answer(vec![(0, SSE.into()), (0, content("a")), (0, done())]).await;
        assert_eq!(r.outcome, Outcome::NoFinish);
        let r = answer(vec![(0, SSE.into())]).await;
        assert_eq!(r.outcome, Outcome::NoFinish);
    }

    #[tokio::test(start_paused = true)]
    async fn comments_keep_alive_and_characters_are_split_anywhere() {
        let mut script = vec![(0, SSE.into())];
        for _ in 0..10 {
            script.push((1_000, b": keep-alive\n\n".to_vec()));
        }
        let stream = [content("你好🙂"), finish("stop"), done()].concat();
        script.extend(stream.chunks(1).map(|byte| (1, byte.to_vec())));
        let r = answer(script).await;
        assert_eq!((r.outcome, r.chars, r.chunks, r.comments), (Outcome::Ok, 3, 1, 10));
        assert!(r.ttft_s.unwrap() > 10.0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_without_done_counts_and_is_told() {
        let r = answer(vec![(0, SSE.into()), (0, content("a")), (0, finish("stop"))]).await;
        assert_eq!((r.outcome, r.done), (Outcome::Ok, false));
        // The last event lacks its empty line.
        let cut = finish("stop");
        let r = answer(vec![(0, SSE.into()), (0, content("a")), (0, cut[..cut.len() - 2].to_vec())]).await;
        assert_eq!((r.outcome, r.done), (Outcome::Ok, false));
        // A server that keeps the connection open after its [DONE] is not waited for.
        let mut script = good();
        script.push((15_000, b": still here\n\n".to_vec()));
        assert_eq!(ms(Some(answer(script).await.total_s)), Some(750));
    }

    #[tokio::test(start_paused = true)]
    async fn complaints_are_told_in_the_servers_words() {
        let oom = r#"{"error":{"message":"CUDA out of memory","code":500}}"#;
        let r = answer(vec![(0, SSE.into()), (0, content("a")), (0, event(oom))]).await;
        assert_eq!((r.outcome, r.words.as_deref()), (Outcome::StreamError, Some("CUDA out of memory")));
        assert_eq!(r.chunks, 1);
        let status = |status: &str, body: &str| {
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            vec![(0, head.into_bytes())]
        };
        let r = answer(status("401 Unauthorized", r#"{"error":"no such key"}"#)).await;
        assert_eq!(
            (r.outcome, r.status, r.words.as_deref()),
            (Outcome::HttpStatus, Some(401), Some("no such key"))
        );
        let r = answer(status("503 Service Unavailable", "busy")).await;
        assert_eq!((r.outcome, r.status, r.words.as_deref()), (Outcome::HttpStatus, Some(503), Some("busy")));
        let whole = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
        let r = answer(status("200 OK", whole)).await;
        assert_eq!((r.outcome, r.ttft_s, r.chars), (Outcome::NotStreamed, None, 2));
        assert_eq!(r.usage.unwrap().completion_tokens, 2);
        let r = answer(status("200 OK", "<html>welcome</html>")).await;
        assert_eq!(r.outcome, Outcome::Protocol);
        assert!(r.words.unwrap().contains("<html>welcome"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_answer_ends_all_the_same() {
        let r = answer(vec![(0, SSE.into()), (0, vec![b'x'; 2 << 20]), (0, done())]).await;
        assert_eq!(r.outcome, Outcome::Protocol);
        assert!(r.words.unwrap().contains("a line of more than"));
        let r = answer(vec![(0, SSE.into()), (0, event("not json"))]).await;
        assert_eq!(r.outcome, Outcome::Protocol);
        let r = answer(vec![(0, SSE.into()), (0, content("a")), (60_000, done())]).await;
        assert_eq!((r.outcome, ms(Some(r.total_s))), (Outcome::TimedOut, Some(20_000)));
        let broken = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata".to_vec();
        assert_eq!(answer(vec![(0, broken)]).await.outcome, Outcome::Broken);
        assert_eq!(answer(vec![(0, b"220 mail ready\r\n".to_vec())]).await.outcome, Outcome::Broken);
    }

    #[derive(Debug)]
    struct Refusing;

    impl Connector for Refusing {
        fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
            Box::pin(async move { Err(ConnectError::new(endpoint, ConnectErrorKind::Refused, "refused")) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_connection_is_an_outcome_and_the_key_stays_secret() {
        let r = replies(plan(1, Pace::Closed { concurrency: 1 }), Arc::new(Refusing)).await.remove(0);
        assert_eq!(r.outcome, Outcome::ConnectFailed);
        assert!(!format!("{r:?} {:?}", site(Arc::new(Refusing))).contains("tok"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_loop_waits_for_answers_and_the_cold_one_goes_alone() {
        let server = server(|_| good());
        let plan = Plan { cold_first: true, warm_up: 1, ..plan(6, Pace::Closed { concurrency: 2 }) };
        let all = replies(plan, server.clone()).await;
        let starts: Vec<_> =
            all.iter().map(|r| (ms(Some(r.planned_s)).unwrap(), r.cold, r.counted)).collect();
        let expected = [
            (0, true, false),
            (750, false, false),
            (750, false, true),
            (1_500, false, true),
            (1_500, false, true),
            (2_250, false, true),
        ];
        assert_eq!(starts, expected);
        assert_eq!(all.iter().map(|r| r.prompt).collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1]);
        let asked = server.asked.lock().unwrap();
        assert_eq!(asked.len(), 6);
        assert!(asked[0].contains("authorization: Bearer tok") && asked[0].contains(r#""model":"m""#));
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_loop_does_not_wait() {
        let pace = Pace::Open { law: ArrivalProcess::Uniform { per_hour: 36_000.0 }, seed: 1 };
        let all = replies(plan(5, pace), server(|_| good())).await;
        let starts: Vec<_> = all.iter().map(|r| ms(Some(r.planned_s)).unwrap()).collect();
        assert_eq!(starts, [100, 200, 300, 400, 500]);
        assert!(all.iter().all(|r| ms(r.ttft_s) == Some(500)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_gives_up_what_is_under_way() {
        let (stop, stopped) = watch::channel(false);
        let (out, mut heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            sleep(Duration::from_millis(900)).await;
            stop.send(true).unwrap();
        });
        let whole =
            run(plan(9, Pace::Closed { concurrency: 1 }), site(server(|_| good())), stopped, out).await;
        assert!(!whole);
        assert!(heard.recv().await.is_some() && heard.recv().await.is_none());
    }
}
