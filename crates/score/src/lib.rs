//! Raw traces in, per-call figures out, purely.
