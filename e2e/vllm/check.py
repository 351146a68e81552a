"""Do our counts equal the server's own? The arguments are the phase and the folder with its files."""

import collections
import csv
import json
import pathlib
import sys

phase, work = sys.argv[1], pathlib.Path(sys.argv[2])
(run,) = (work / f"results-{phase}").glob("tc03-*")


def page(name):
    sums = collections.Counter()
    for line in (work / name).read_text().splitlines():
        if line and line[0] != "#":
            series, value = line.rsplit(" ", 1)
            sums[series.split("{")[0]] += float(value)
    return sums


before, after = page(f"{phase}-before.prom"), page(f"{phase}-after.prom")
delta = {name: after[name] - before[name] for name in after}
# Every call counts here, in the window or not: the server does not know of windows.
calls = [json.loads(line) for line in (run / "calls.jsonl").open()]
outcomes = collections.Counter(call["outcome"] for call in calls)
tier = next(csv.DictReader((run / "tiers.csv").open()))
print(f"  {len(calls)} calls: {dict(outcomes)}; verdict {tier['verdict']}: {tier['reasons'] or 'no reasons'}")
print(f"  first text p50 {tier['ttft_wire_s_p50'] or 'unknown'} s, final p50 {tier['final_s_p50'] or 'unknown'} s")
wrong = []


def same(what, ours, theirs):
    print(f"  {what}: ours {ours:g}, vLLM {theirs:g}{'' if ours == theirs else '  <-- differ'}")
    if ours != theirs:
        wrong.append(what)


requests = delta["vllm:request_success_total"]
ended = [call for call in calls if call["outcome"] not in ("cancelled", "connect_refused")]
if phase == "rolling":
    logs = [json.loads(line) for line in (work / "rolling.log").read_text().splitlines()]
    same("windows, and requests that succeeded", sum(log["windows"] for log in logs), requests)
    same("calls, and sessions of the gateway", len(calls), len(logs))
else:
    same("calls that ended, and requests that succeeded", len(ended), requests)
    same("calls, and sockets", len(calls), delta["vllm:websocket_connections_total"])
same("preemptions", float(tier["preempt_delta"] or 0), delta["vllm:num_preemptions_total"])
same("cache hits", 0, delta["vllm:prefix_cache_hits_total"] + delta["vllm:mm_cache_hits_total"])
same("requests left over", 0, after["vllm:num_requests_running"] + after["vllm:num_requests_waiting"])
if not any(outcome in outcomes for outcome in ("ok", "tail_lost")):
    wrong.append("no call came through")
sys.exit(f"{phase}: these differ: {', '.join(wrong)}" if wrong else 0)
