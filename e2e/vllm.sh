#!/usr/bin/env bash
# Real vLLM servers (CPU build) with a toy model: one caller (TC-01), a server's own socket and its uploads driven
# directly, three servers behind the gateway with both back ends, callers who leave, drains, a server that is killed with
# SIGKILL under load (TC-06). Then one with its caches on, whose figures are suspect, and one so small that it preempts
# and that a long call would kill. Our counts of sessions, requests, tokens and preemptions have to equal the servers'.
#
# The text is nonsense, the speed means nothing; everything around them is genuine. One server more has weights that say a
# sentence behind the marks of the real model. KEEP=FOLDER keeps what was written.
# ONLY="PHASE..." runs some of: one three kill marks cached tiny.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

cargo build --quiet --bin tc01 --bin tc03 --bin tc06 --bin tapectl --bin tape-gateway
bin=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
mkdir -p target/e2e
venv=$PWD/target/e2e/vllm-venv
bash e2e/vllm/install.sh "$venv"
work=$(mktemp -d)
. e2e/vllm/serve.sh
all=(inst1 inst2 inst3 marks cached tiny)
cleanup() {
  for file in "$work"/gateway-*.pid; do [ -e "$file" ] && kill "$(cat "$file")" 2>/dev/null; done || true
  for name in "${all[@]}"; do vllm_stop "$name" & done
  wait 2>/dev/null || true
  [ -z "${KEEP:-}" ] || { mkdir -p "$KEEP" && cp -r "$work"/* "$KEEP"; }
  rm -rf "$work"
}
trap cleanup EXIT

only=" ${ONLY:-one three kill marks cached tiny} "
wanted() { for phase in "$@"; do [[ $only == *" $phase "* ]] && return; done; return 1; }
last_core=$(($(nproc) - 1))
# The client has to be on time: where the system allows it, it goes before all others.
client=(taskset -c 0)
chrt --rr 1 true 2>/dev/null && client+=(chrt --rr 1)
declare -A at
vllm() { # name, further arguments of `vllm serve`...
  local name=$1 port
  shift
  port=$(free_port)
  at[$name]=127.0.0.1:$port
  echo "starting vLLM $name (one to several minutes)"
  vllm_start "$name" "$port" "$last_core" "$@"
  vllm_wait "$name" "$port"
  echo "$(date +%T) $name: vLLM $(curl -fs "http://${at[$name]}/version") at ${at[$name]}"
}

# Every port is the system's choice.
gateway() { # name, back end and further flags (one word), instances...
  local name=$1 back_end=$2 upstreams
  shift 2
  upstreams=$(for n in "$@"; do printf '%s=http://%s,' "$n" "${at[$n]}"; done)
  # shellcheck disable=SC2086
  taskset -c 0 "$bin/tape-gateway" --backend $back_end --upstream "${upstreams%,}" --timeout-s 300 --drain-s 300 \
    >"$work/$name.json" 2>"$work/$name.log" &
  echo $! >"$work/gateway-$name.pid"
  for _ in $(seq 200); do [ -s "$work/$name.json" ] && break; sleep 0.05; done
  listen=$(jq -r .listen "$work/$name.json")
}
gateway_gone() { # name; its log is whole afterwards
  wait "$(cat "$work/gateway-$1.pid")" || fail "the gateway of $1 cut calls (exit code $?)"
  rm "$work/gateway-$1.pid"
}
gateway_stop() { # name
  kill -TERM "$(cat "$work/gateway-$1.pid")"
  gateway_gone "$1"
}

# Patience throughout: the machine may be slow, and a count is a count.
site() { # name, url, dialect and its options, further tables, instances...
  local name=$1 url=$2 dialect=$3 more=$4
  shift 4
  cat >"$work/$name.toml" <<TOML
[server]
url = "$url"
$dialect
[tape]
manifest = "$tape"
pool = "$pool"
[load]
ramp_s = 1
warm_up_s = 1
loops_small = 1
cool_down_s = 0
finish_s = 300
[load.timeouts]
connect_s = 60
mute_s = 300
idle_s = 300
final_s = 300
[ladder]
refine = false
[slo.live]
ttft_p95_s = 600
error_share = 1
[run]
out = "$work/results-$name"
$more
TOML
  for n in "$@"; do
    cat >>"$work/$name.toml" <<TOML
[[instances]]
name = "$n"
health = "http://${at[$n]}/health"
metrics = "http://${at[$n]}/metrics"
kind = "vllm"
TOML
    [ "$n" != "${victim:-}" ] || cat >>"$work/$name.toml" <<TOML
[instances.commands]
kill = "pkill -9 -g \$(cat '$work/$n.pid') -f -i vllm"
start = "bash '$work/$n.start'"
TOML
  done
}
pages() { # name, before or after, instances...
  local name=$1 when=$2
  shift 2
  for n in "$@"; do curl -fs --max-time 60 "http://${at[$n]}/metrics" >"$work/$name-$when-$n.prom"; done
}
# Plays a case; 1: over the limits, as segments of 5 s always are; 4: no verdict. Counts are counts.
play() { # name, instances (one word), command...
  local name=$1 instances=$2 code=0
  shift 2
  # shellcheck disable=SC2086
  pages "$name" before $instances
  "${client[@]}" "$bin/$1" --config "$work/$name.toml" "${@:2}" >"$work/$name.out" 2>&1 || code=$?
  sleep 3 # the server's gauges and socket counters lag by seconds
  # shellcheck disable=SC2086
  pages "$name" after $instances
  [ "$code" -le 1 ] || [ "$code" = 4 ] || { cat "$work/$name.out" >&2; fail "$name: $1 exited with $code"; }
}
# The toy never ends a text: 64 tokens an answer, wherever nobody asks for fewer.
check() { python3 e2e/vllm/check.py "$1" "$2" "$work" "$3" "${@:4}"; } # name, back end, tokens, instances...

# What a gateway's callers are told, by its back end.
declare -A asr=([realtime]='dialect = "pcm-json"
window_ms = 5000' [rolling]='dialect = "pcm-json"
window_ms = 2000')

pool=$PWD/fixtures/pool-tenth
tape=$PWD/fixtures/tapes/tape-a-tenth.json
caches_off=(--no-enable-prefix-caching --mm-processor-cache-gb 0)
realtime='dialect = "vllm-realtime"
window_ms = 5000
[server.options]
model = "Qwen/Qwen3-ASR-0.6B"
language_marks = false
max_model_len = 4096'
uploads='dialect = "openai-transcriptions"
[server.options]
model = "Qwen/Qwen3-ASR-0.6B"
max_completion_tokens = 32'

if wanted one three kill; then vllm inst1 --max-model-len 4096 --kv-cache-memory-bytes 64M "${caches_off[@]}"; fi

if wanted one; then
  echo "TC-01 over vllm-realtime, directly"
  site tc01 "ws://${at[inst1]}/v1/realtime" "$realtime" "" inst1
  play tc01 inst1 tc01
  check tc01 realtime 64 inst1

  echo "vllm-realtime, directly, 2 streams"
  site direct "ws://${at[inst1]}/v1/realtime" "$realtime" "" inst1
  play direct inst1 tc03 --tiers 2
  check direct realtime 64 inst1

  echo "openai-transcriptions, directly, 2 streams"
  site uploads "http://${at[inst1]}/v1/audio/transcriptions" "$uploads" "" inst1
  play uploads inst1 tc03 --tiers 2
  check uploads transcriptions 32 inst1

  echo "callers who leave, and a gateway that drains"
  for back_end in realtime rolling; do
    gateway "leave-$back_end" "$back_end" inst1
    python3 e2e/vllm/leave.py "$listen" "${at[inst1]}" "$back_end"
    python3 e2e/vllm/drain.py "$listen" "$(cat "$work/gateway-leave-$back_end.pid")"
    gateway_gone "leave-$back_end"
  done
fi

if wanted three kill; then
  for n in inst2 inst3; do vllm $n --max-model-len 4096 --kv-cache-memory-bytes 64M "${caches_off[@]}"; done
fi
three="inst1 inst2 inst3"

if wanted three; then
  for back_end in realtime rolling; do
    streams=3
    [ "$back_end" = rolling ] || streams=6 # rolling windows are much more work, and all three share a core
    echo "three servers behind tape-gateway, $back_end, $streams streams"
    # shellcheck disable=SC2086
    gateway "$back_end" "$back_end" $three
    # shellcheck disable=SC2086
    site "$back_end" "ws://$listen/asr" "${asr[$back_end]}" "" $three
    play "$back_end" "$three" tc03 --tiers "$streams"
    gateway_stop "$back_end"
    # shellcheck disable=SC2086
    check "$back_end" "$back_end" 64 $three
  done
fi

if wanted kill; then
  echo "TC-06: inst2 is killed with SIGKILL under 3 streams, and started again"
  # shellcheck disable=SC2086
  # Few windows and short answers: a server that starts again needs some of the core that all three share.
  gateway kill "rolling --window-s 4 --max-tokens 16" $three
  victim=inst2
  # shellcheck disable=SC2086
  site kill "ws://$listen/asr" "${asr[rolling]/2000/4000}" '[fault]
shares = [1.0]
steady_s = 20
down_s = 20
after_s = 40
well_s = 1800' $three
  play kill "$three" tc06 --n-star 3
  gateway_stop kill
  grep -vE '^Writing|: about .* left ' "$work/kill.out"
  python3 e2e/vllm/kill.py "$work" 16
fi
for n in $three; do vllm_stop "$n" & done
wait

if wanted marks; then
  toy=marks vllm marks --max-model-len 4096 --kv-cache-memory-bytes 64M "${caches_off[@]}"
  answer=$(cat "$work/model-marks/answer_tokens")
  more='keep_texts = true'
  echo "marks before each text: vllm-realtime, directly, 2 streams"
  site marks "ws://${at[marks]}/v1/realtime" "${realtime/language_marks = false/language_marks = true}" "$more" marks
  play marks marks tc03 --tiers 2
  check marks realtime "$answer" marks
  for back_end in realtime rolling; do
    echo "marks before each text: tape-gateway, $back_end, 2 streams"
    gateway "marks-$back_end" "$back_end" marks
    site "marks-$back_end" "ws://$listen/asr" "${asr[$back_end]}" "$more" marks
    play "marks-$back_end" marks tc03 --tiers 2
    gateway_stop "marks-$back_end"
    tokens=$answer
    # The first two windows are not built upon; from the third on the last five tokens are said again, and the end.
    [ "$back_end" = realtime ] || tokens=$answer,$answer,6
    check "marks-$back_end" "$back_end" "$tokens" marks
  done
  vllm_stop marks
fi

if wanted cached; then
  vllm cached --max-model-len 4096 --kv-cache-memory-bytes 64M
  echo "openai-transcriptions, caches on, 2 streams"
  # Limits that nothing breaks: what is tried is the verdict on the caches.
  site cached "http://${at[cached]}/v1/audio/transcriptions" "$uploads" '[slo]
ttft_p95_s = 600
final_p95_s = 600
wake_late_p99_ms = 60000
loadgen_cpu_share = 1' cached
  play cached cached tc03 --tiers 2
  check cached transcriptions 32 cached
  vllm_stop cached
fi

if wanted tiny; then
  vllm tiny --max-model-len 640 --kv-cache-memory-bytes 2M "${caches_off[@]}"
  realtime=${realtime/4096/640}

  echo "calls that would kill it"
  pool=$PWD/fixtures/pool-longer-tenth
  tape=$PWD/fixtures/tapes/tape-b-tenth.json
  site long "ws://${at[tiny]}/v1/realtime" "$realtime" "" tiny
  code=0
  "$bin/tc03" --config "$work/long.toml" --tiers 1 >"$work/long.out" 2>&1 || code=$?
  grep -m 1 "may kill the engine" "$work/long.out" || { cat "$work/long.out" >&2; fail "29 s in 640 tokens were not refused"; }
  [ "$code" = 2 ] || fail "a tape that is too long for the engine is a mistake in the config, not exit code $code"
  gateway long realtime tiny
  python3 e2e/vllm/long.py "$listen" 30
  gateway_stop long
  curl -fs --max-time 60 -o /dev/null "http://${at[tiny]}/health" || fail "the engine died"

  # 2,048 tokens of KV pool, and sessions that grow to 527.
  echo "vllm-realtime, tiny KV pool, 6 streams of calls of 18 s"
  "$bin/tapectl" freeze "$pool" --spec 18:1 --name eighteen --out "$work/eighteen.json" >/dev/null
  tape=$work/eighteen.json
  site tiny "ws://${at[tiny]}/v1/realtime" "$realtime" "" tiny
  play tiny tiny tc03 --tiers 6
  check tiny realtime 64 tiny
fi
echo "vllm: all well"
