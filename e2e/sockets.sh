#!/usr/bin/env bash
# The main job over real sockets: three engine processes behind a balancer process, a short ladder, a kill -9
# in the middle and --resume, Ctrl-C, and a server that is not there. Every port is chosen by the system.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --bin tc03 --bin tape-engine
bin=${CARGO_TARGET_DIR:-target}/debug
work=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# Starts a tape-engine in the background and waits for the line that tells its addresses.
start() { # name, arguments...
  local name=$1; shift
  "$bin/tape-engine" "$@" >"$work/$name.json" 2>"$work/$name.log" &
  pids+=($!)
  for _ in $(seq 200); do
    [ -s "$work/$name.json" ] && return
    kill -0 "$!" 2>/dev/null || { cat "$work/$name.log" >&2; fail "$name did not start"; }
    sleep 0.05
  done
  fail "$name did not tell its address"
}
address() { jq -r "$2" "$work/$1.json"; }

tape=(--tape fixtures/tapes/tape-a-tenth.json --pool fixtures/pool-tenth)
for n in 1 2 3; do start "inst$n" --instances 1 --first "$n" --listen 127.0.0.1:0 "${tape[@]}"; done
a=$(address inst1 '.instances[0]') b=$(address inst2 '.instances[0]') c=$(address inst3 '.instances[0]')
start balancer --balance "$a,$b,$c" --listen 127.0.0.1:0
lb=$(address balancer '.balancer')

cat >"$work/site.toml" <<TOML
[server]
url = "ws://$lb/asr"
window_ms = 2000
[tape]
manifest = "$PWD/fixtures/tapes/tape-a-tenth.json"
pool = "$PWD/fixtures/pool-tenth"
[load]
ramp_s = 0.05
warm_up_s = 1
loops_small = 1
cool_down_s = 0
[slo]
ttft_basis = "window"
# A shared machine wakes us late now and then. That is not what is tried here.
wake_late_p99_ms = 500
TOML
for n in 1 2 3; do
  at=$(address "inst$n" '.instances[0]')
  printf '[[instances]]\nname = "inst%s"\nhealth = "http://%s/health"\nmetrics = "http://%s/metrics"\n' \
    "$n" "$at" "$at" >>"$work/site.toml"
done

echo "a ladder over real sockets, killed in its second tier"
"$bin/tc03" --config "$work/site.toml" --tiers 3,6 --out "$work/results" >"$work/first.txt" 2>&1 &
victim=$!
for _ in $(seq 1800); do
  run=$(ls -d "$work"/results/tc03-* 2>/dev/null | head -n 1 || true)
  [ -n "$run" ] && grep -q '"N003"' "$run/steps.jsonl" 2>/dev/null && [ -e "$run/trace/N006.jsonl.gz.part" ] && break
  kill -0 "$victim" 2>/dev/null || { cat "$work/first.txt" >&2; fail "the ladder ended before it could be killed"; }
  sleep 0.1
done
kill -9 "$victim"; wait "$victim" 2>/dev/null || true
[ "$(wc -l <"$run/steps.jsonl")" = 1 ] || fail "one tier should be committed"

echo "taken up again"
code=0; "$bin/tc03" --config "$work/site.toml" --tiers 3,6 --out "$work/results" --resume "$run" || code=$?
[ "$code" = 0 ] || fail "resumed ladder exited with $code"
[ "$(wc -l <"$run/ladder.csv")" = 3 ] || fail "ladder.csv should hold two tiers"
[ "$(jq -c 'select(.counted and .outcome != "ok")' "$run/calls.jsonl" | wc -l)" = 0 ] || fail "a counted call was not ok"
[ "$(jq -c 'select(.counted)' "$run/calls.jsonl" | wc -l)" = 81 ] || fail "3 x 9 + 6 x 9 calls should count"
[ "$(jq -r 'select(.counted) | .instance' "$run/calls.jsonl" | sort -u | wc -l)" = 3 ] || fail "all instances should serve"

[ "$(grep -c simulated "$run/ladder.csv")" = 2 ] || fail "the built-in engine should be labelled simulated"

echo "Ctrl-C writes what was measured"
"$bin/tc03" --config "$work/site.toml" --tiers 3,6 --out "$work/stopped" >"$work/stopped.txt" 2>&1 &
victim=$!
for _ in $(seq 600); do
  ls "$work"/stopped/*/trace/N003.jsonl.gz.part >/dev/null 2>&1 && break
  sleep 0.1
done
sleep 4
kill -INT "$victim"; code=0; wait "$victim" || code=$?
[ "$code" = 130 ] || { cat "$work/stopped.txt" >&2; fail "an interrupted ladder should exit with 130, not $code"; }
[ "$(jq -r .partial "$work"/stopped/*/steps.jsonl)" = true ] || fail "the interrupted tier should be marked partial"

echo "a server that is not there"
sed "s/$lb/127.0.0.1:1/" "$work/site.toml" >"$work/nobody.toml"
code=0; "$bin/tc03" --config "$work/nobody.toml" --tiers 3 --out "$work/nobody" >"$work/nobody.txt" 2>&1 || code=$?
[ "$code" = 1 ] || { cat "$work/nobody.txt" >&2; fail "a ladder of refused calls should exit with 1, not $code"; }
grep -q 'connect_refused' "$work"/nobody/*/tiers.csv || fail "the outcome should be named"

echo "a full disk"
if [ "$(id -u)" = 0 ] && mkdir "$work/small" && mount -t tmpfs -o size=6m tmpfs "$work/small" 2>/dev/null; then
  code=0; "$bin/tc03" --rehearse --tiers 3,6,12 --out "$work/small" >"$work/small.txt" 2>&1 || code=$?
  committed=$(wc -l <"$work"/small/*/steps.jsonl) rows=$(wc -l <"$work"/small/*/ladder.csv)
  umount "$work/small"
  [ "$code" = 3 ] || fail "a full disk should exit with 3, not $code"
  grep -q 'no space left' "$work/small.txt" || fail "a full disk should be named"
  [ "$committed" -ge 1 ] && [ "$rows" = $((committed + 1)) ] || fail "earlier tiers should be intact"
else
  echo "NOT RUN: a small file system cannot be mounted here (needs root)"
fi

echo "sockets: all well"
