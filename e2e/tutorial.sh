#!/usr/bin/env bash
# A new user's first half hour: docs/tutorial.md, followed word for word.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build -q --bins
python3 e2e/tutorial.py
