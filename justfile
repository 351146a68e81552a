# Every check and chore of the project; `.ci/run` calls these and nothing else.

# List the recipes.
default:
    @just --list

# The main job on the built-in engine: climb the ladder, find N*.
demo *args:
    cargo run --bin tc03 -- --rehearse {{args}}

# Every test, as the README has it.
test:
    cargo test --workspace

# The rooms that can be embedded without the standard library.
no-std:
    cargo test -p tapedeck-erlang --no-default-features --features libm

# Formatting and lints, warnings denied.
lint:
    cargo fmt --all -- --check
    cargo clippy --workspace --all-targets -- -D warnings

# The crates' documentation, warnings denied.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Benches; figures are compared within one run.
bench *args:
    cargo bench --workspace {{args}}

# Licences, advisories and sources of every dependency (needs cargo-deny and a network).
deny:
    cargo deny check

# End to end: real processes on real sockets.
e2e:
    bash e2e/sockets.sh

# A ladder against sherpa-onnx's stock streaming server, driven into saturation.
e2e-sherpa:
    bash e2e/sherpa.sh

# A real nginx in front of three engines: spread, stickiness, a kill, refusal.
e2e-nginx:
    bash e2e/nginx.sh

# What decides.
ci: lint doc test no-std e2e
