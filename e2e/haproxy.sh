#!/usr/bin/env bash
# TC-06 for real: three engine processes behind a real HAProxy (docs/lb/haproxy.cfg on free ports), one of them is
# killed with SIGKILL at full load, and once more at two thirds. What TC-06 reports has to agree with HAProxy's own
# statistics.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v haproxy >/dev/null; then
  echo "installing haproxy"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends haproxy >/dev/null
fi
cargo build --quiet --bin tc06 --bin tape-engine
bin=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
work=$(mktemp -d)
cleanup() {
  for file in "$work"/*.pid; do [ -e "$file" ] && kill "$(cat "$file")" 2>/dev/null; done || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

cat >"$work/params.toml" <<'TOML'
[step]
base_ns = 18_000_000
per_stream_ns = 7_000_000
per_prefill_token_ns = 300_000
per_context_token_ns = 400
TOML
# What starts an engine, the first time and after a kill: nothing of it may hold on to the caller's output.
engine() { # number, address
  echo "cd '$PWD' && { nohup '$bin/tape-engine' --instances 1 --first $1 --listen $2 --params '$work/params.toml'" \
    "--tape fixtures/tapes/tape-a-tenth.json --pool fixtures/pool-tenth" \
    ">'$work/inst$1.json' 2>'$work/inst$1.log' & echo \$! >'$work/inst$1.pid'; }"
}
for n in 1 2 3; do sh -c "$(engine "$n" 127.0.0.1:0)"; done
declare -A at
for n in 1 2 3; do
  for _ in $(seq 200); do [ -s "$work/inst$n.json" ] && break; sleep 0.05; done
  at[$n]=$(jq -r '.instances[0]' "$work/inst$n.json") || { cat "$work/inst$n.log" >&2; fail "inst$n did not start"; }
done

# HAProxy has no port 0 that it would tell us of: ask the system for a free one.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed -e "s|/run/haproxy/asr.sock|$work/stats.sock|" -e "s|bind :9000|bind 127.0.0.1:$port|" \
  -e "s|gpu-host:9001|${at[1]}|" -e "s|gpu-host:9002|${at[2]}|" -e "s|gpu-host:9003|${at[3]}|" \
  docs/lb/haproxy.cfg >"$work/haproxy.cfg"
haproxy -db -f "$work/haproxy.cfg" >"$work/haproxy.log" 2>&1 &
echo $! >"$work/haproxy.pid"
for _ in $(seq 200); do [ -S "$work/stats.sock" ] && break; sleep 0.05; done
[ -S "$work/stats.sock" ] || { cat "$work/haproxy.log" >&2; fail "haproxy did not start"; }
statistics() {
  python3 - "$work/stats.sock" <<'PY'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"show stat\n")
sys.stdout.buffer.write(b"".join(iter(lambda: s.recv(65536), b"")))
PY
}

cat >"$work/site.toml" <<TOML
[server]
url = "ws://127.0.0.1:$port/asr"
window_ms = 2000
[tape]
manifest = "$PWD/fixtures/tapes/tape-a-tenth.json"
pool = "$PWD/fixtures/pool-tenth"
[load]
ramp_s = 0.05
warm_up_s = 2
cool_down_s = 2
finish_s = 10
[load.timeouts]
mute_s = 10
[slo]
ttft_basis = "window"
# A shared machine wakes us late now and then. That is not what is tried here.
wake_late_p99_ms = 500
[fault]
steady_s = 6
down_s = 14
after_s = 14
[fault.recovery]
step_s = 2
within_s = 10
TOML
for n in 1 2 3; do
  cat >>"$work/site.toml" <<TOML
[[instances]]
name = "inst$n"
health = "http://${at[$n]}/health"
metrics = "http://${at[$n]}/metrics"
direct = "ws://${at[$n]}/asr"
[instances.commands]
kill = "kill -9 \$(cat '$work/inst$n.pid')"
start = """$(engine "$n" "${at[$n]}")"""
TOML
done

echo "killing an engine behind HAProxy at full load, then at two thirds"
code=0
"$bin/tc06" --config "$work/site.toml" --n-star 36 --out "$work/results" 2>"$work/tc06.err" || code=$?
run=$(ls -d "$work"/results/tc06-*)
statistics >"$work/stats.csv"
[ "$code" = 0 ] || { cat "$work/tc06.err" "$run/events.jsonl" "$work/stats.csv" >&2; fail "tc06 exited with $code"; }
python3 e2e/agree.py "$run" "$work/stats.csv"
echo "haproxy: all well"
