//! Real sockets on loopback: TCP, TLS, and what goes wrong with them.

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::Arc, time::Duration};

    use tapedeck_transport::{
        ConnectError, ConnectErrorKind, Connector, Endpoint, Io, NetConnector, NetOptions, TlsOptions,
    };
    use tempfile::TempDir;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };
    use tokio_rustls::TlsAcceptor;

    fn connector(tls: TlsOptions) -> NetConnector {
        NetConnector::new(NetOptions { tls, timeout: Duration::from_secs(5) }).unwrap()
    }

    fn endpoint(text: &str) -> Endpoint {
        text.parse().unwrap()
    }

    /// Sends back what it gets.
    async fn echo(address: &str) -> u16 {
        let listener = TcpListener::bind(address).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = socket.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        port
    }

    async fn says_it_back(mut io: Io) {
        io.write_all(b"hello").await.unwrap();
        io.flush().await.unwrap();
        let mut back = [0; 5];
        io.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"hello");
    }

    #[tokio::test]
    async fn names_and_addresses_of_both_families() {
        let net = connector(TlsOptions::default());
        let port = echo("127.0.0.1:0").await;
        for host in ["127.0.0.1", "localhost"] {
            let io = net.connect(&endpoint(&format!("ws://{host}:{port}/"))).await.unwrap();
            assert!(matches!(&io, Io::Tcp(socket) if socket.nodelay().unwrap()));
            says_it_back(io).await;
        }
        // A machine without IPv6 has nothing to show here.
        if TcpListener::bind("[::1]:0").await.is_ok() {
            let port = echo("[::1]:0").await;
            says_it_back(net.connect(&endpoint(&format!("ws://[::1]:{port}/"))).await.unwrap()).await;
        }
    }

    #[tokio::test]
    async fn failures_are_told_apart() {
        let net = connector(TlsOptions::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let error = net.connect(&endpoint(&format!("ws://127.0.0.1:{port}/asr"))).await.unwrap_err();
        assert_eq!(error.kind(), ConnectErrorKind::Refused);
        let told = error.to_string();
        assert!(told.contains(&format!("ws://127.0.0.1:{port}/asr")) && told.contains("started"), "{told}");

        let error = net.connect(&endpoint("ws://no-such-host.invalid:9000/")).await.unwrap_err();
        // Where the machine's resolver itself does not answer, the limit speaks first.
        assert!(matches!(error.kind(), ConnectErrorKind::Resolve | ConnectErrorKind::TimedOut), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_never_finishes_the_handshake_runs_into_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let limit = Duration::from_millis(80);
        let net = NetConnector::new(NetOptions { timeout: limit, ..NetOptions::default() }).unwrap();
        let error = net.connect(&endpoint(&format!("wss://127.0.0.1:{port}/"))).await.unwrap_err();
        assert_eq!(error.kind(), ConnectErrorKind::TimedOut, "{error}");
        drop(listener);
    }

    struct Certificate {
        acceptor: TlsAcceptor,
        pem: PathBuf,
        _dir: TempDir,
    }

    fn certificate(name: &str) -> Certificate {
        let own = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let pem = dir.path().join("ca.pem");
        std::fs::write(&pem, own.cert.pem()).unwrap();
        let key = rustls_pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        Certificate { acceptor: TlsAcceptor::from(Arc::new(config)), pem, _dir: dir }
    }

    async fn tls_echo(acceptor: TlsAcceptor) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(tls) = acceptor.accept(socket).await {
                        let (mut read, mut write) = tokio::io::split(tls);
                        let _ = tokio::io::copy(&mut read, &mut write).await;
                    }
                });
            }
        });
        port
    }

    async fn tls_error(net: &NetConnector, url: &str) -> ConnectError {
        let error = net.connect(&endpoint(url)).await.unwrap_err();
        assert_eq!(error.kind(), ConnectErrorKind::Tls, "{error}");
        error
    }

    #[tokio::test]
    async fn tls_trusts_whom_it_is_told_to_trust() {
        let cert = certificate("localhost");
        let port = tls_echo(cert.acceptor).await;
        let url = format!("wss://localhost:{port}/");

        tls_error(&connector(TlsOptions::default()), &url).await;
        let extra = connector(TlsOptions { extra_ca_file: Some(cert.pem), ..TlsOptions::default() });
        let io = extra.connect(&endpoint(&url)).await.unwrap();
        assert!(matches!(io, Io::Tls(_)));
        says_it_back(io).await;
        let wrong_name = tls_error(&extra, &format!("wss://127.0.0.1:{port}/")).await;
        assert!(wrong_name.words().contains("name"), "{wrong_name}");

        let anyone = connector(TlsOptions { danger_accept_invalid_certs: true, ..TlsOptions::default() });
        for host in ["localhost", "127.0.0.1"] {
            says_it_back(anyone.connect(&endpoint(&format!("wss://{host}:{port}/"))).await.unwrap()).await;
        }
    }

    #[tokio::test]
    async fn tls_to_a_port_that_does_not_speak_it() {
        let port = echo("127.0.0.1:0").await;
        tls_error(&connector(TlsOptions::default()), &format!("wss://127.0.0.1:{port}/")).await;
    }

    #[test]
    fn a_bad_authority_file_is_a_config_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let refuse = |path: PathBuf| {
            let tls = TlsOptions { extra_ca_file: Some(path), ..TlsOptions::default() };
            NetConnector::new(NetOptions { tls, ..NetOptions::default() }).unwrap_err().to_string()
        };
        assert!(refuse(dir.path().join("missing.pem")).contains("missing.pem"));
        let empty = dir.path().join("empty.pem");
        std::fs::write(&empty, "no certificate here\n").unwrap();
        assert!(refuse(empty).contains("PEM"));
    }
}
