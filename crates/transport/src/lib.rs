//! One connector over TCP, TLS and in-memory pipes; HTTP GET.
