//! How TLS is spoken.

use std::path::PathBuf;

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
#[non_exhaustive]
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
    #[cfg(feature = "tls")]
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}
