# Starts, kills and stops real vLLM servers on loopback; to be sourced. Needs $venv (see install.sh, absolute) and $work.
# toy=text serves a chat model called `toy`, toy=marks a Qwen3-ASR that says one sentence, otherwise its text is nonsense.
# What they take of the machine: 2.3 GB of memory each, and one and a half minutes on an idle core to start.

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Starts a server in the background; vllm_wait waits for it. What starts it stays in $work/NAME.start, so that it can be
# started again by whoever killed it: nothing of it holds on to the caller's output.
vllm_start() { # name, port, core, further arguments of `vllm serve`...
  local name=$1 port=$2 core=$3 served=Qwen/Qwen3-ASR-0.6B
  local kind=(--hf-overrides '{"architectures": ["Qwen3ASRRealtimeGeneration"]}') weights=dummy model=$work/model${toy:+-$toy}
  shift 3
  if [ "${toy:-}" = text ]; then served=toy kind=(); fi
  if [ "${toy:-}" = marks ]; then weights=auto; fi
  [ -e "$model/config.json" ] || "$venv/bin/python" e2e/vllm/toy_model.py "$model" ${toy:+"$toy"}
  {
    echo "export VLLM_CPU_OMP_THREADS_BIND=$core VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1"
    # Whoever starts it again may stand before all others, on a core of its own: a server never does.
    printf '%q ' chrt --other 0 taskset --cpu-list "0-$(($(nproc) - 1))" setsid "$venv/bin/vllm" serve "$model" --served-model-name "$served" --host 127.0.0.1 \
      --port "$port" --load-format $weights --dtype bfloat16 --enforce-eager --max-num-seqs 64 \
      ${kind[@]+"${kind[@]}"} "$@"
    printf '>>%q 2>&1 </dev/null &\necho $! >%q\n' "$work/$name.log" "$work/$name.pid"
  } >"$work/$name.start"
  bash "$work/$name.start"
}

vllm_wait() { # name, port
  local pid
  pid=$(cat "$work/$1.pid")
  for _ in $(seq 1800); do
    curl -fs --max-time 2 -o /dev/null "http://127.0.0.1:$2/health" && return
    kill -0 "$pid" 2>/dev/null || { tail -20 "$work/$1.log" >&2; echo "$1 died" >&2; return 1; }
    sleep 1
  done
  echo "$1 is not ready after half an hour" >&2
  return 1
}

vllm_stop() { # name
  local pid
  pid=$(cat "$work/$1.pid" 2>/dev/null) || return 0
  rm -f "$work/$1.pid"
  # The engine is a process of its own in the same group. A number may be somebody else's by now: a name is asked for too.
  pkill -TERM -g "$pid" -f 'vllm serve' || true
  for _ in $(seq 40); do pgrep -g "$pid" -f -i vllm >/dev/null || return 0; sleep 0.5; done
  pkill -KILL -g "$pid" -f -i vllm || true
}
