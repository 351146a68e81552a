#!/usr/bin/env bash
# A real nginx with docs/lb/nginx.conf in front of three engine processes, every port chosen by the system: even
# spread, stickiness, a kill -9, a return, and refusal when all engines are down.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v nginx >/dev/null; then
  echo "installing nginx"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends nginx-light >/dev/null
fi
nginx=$(command -v nginx || echo /usr/sbin/nginx)
cargo build --quiet --bin tape-engine
bin=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
work=$(mktemp -d)
cleanup() {
  for file in "$work"/*.pid; do [ -e "$file" ] && kill "$(cat "$file")" 2>/dev/null; done || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# What starts an engine, the first time and after a kill: nothing of it may hold on to the caller's output.
engine() { # number, address
  echo "nohup '$bin/tape-engine' --instances 1 --first $1 --listen $2 >'$work/inst$1.json' 2>'$work/inst$1.log' &" \
    "echo \$! >'$work/inst$1.pid'"
}
declare -A at
for n in 1 2 3; do sh -c "$(engine "$n" 127.0.0.1:0)"; done
for n in 1 2 3; do
  for _ in $(seq 200); do [ -s "$work/inst$n.json" ] && break; sleep 0.05; done
  at[$n]=$(jq -r '.instances[0]' "$work/inst$n.json") || { cat "$work/inst$n.log" >&2; fail "inst$n did not start"; }
  engine "$n" "${at[$n]}" >"$work/inst$n.start"
done

# nginx has no port 0 that it would tell us of: ask the system for a free one.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed -e "s|/run/nginx-asr.pid|$work/nginx.pid|" -e "s|/var/log/nginx/asr-error.log|$work/nginx.log|" \
  -e "s|listen 9000|listen 127.0.0.1:$port|" -e "s|gpu-host:9001|${at[1]}|" -e "s|gpu-host:9002|${at[2]}|" \
  -e "s|gpu-host:9003|${at[3]}|" docs/lb/nginx.conf >"$work/nginx.conf"
"$nginx" -v
"$nginx" -p "$work" -c "$work/nginx.conf" -g 'daemon off;' >"$work/nginx.out" 2>&1 &
for _ in $(seq 200); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.05; done
[ -s "$work/nginx.pid" ] || { cat "$work/nginx.out" "$work/nginx.log" >&2; fail "nginx did not start"; }

WORK=$work python3 e2e/nginx.py "127.0.0.1:$port" inst1 inst2 inst3 || { tail -5 "$work/nginx.log" >&2; exit 1; }
echo "nginx: all well"
