#!/usr/bin/env bash
# A real Prometheus scrapes a ladder while it is climbed over real sockets: what it holds must be what the run's files
# hold, and every panel of the dashboard must show something. Every port is chosen by the system.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "NOT RUN: no prometheus here (Debian package prometheus)"; exit 77; }
  apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus >/dev/null
fi
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
until_seen() { # what, tenths of a second, command...
  local what=$1 tenths=$2; shift 2
  for _ in $(seq "$tenths"); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
  fail "$what did not happen in time"
}

echo "a rehearsal is refused"
code=0; "$bin/tc03" --rehearse --listen 127.0.0.1:0 --out "$work/none" 2>"$work/refused.txt" || code=$?
[ "$code" = 2 ] && grep -q 'an hour passes in moments' "$work/refused.txt" || fail "a rehearsal cannot be scraped"
[ ! -e "$work/none" ] || fail "a refused command should leave nothing"

"$bin/tape-engine" --instances 3 --balancer 127.0.0.1:0 \
  --tape fixtures/tapes/tape-a-tenth.json --pool fixtures/pool-tenth >"$work/engine.json" 2>"$work/engine.log" &
pids+=($!)
until_seen "the engines' addresses" 200 test -s "$work/engine.json"
cat >"$work/site.toml" <<TOML
[server]
url = "ws://$(jq -r .balancer "$work/engine.json")/asr"
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
loadgen_cpu_share = 1.0
TOML
for n in 1 2 3; do
  at=$(jq -r ".instances[$((n - 1))]" "$work/engine.json")
  printf '[[instances]]\nname = "inst%s"\nhealth = "http://%s/health"\nmetrics = "http://%s/metrics"\n' \
    "$n" "$at" "$at" >>"$work/site.toml"
done

echo "a ladder that can be scraped"
"$bin/tc03" --config "$work/site.toml" --tiers 3,6 --out "$work/results" --listen 127.0.0.1:0 --json \
  >"$work/events.jsonl" 2>"$work/ladder.log" &
ladder=$!; pids+=("$ladder")
until_seen "the page's address" 100 grep -q '"listening"' "$work/events.jsonl"
url=$(jq -r 'select(.progress == "listening") | .url' "$work/events.jsonl" | head -n 1)
page=${url#http://}

cat >"$work/prometheus.yml" <<YAML
global: { scrape_interval: 1s }
scrape_configs:
  - job_name: tapedeck
    static_configs: [{ targets: ["${page%/metrics}"] }]
YAML
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
  --web.listen-address=127.0.0.1:0 >"$work/prometheus.log" 2>&1 &
pids+=($!)
until_seen "Prometheus' address" 200 grep -q 'msg="Listening on"' "$work/prometheus.log"
server=$(sed -n 's/.*msg="Listening on" address=\([^ ]*\).*/\1/p' "$work/prometheus.log" | head -n 1)

# The first tier is whole in Prometheus once it has been scraped while the second one runs.
until_seen "the second tier" 1200 grep -q '"progress":"call","step":"N006"' "$work/events.jsonl"
curl -sf "$url" >"$work/page.txt" || fail "the page is gone"
promtool check metrics <"$work/page.txt" || fail "promtool does not like the page"
sleep 3
run=$(ls -d "$work"/results/tc03-*)
python3 e2e/prometheus.py "$run" "$server" N003 || fail "Prometheus and the files differ"
[ "$(curl -sf "http://$server/api/v1/query?query=tapedeck_streams" | jq -r '.data.result[0].value[1]')" = 6 ] ||
  fail "six streams should be shown"

echo "standard output is JSON lines and nothing else"
kill -INT "$ladder"; code=0; wait "$ladder" || code=$?
[ "$code" = 130 ] || fail "an interrupted ladder should exit with 130, not $code"
jq -es 'all(.[]; has("progress")) and .[-1].progress == "answer"' "$work/events.jsonl" >/dev/null ||
  fail "a line is not an event, or the answer is not last"
[ "$(jq -r .progress "$work/events.jsonl" | head -n 1)" = listening ] || fail "the address should come first"

echo "prometheus: all well"
