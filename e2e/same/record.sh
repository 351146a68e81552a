#!/usr/bin/env bash
# Runs the programs of one build and keeps what they print and write.
# Usage: e2e/same/record.sh BIN_DIR CHECKOUT OUT [quick]
# BIN_DIR holds the programs, CHECKOUT the fixtures they read, OUT is made anew. `quick` leaves out the full-length campaign.
# Nothing here measures time: every run is a rehearsal on a paused clock with seed 1, or a calculation.
set -uo pipefail
bin=$(realpath "$1") checkout=$(realpath "$2") out=$3 quick=${4-}
rm -rf "$out"
mkdir -p "$out"
cd "$out"
# The same relative path on both sides, so that no path of a checkout stands in an output.
ln -s "$checkout/fixtures" fixtures
mkdir -p e2e
ln -s "$checkout/e2e/report" e2e/report
export XDG_CACHE_HOME=$PWD/.cache NO_COLOR=1 TERM=dumb COLUMNS=120
here=$PWD

# keep NAME COMMAND...: standard output, standard error and exit code of a command as NAME.{out,err,code}
keep() {
  local name=$1 program=$2
  shift 2
  mkdir -p "printed/$(dirname "$name")"
  "$bin/$program" "$@" >"printed/$name.out" 2>"printed/$name.err" </dev/null
  echo $? >"printed/$name.code"
  sed -i -e "s|$here|HERE|g" -e "s|$checkout|CHECKOUT|g" "printed/$name.out" "printed/$name.err"
}
tenth() { keep "$1" "$2" --rehearse --config fixtures/plans/demo-tenth.toml --out "runs/$1" "${@:3}"; }

# The main job, at full length and as events.
keep ladder tc03 --rehearse --out runs/ladder
keep ladder-json tc03 --rehearse --out runs/ladder-json --json --tiers 6,36,60 --config fixtures/plans/demo-tenth.toml
run=runs/ladder/tc03-rehearsal-seed1

# Ladders of other kinds, on the tapes a tenth as long.
tenth limits tc03 --tiers 6,36,60 --fail 'final_s:p95<=0.4 by instance' --fail 'drain_s<=600' --fail 'kv_pool_p95<0.9'
tenth repeat tc03 --tiers 24,48,60 --repeat 3
tenth sure tc03 --tiers 24,48,60 --until-sure
tenth offline tc03 --tiers 6,24 --pace off
tenth pool tc03 --streams 24 --content pool
tenth restart tc03 --tiers 24,60 --restart-each-tier

# Single cases.
for case in tc01 tc02; do tenth $case $case; done
for case in tc03b tc04 tc08; do keep "$case" "$case" --rehearse --config fixtures/plans/demo-tenth.toml --into runs/limits/tc03-rehearsal-seed1; done
tenth tc06 tc06 --n-star 24
tenth arrivals tape-arrivals --rate 300 --lines 7
tenth arrivals-json tape-arrivals --rate 300 --lines 7 --when-busy waits --json

# Campaigns.
keep campaign campaign --rehearse --config e2e/report/campaign.toml --on-drift accept --on-better accept --out runs/campaign
keep campaign-json campaign --rehearse --config e2e/report/campaign.toml --on-drift accept --on-better accept --out runs/campaign-json --json
[ "$quick" = quick ] || keep campaign-full campaign --rehearse --on-drift accept --on-better accept --out runs/campaign-full
campaign=$(find runs/campaign -mindepth 1 -maxdepth 1 -type d | head -n 1)

# Reports in both languages, and what else tape-report does.
for each in runs/*/*/; do
  name=$(basename "$(dirname "$each")")
  keep "report/$name" tape-report "$each" --lang both --out "reports/$name"
  keep "report/$name-json" tape-report diagnose "$each" --json
done
keep report/quiet-zh tape-report "$campaign" --lang zh --html-only --require 12 --out reports/require
keep report/fail tape-report "$run" --html-only --fail 'rtf:p95<=0.3' --fail 'wer<=0.1' --out reports/fail
keep report/compare tape-report compare "$run" runs/limits/tc03-rehearsal-seed1 --lang en
keep report/compare-zh tape-report compare "$run" runs/repeat/tc03-rehearsal-seed1 --lang zh
keep report/merge tape-report merge runs/limits/tc03-rehearsal-seed1 runs/repeat/tc03-rehearsal-seed1 --out merged
keep report/rescore tape-report "$run" --rescore --set slo.rtf_p95=0.3 --set slo.ttft_basis=speech --out rescored
keep report/rescore-key tape-report "$run" --rescore --set slo.rtf=0.3 --out rescored-none
keep report/diagnose tape-report diagnose "$run"

# The doctor, whose findings about this machine are not for comparison.
keep doctor/print-config tape-doctor --print-config
keep doctor/init tape-doctor --init init.toml
keep doctor/page tape-doctor metrics fixtures/metrics/vllm-metrics-realtime-load.txt
keep doctor/smi tape-doctor metrics fixtures/metrics/g01-nvidia-smi-mig.csv

# Calculators.
keep erlang/busy tape-erlang busy-hour --calls-per-hour 50 --mean-s 180
keep erlang/lines tape-erlang lines --traffic 2.5 --blocking 0.01
keep erlang/b tape-erlang b --traffic 2.5 --lines 7 --json
keep erlang/wait tape-erlang lines --traffic 10 --service-level 0.8 --within-s 20 --mean-s 180 --table
keep erlang/split tape-erlang split --traffic 24 --groups 3 --lines-each 10 --table
keep sizing/kv tape-sizing kv
keep sizing/supply tape-sizing supply
keep sizing/supply-json tape-sizing supply --json
keep sizing/instances tape-sizing instances --calls 45 --latency-calls 15
keep sizing/statement tape-sizing statement --from "$run" --n-star-long 42 --calls-per-hour 300 --mean-s 180
keep sizing/statement-json tape-sizing statement --from "$run" --json
keep sizing/what-if tape-sizing what-if --from "$run" --deployment 3x0.30 --topology 1x0.92,2x0.46
keep wer/example tape-wer fixtures/wer/example/ref.tsv fixtures/wer/example/hyp.tsv
keep wer/json tape-wer fixtures/wer/example/ref.tsv fixtures/wer/example/hyp.tsv --normalise digits-zh --json
keep tape/scan tapectl scan fixtures/pool-tenth
keep tape/freeze tapectl freeze fixtures/pool-tenth --spec tape-a --seed 1 -o tape.json
keep tape/verify tapectl verify fixtures/tapes/tape-a-tenth.json fixtures/pool-tenth

rm -rf .cache fixtures e2e
# What a run keeps compressed is compared as text.
find . -name '*.gz' -exec gunzip -f {} +
find . -type f \( -name '*.toml' -o -name '*.json' -o -name '*.jsonl' -o -name '*.html' \) -print0 |
  xargs -0 sed -i -e "s|$here|HERE|g" -e "s|$checkout|CHECKOUT|g"
