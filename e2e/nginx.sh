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
. e2e/engines.sh
engines

# nginx has no port 0 that it would tell us of: ask the system for a free one.
port=$(free_port)
sed -e "s|/run/nginx-asr.pid|$work/nginx.pid|" -e "s|/var/log/nginx/asr-error.log|$work/nginx.log|" \
  -e "s|listen 9000|listen 127.0.0.1:$port|" -e "s|gpu-host:9001|${at[1]}|" -e "s|gpu-host:9002|${at[2]}|" \
  -e "s|gpu-host:9003|${at[3]}|" docs/lb/nginx.conf >"$work/nginx.conf"
"$nginx" -v
"$nginx" -p "$work" -c "$work/nginx.conf" -g 'daemon off;' >"$work/nginx.out" 2>&1 &
for _ in $(seq 600); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.05; done
[ -s "$work/nginx.pid" ] || { cat "$work/nginx.out" "$work/nginx.log" >&2; fail "nginx did not start"; }

WORK=$work python3 e2e/balancer.py "127.0.0.1:$port" inst1 inst2 inst3 || { tail -5 "$work/nginx.log" >&2; exit 1; }
echo "nginx: all well"
