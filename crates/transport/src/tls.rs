//! How TLS is spoken.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use thiserror::Error;

/// Which servers to trust. The default trusts the system's authorities and nobody else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A PEM file of further authorities (or self-signed certificates) to trust.
    pub extra_ca_file: Option<PathBuf>,
    /// Accept any certificate at all. For a throw-away test server on a trusted network only: whoever sits
    /// in between can read and change everything.
    pub danger_accept_invalid_certs: bool,
}

/// Why TLS could not be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The extra authority file cannot be used.
    #[error("cannot use the certificate authority file {path}: {why}; it must hold PEM certificates")]
    ExtraCa {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The TLS library refuses the settings.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// Builds the client's TLS settings. Without any system authority the extra file alone counts, and without
/// both every TLS connection fails with the library's own words.
pub(crate) fn client_config(options: &TlsOptions) -> Result<Arc<ClientConfig>, TlsError> {
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
