#!/usr/bin/env bash
# The end-to-end recipes that decide. One that cannot run on this machine (exit code 77: a server would listen on every
# address, and there is no network namespace to put it in) is no failure, but is told here and kept in target/e2e/not-run.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p target/e2e
: >target/e2e/not-run
for recipe in tutorial sockets haproxy nginx sherpa report prometheus; do
  printf -- '-- %s\n' "$recipe"
  code=0
  bash "e2e/$recipe.sh" || code=$?
  case $code in
    0) ;;
    77) echo "$recipe" >>target/e2e/not-run ;;
    *) exit "$code" ;;
  esac
done
[ ! -s target/e2e/not-run ] || echo "NOT RUN HERE: $(paste -sd ' ' target/e2e/not-run)"
