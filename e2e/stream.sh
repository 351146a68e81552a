#!/usr/bin/env bash
# tape-stream against a real vLLM (CPU build) with a toy chat model: our counts have to equal the server's own.
#
# The text is nonsense, the speed means nothing; events, token counts, finish reasons, cache hits and refusals are genuine.
#
# KEEP=FOLDER keeps what was written; VLLM_AT=HOST:PORT and VLLM_MODEL=FOLDER use a server that runs already.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

cargo build --quiet --bin tape-stream
bin=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
venv=$PWD/target/e2e/vllm-venv
work=$(mktemp -d)
toy=text
. e2e/vllm/serve.sh
cleanup() {
  [ -z "${KEEP:-}" ] || { mkdir -p "$KEEP"; cp -r "$work"/*.log "$work"/*.prom "$work"/out-* "$KEEP" 2>/dev/null || true; }
  vllm_stop inst1
  rm -rf "$work"
}
trap cleanup EXIT

if [ -n "${VLLM_AT:-}" ]; then
  at=$VLLM_AT
  model=${VLLM_MODEL:?the folder of the toy model that it serves}
else
  bash e2e/vllm/install.sh "$venv"
  port=$(free_port)
  at=127.0.0.1:$port
  model=$work/model-text
  echo "starting vLLM (one to several minutes)"
  vllm_start inst1 "$port" "$(($(nproc) - 1))" --max-model-len 4096 --kv-cache-memory-bytes 64M --enable-prompt-tokens-details
  vllm_wait inst1 "$port"
fi
stop_token=$(cat "$model/stop_token")
echo "vLLM $(curl -fs "http://$at/version") at $at"

ask() { # name, exit code, flags...; asks for the model $served
  local name=$1 wanted=$2 code=0
  shift 2
  echo "$name: tape-stream $*" | sed "s|$work|.|g"
  curl -fs "http://$at/metrics" >"$work/$name-before.prom"
  "$bin/tape-stream" --url "http://$at" --model "${served:-toy}" --out "$work/out-$name" "$@" >"$work/$name.log" 2>&1 || code=$?
  sleep 2 # the server's page lags
  curl -fs "http://$at/metrics" >"$work/$name-after.prom"
  [ "$code" = "$wanted" ] || { cat "$work/$name.log" >&2; fail "$name: exit code $code, not $wanted"; }
  python3 e2e/vllm/check_stream.py "$name" "$work"
}

printf '%s\n' 'when does the next train leave' 'the number you have dialled is not in use' 'system user assistant' >"$work/prompts.txt"
# Far more than a block of the cache, which on a CPU holds 128 tokens.
for _ in $(seq 12); do echo "could you tell me when the next train leaves for the coast, and whether it waits for the boat"; done >"$work/long.txt"
# Random weights find no end. With a push towards it they do, after a few words or, with a hard one, at once.
generation() { # bias, fewest tokens
  printf '[generation]\ntemperature = 1.0\n[generation.extra]\nmin_tokens = %s\nlogit_bias = { "%s" = %s }\n' "$2" "$stop_token" "$1"
}
generation 2.0 4 >"$work/ends.toml"
generation 100.0 0 >"$work/empty.toml"

ask closed 0 --prompts "$work/prompts.txt" --max-tokens 32 --requests 24 --concurrency 2
ask open 0 --prompts "$work/prompts.txt" --max-tokens 16 --rate 2 --requests 20 --no-cold
ask ends 0 --config "$work/ends.toml" --prompt 'why' --max-tokens 400 --requests 12 --concurrency 2
ask empty 1 --config "$work/empty.toml" --prompt 'why' --requests 3 --no-cold
ask fresh 0 --prefix-file "$work/long.txt" --unique --prompt 'why' --max-tokens 8 --requests 10
ask repeated 0 --prefix-file "$work/long.txt" --prompt 'why' --max-tokens 8 --requests 10
served=nobody ask refused 1 --prompt 'why' --requests 2 --no-cold
ask overlong 1 --prompt 'why' --max-tokens 5000 --requests 2 --no-cold
echo "stream: all well"
