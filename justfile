# Every check and chore of the project; `.ci/run` calls these and nothing else.

# List the recipes.
default:
    @just --list

# The main job on the built-in engine: climb the ladder, find N*.
demo *args:
    cargo run --bin tc03 -- --rehearse {{args}}

# Every test but the long studies, as the README has it.
test:
    cargo test

# The long studies, optimised: does every case find its faults, does every ladder find the reference capacity?
validity:
    cargo test --release -p tapedeck-rehearsal --test detection --test reference_capacity -- --include-ignored

# The tests that need programs which not every machine has: zsh, fish, mandoc.
test-shells:
    cargo test -p tapedeck-commands --test it -- --ignored

# The report with Parquet and PNG, which alone builds the table library, and builds it once for both.
report:
    cargo test -p tapedeck-report -p tapedeck-report-bins --features parquet,png

# FLAC and MP3, which only some sites need.
compressed:
    cargo clippy -p tapedeck-audio --all-targets --features compressed -- -D warnings
    cargo test -p tapedeck-audio --features compressed

# Crates that can be embedded without the standard library.
no-std:
    cargo test -p tapedeck-erlang --no-default-features --features libm

# The crates that can be used without the rest, those that the others stand on first.
alone := "l10n record fs shell transport stats erlang pace audio tape metrics score slo wer"

# What a stranger would get of each crate: it packs, with its licences and its README, and builds from what was packed.
package:
    cargo package --quiet --allow-dirty --no-verify {{prepend("-p tapedeck-", alone)}}
    bash .ci/packed.sh {{alone}}

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

# Mangle every kind of foreign input, each for so many seconds (needs cargo-fuzz and a nightly toolchain).
fuzz seconds="60":
    for target in wav manifest exposition dialect; do \
        mkdir -p target/fuzz/$target && \
        cargo +nightly fuzz run $target target/fuzz/$target fuzz/corpus/$target -- -max_total_time={{seconds}} -timeout=10 || exit 1; \
    done

# Licences, advisories and sources of every dependency (needs cargo-deny and a network).
deny:
    cargo deny check

# End to end: real processes on real sockets, real balancers, a real recogniser's server, the report in a real browser.
e2e:
    bash e2e/all.sh

# docs/tutorial.md, followed word for word: every command runs, and prints what the page shows.
e2e-tutorial:
    bash e2e/tutorial.sh

# The report of a rehearsed campaign in headless Chromium: console, plots, phone, paper, both languages.
e2e-report *args:
    bash e2e/report.sh {{args}}

# A real Prometheus scrapes a ladder: its series against the run's files, and every panel of the dashboard.
e2e-prometheus:
    bash e2e/prometheus.sh

# A real HAProxy in front of three engines: spread, stickiness, a kill, refusal; then TC-06, against its statistics.
e2e-haproxy:
    bash e2e/haproxy.sh

# A ladder against sherpa-onnx's stock streaming server, driven into saturation.
e2e-sherpa:
    bash e2e/sherpa.sh

# A real nginx in front of three engines: spread, stickiness, a kill, refusal.
e2e-nginx:
    bash e2e/nginx.sh

# Real vLLMs with a toy model: directly, three behind the gateway, one killed, caches, preemptions (6 GB of packages).
e2e-vllm:
    bash e2e/vllm.sh

# tape-stream against a real vLLM with a toy chat model (the same packages).
e2e-stream:
    bash e2e/stream.sh

# WhisperLive on real telephone prompts: words against load, refusals (760 MB of packages).
e2e-whisperlive:
    bash e2e/whisperlive.sh

# Today's outputs against those of an earlier commit, byte for byte but for stated exceptions (`just same quick` is shorter).
same *args:
    bash e2e/same.sh {{args}}

# What decides.
ci: lint doc test compressed no-std package report e2e
