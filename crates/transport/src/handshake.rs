//! The client's side of TLS, which a build without the feature `tls` leaves out.

use std::sync::Arc;

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{ConnectError, ConnectErrorKind, Endpoint, Io, TlsError, TlsOptions};

/// Speaks TLS over a connection that stands.
#[derive(Clone)]
pub(crate) struct Handshake(Arc<ClientConfig>);

impl Handshake {
    /// With the system's authorities and those of the options.
    pub(crate) fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        client_config(options).map(Self)
    }

    /// Shakes hands.
    pub(crate) async fn over(&self, tcp: TcpStream, endpoint: &Endpoint) -> Result<Io, ConnectError> {
        let fail = |words: String| ConnectError::new(endpoint, ConnectErrorKind::Tls, words);
        let name =
            ServerName::try_from(endpoint.host().to_owned()).map_err(|e| fail(format!("host name: {e}")))?;
        let tls = TlsConnector::from(Arc::clone(&self.0)).connect(name, tcp).await.map_err(|e| {
            fail(match e.kind() {
                std::io::ErrorKind::UnexpectedEof => format!("closed during the TLS handshake ({e})"),
                _ => e.to_string(),
            })
        })?;
        Ok(Io::Tls(Box::new(tls)))
    }
}

/// Builds the client's TLS settings. Without any system authority the extra file alone counts, and without
/// both every TLS connection fails with the library's own words.
fn client_config(options: &TlsOptions) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    if options.danger_accept_invalid_certs {
        let config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustAnyone { provider }))
            .with_no_client_auth();
        return Ok(Arc::new(config));
    }
    let mut roots = RootCertStore::empty();
    // A certificate that the library cannot read is the system's affair: the others still count.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = &options.extra_ca_file {
        let refuse = |why: String| TlsError::ExtraCa { path: path.clone(), why };
        let certs = CertificateDer::pem_file_iter(path).map_err(|e| refuse(e.to_string()))?;
        let mut added = 0;
        for cert in certs {
            roots.add(cert.map_err(|e| refuse(e.to_string()))?).map_err(|e| refuse(e.to_string()))?;
            added += 1;
        }
        if added == 0 {
            return Err(refuse("no certificate in it".to_owned()));
        }
    }
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Checks that the server holds the key of the certificate it shows, and nothing about the certificate.
#[derive(Debug)]
struct TrustAnyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
