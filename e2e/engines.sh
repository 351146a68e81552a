# Three engine processes for a balancer to stand in front of, every port chosen by the system; to be sourced.
# Gives $bin, $work (gone at the end, with every process whose number a *.pid in it holds), fail, ${at[N]} (addresses),
# free_port. What starts an engine again stays in $work/instN.start. $engine_options go to every engine.

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

bin=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
work=$(mktemp -d)
cleanup() {
  for file in "$work"/*.pid; do [ -e "$file" ] && kill "$(cat "$file")" 2>/dev/null; done || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

# What starts an engine, the first time and after a kill: nothing of it may hold on to the caller's output.
engine() { # number, address
  echo "cd '$PWD' && { nohup '$bin/tape-engine' --instances 1 --first $1 --listen $2 ${engine_options:-}" \
    ">'$work/inst$1.json' 2>'$work/inst$1.log' & echo \$! >'$work/inst$1.pid'; }"
}
declare -A at
engines() {
  local n
  for n in 1 2 3; do sh -c "$(engine "$n" 127.0.0.1:0)"; done
  for n in 1 2 3; do
    for _ in $(seq 600); do [ -s "$work/inst$n.json" ] && break; sleep 0.05; done
    at[$n]=$(jq -r '.instances[0]' "$work/inst$n.json") || { cat "$work/inst$n.log" >&2; fail "inst$n did not start"; }
    engine "$n" "${at[$n]}" >"$work/inst$n.start"
  done
}
