#!/usr/bin/env bash
# Holds today's outputs against those of an earlier commit, byte for byte: rehearsed ladders and campaigns with seed 1, every
# case, reports in both languages, --json, the doctor, the calculators. e2e/same/exceptions.tsv states what may differ.
# The base is the commit since which what is random in a step follows from its name: no run is comparable across it.
# Usage: e2e/same.sh [quick]; quick leaves out the full-length campaign.
# The recording of the base is made once and kept under target/same.
set -euo pipefail
cd "$(dirname "$0")/.."
base=d3f0234 mode=${1-full}
keep=${SAME_DIR:-target/same}
after=${AFTER_DIR:-$keep/after}
mkdir -p "$keep"
programs=(--workspace --bins)

if [ ! -e "$keep/before/done" ]; then
  [ -d "$keep/checkout" ] || git worktree add --detach --force "$keep/checkout" "$base"
  (cd "$keep/checkout" && cargo build --quiet --target-dir ../build "${programs[@]}")
  bash e2e/same/record.sh "$keep/build/debug" "$keep/checkout" "$keep/before"
  touch "$keep/before/done"
fi
cargo build --quiet "${programs[@]}"
bash e2e/same/record.sh "${CARGO_TARGET_DIR:-target}/debug" . "$after" "$mode"
touch "$after/done"
python3 e2e/same/compare.py "$keep/before" "$after" e2e/same/exceptions.tsv $mode
