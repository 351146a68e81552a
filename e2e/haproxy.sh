#!/usr/bin/env bash
# A real HAProxy with docs/lb/haproxy.cfg in front of three engine processes: even spread, stickiness, ejection after a
# kill -9, a return, refusal when all engines are down. Then TC-06 for real: one of them is killed with SIGKILL at full
# load, and once more at two thirds. What TC-06 reports has to agree with HAProxy's own statistics.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v haproxy >/dev/null; then
  echo "installing haproxy"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends haproxy >/dev/null
fi
cargo build --quiet --bin tc06 --bin tape-engine
. e2e/engines.sh

cat >"$work/params.toml" <<'TOML'
[step]
base_ns = 18_000_000
per_stream_ns = 7_000_000
per_prefill_token_ns = 300_000
per_context_token_ns = 400
TOML
engine_options="--params '$work/params.toml' --tape fixtures/tapes/tape-a-tenth.json --pool fixtures/pool-tenth"
engines

# HAProxy has no port 0 that it would tell us of: ask the system for a free one.
port=$(free_port)
sed -e "s|/run/haproxy/asr.sock|$work/stats.sock|" -e "s|bind :9000|bind 127.0.0.1:$port|" \
  -e "s|gpu-host:9001|${at[1]}|" -e "s|gpu-host:9002|${at[2]}|" -e "s|gpu-host:9003|${at[3]}|" \
  docs/lb/haproxy.cfg >"$work/haproxy.cfg"
balancer_start() {
  haproxy -db -f "$work/haproxy.cfg" >"$work/haproxy.log" 2>&1 &
  echo $! >"$work/haproxy.pid"
  for _ in $(seq 600); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return; sleep 0.05; done
  cat "$work/haproxy.log" >&2
  fail "haproxy did not start"
}
haproxy -v | sed -n 1p
balancer_start
WORK=$work STATS=$work/stats.sock python3 e2e/balancer.py "127.0.0.1:$port" inst1 inst2 inst3

# TC-06 counts from nothing: statistics of a fresh process, in front of fresh engines.
kill "$(cat "$work/haproxy.pid")" && wait "$(cat "$work/haproxy.pid")" || true
for n in 1 2 3; do sh "$work/inst$n.start"; done
for n in 1 2 3; do
  for _ in $(seq 600); do (exec 3<>"/dev/tcp/${at[$n]/://}") 2>/dev/null && break; sleep 0.05; done
done
balancer_start
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
start = "sh '$work/inst$n.start'"
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
