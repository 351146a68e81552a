//! Where to connect.

use std::{fmt, str::FromStr};

use thiserror::Error;
use url::{Host, Url};

/// An address to connect to: `ws`, `wss`, `http` or `https`, host, port, path and query.
///
/// Host names, IPv4 and IPv6 addresses (in brackets, as URLs want them) are all welcome. User names and
/// passwords in the URL are refused: secrets come from the environment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    tls: bool,
    websocket: bool,
    host: String,
    ipv6: bool,
    port: u16,
    path_and_query: String,
}

/// Why a text is not an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Not a URL at all.
    #[error("{url:?} is not a URL ({why}); write it like ws://host:9000/asr")]
    NotAUrl {
        /// The text.
        url: String,
        /// What the URL parser says.
        why: String,
    },
    /// A URL of another scheme.
    #[error("{url:?} starts with {scheme}:, which is not spoken here; use ws, wss, http or https")]
    Scheme {
        /// The text.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// A URL without a host.
    #[error("{0:?} names no host; write it like ws://host:9000/asr")]
    NoHost(String),
    /// A URL that carries a user name or password. It is not repeated here.
    #[error(
        "the URL of host {0:?} carries a user name or password; take it out and pass a token through the environment"
    )]
    Credentials(String),
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let url = Url::parse(text.trim())
            .map_err(|e| EndpointError::NotAUrl { url: text.to_owned(), why: e.to_string() })?;
        let (websocket, tls) = match url.scheme() {
            "ws" => (true, false),
            "wss" => (true, true),
            "http" => (false, false),
            "https" => (false, true),
            other => {
                return Err(EndpointError::Scheme { url: text.to_owned(), scheme: other.to_owned() });
            }
        };
        let (host, ipv6) = match url.host() {
            Some(Host::Domain(name)) => (name.to_owned(), false),
            Some(Host::Ipv4(ip)) => (ip.to_string(), false),
            Some(Host::Ipv6(ip)) => (ip.to_string(), true),
            None => return Err(EndpointError::NoHost(text.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::Credentials(host));
        }
        let port = url.port().unwrap_or(if tls { 443 } else { 80 });
        let path = if url.path().is_empty() { "/" } else { url.path() };
        let path_and_query = match url.query() {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        };
        Ok(Self { tls, websocket, host, ipv6, port, path_and_query })
    }
}

impl Endpoint {
    /// Whether the connection is encrypted.
    #[must_use]
    pub const fn tls(&self) -> bool {
        self.tls
    }

    /// Host name or address, IPv6 without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port, the scheme's usual one where the URL has none.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Path and query as sent in the request line, never empty.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.path_and_query
    }

    /// What the `Host` header carries: IPv6 in brackets, the scheme's usual port left out.
    #[must_use]
    pub fn authority(&self) -> String {
        let (open, close) = if self.ipv6 { ("[", "]") } else { ("", "") };
        if self.port == if self.tls { 443 } else { 80 } {
            format!("{open}{}{close}", self.host)
        } else {
            format!("{open}{}{close}:{}", self.host, self.port)
        }
    }

    /// The same server, another path: for `/health` beside `/asr`. A missing leading slash is added.
    #[must_use]
    pub fn with_path(&self, path_and_query: &str) -> Self {
        let slash = if path_and_query.starts_with('/') { "" } else { "/" };
        Self { path_and_query: format!("{slash}{path_and_query}"), ..self.clone() }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.websocket, self.tls) {
            (true, false) => "ws",
            (true, true) => "wss",
            (false, false) => "http",
            (false, true) => "https",
        };
        write!(f, "{scheme}://{}{}", self.authority(), self.path_and_query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Endpoint {
        text.parse().unwrap()
    }

    #[test]
    fn names_and_addresses_of_both_families() {
        let e = parsed("ws://gpu-host:9000/lb");
        assert_eq!((e.host(), e.port(), e.tls(), e.path_and_query()), ("gpu-host", 9000, false, "/lb"));
        assert_eq!(e.authority(), "gpu-host:9000");
        let e = parsed(" wss://[2001:db8::1]/a?b=c ");
        assert_eq!((e.host(), e.port(), e.tls(), e.path_and_query()), ("2001:db8::1", 443, true, "/a?b=c"));
        assert_eq!(e.authority(), "[2001:db8::1]");
        let e = parsed("http://10.0.0.1:8001");
        assert_eq!((e.host(), e.path_and_query()), ("10.0.0.1", "/"));
        assert_eq!(e.with_path("health").to_string(), "http://10.0.0.1:8001/health");
    }

    #[test]
    fn prints_as_it_was_read() {
        for text in ["ws://h:9000/asr", "wss://[::1]:8443/x?y=1", "https://h/metrics", "http://1.2.3.4/"] {
            assert_eq!(parsed(text).to_string(), text);
        }
    }

    #[test]
    fn refusals_say_what_to_write() {
        let refuse = |text: &str| text.parse::<Endpoint>().unwrap_err().to_string();
        assert!(refuse("gpu-host:9000/asr").contains("ws, wss, http or https"));
        assert!(refuse("9000").contains("ws://host:9000/asr"));
        assert!(refuse("ftp://h/x").contains("ftp"));
        let secret = refuse("ws://user:hunter2@h/x");
        assert!(secret.contains("environment") && !secret.contains("hunter2"), "{secret}");
    }
}
