#!/usr/bin/env bash
# A ladder against a server that nobody here wrote: sherpa-onnx's stock streaming WebSocket server from its PyPI
# package, with a toy model that hears tones (sherpa/toy_model.py). The words are known exactly, so word error rates
# are exact; the model is given enough work that the server, on one core, saturates in a ladder of a few short tiers.
#
# The server listens on every address and has no setting for that: it gets a network namespace of its own, with the
# client inside. Client and server have a core each, where there are two.
set -euo pipefail
cd "$(dirname "$0")/.."
. e2e/namespace.sh

venv=target/e2e/sherpa-venv
if ! inside; then
  # Outside: whatever needs a network or a compiler.
  namespace_or_77
  cargo build --quiet --bin tc03 --bin tapectl
  if [ ! -x "$venv/bin/sherpa-onnx-online-websocket-server" ]; then
    echo "installing sherpa-onnx into $venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet sherpa-onnx-bin==2.0.1 sherpa-onnx-core==2.0.1 numpy onnx
  fi
  enter e2e/sherpa.sh "$@"
  exit
fi

# Inside the namespace.
bin=${CARGO_TARGET_DIR:-target}/debug
tiers=${TIERS:-2,10,30,90}
products=${WORK:-400}
server_core=$(($(nproc) - 1))
# The client has to be on time, or its tiers are invalid: where the system allows it, it goes before all others. It
# takes less than a hundredth of a core.
client=(taskset -c 0)
chrt --rr 1 true 2>/dev/null && client+=(chrt --rr 1)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
}
trap cleanup EXIT
loopback_up

"$venv/bin/python" e2e/sherpa/toy_model.py "$work/model" --work "$products"
python3 e2e/sherpa/speak.py "$work/pool" 5:4 8:2
"$bin/tapectl" freeze "$work/pool" --spec 5:3,8:1 --name tones --out "$work/tones.json" >/dev/null

echo "server: $("$venv/bin/pip" list 2>/dev/null | awk '/^sherpa-onnx-bin/ { print $1, $2 }') on core $server_core, $products products per frame"
taskset -c "$server_core" "$venv/bin/sherpa-onnx-online-websocket-server" --port=6006 --num-work-threads=1 \
  --num-threads=1 --tokens="$work/model/tokens.txt" --t-one-ctc-model="$work/model/model.onnx" --sample-rate=8000 \
  --input-sample-rate=16000 --max-batch-size=8 >"$work/server.log" 2>&1 &
pids+=($!)
server=$!
up() { (exec 3<>/dev/tcp/127.0.0.1/6006) 2>/dev/null; }
for _ in $(seq 1200); do
  up && break
  kill -0 "$server" 2>/dev/null || { cat "$work/server.log" >&2; fail "the server did not start"; }
  sleep 0.1
done
up || fail "the server does not listen after two minutes"

cat >"$work/site.toml" <<TOML
[server]
url = "ws://127.0.0.1:6006/"
dialect = "sherpa-onnx"
[tape]
manifest = "$work/tones.json"
pool = "$work/pool"
[load]
ramp_s = 0.1
warm_up_s = 5
loops = 1
loops_small = 2
cool_down_s = 5
finish_s = 20
[load.timeouts]
final_s = 20
[ladder]
refine = false
[slo]
ttft_basis = "speech"
TOML

# What the server had of its core and what it waited for it, twice a second: whether it saturates, and whether it was let.
python3 - "$server" >"$work/server.jsonl" <<'PY' &
import json, pathlib, sys, time
tasks = pathlib.Path(f"/proc/{sys.argv[1]}/task")
while tasks.exists():
    both = [tuple(map(int, (task / "schedstat").read_text().split()[:2])) for task in tasks.iterdir()]
    ran, waited = (sum(ns) / 1e9 for ns in zip(*both))
    print(json.dumps({"unix_s": time.time(), "ran_s": ran, "waited_s": waited}), flush=True)
    time.sleep(0.5)
PY
pids+=($!)
code=0
"${client[@]}" "$bin/tc03" --config "$work/site.toml" --tiers "$tiers" --out "$work/results" || code=$?
run=$(ls -d "$work"/results/tc03-*)
echo "tc03 exited with $code"
kill -0 "$server" || { tail "$work/server.log" >&2; fail "the server died"; }
[ -z "${KEEP:-}" ] || { rm -rf "$KEEP"; cp -r "$run" "$KEEP"; }
python3 e2e/sherpa/check.py "$run" "$work/server.jsonl"
echo "sherpa: all well"
