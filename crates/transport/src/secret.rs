//! A string that never prints.

use std::fmt;

use thiserror::Error;

/// A token or password. It prints as `[secret]`, whatever asks; only [`expose`](Self::expose) yields it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Why a secret could not be taken from the environment. The secret itself is never in the message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The variable is not set, or empty.
    #[error("the environment variable {0} is not set; export it before the run")]
    Missing(String),
    /// The variable is set to something that cannot be sent in an HTTP header.
    #[error(
        "the environment variable {0} holds characters that an HTTP header cannot carry; is there a line break in it?"
    )]
    NotAHeader(String),
}

impl Secret {
    /// Hides a string.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Takes a secret from an environment variable, the only place where secrets are kept.
    ///
    /// # Errors
    /// When the variable is not set, is empty, or cannot be sent in an HTTP header.
    pub fn from_env(variable: &str) -> Result<Self, SecretError> {
        let value = std::env::var(variable).unwrap_or_default();
        if value.is_empty() {
            return Err(SecretError::Missing(variable.to_owned()));
        }
        if http::HeaderValue::from_str(&value).is_err() {
            return Err(SecretError::NotAHeader(variable.to_owned()));
        }
        Ok(Self(value))
    }

    /// The secret itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The value of an `Authorization: Bearer` header, marked so that it is never printed; none if the
    /// secret holds characters that no header can carry.
    #[must_use]
    pub fn bearer(&self) -> Option<http::HeaderValue> {
        let mut value = http::HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "[secret] [secret] Some([secret])");
        let bearer = secret.bearer().unwrap();
        assert_eq!(bearer.to_str().unwrap(), "Bearer hunter2");
        assert!(!format!("{bearer:?}").contains("hunter2"));
        assert_eq!(Secret::new("a\nb").bearer(), None);
    }

    #[test]
    fn a_missing_variable_is_named() {
        let error = Secret::from_env("TAPEDECK_TEST_NO_SUCH_TOKEN").unwrap_err();
        assert!(error.to_string().contains("TAPEDECK_TEST_NO_SUCH_TOKEN"));
    }
}
