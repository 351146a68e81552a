//! The tape: pool scan, stratified sampling, manifest, verification, loading.
