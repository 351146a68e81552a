"""Do our counts equal the servers' own? The arguments are the phase, its back end, the folder with its files, the tokens
of an answer, and the instances. With `rolling`, 13,13,6 are the tokens of the first window, the second, and each further one.

    check.py PHASE realtime|rolling|transcriptions FOLDER TOKENS INSTANCE...
"""

import collections
import pathlib
import sys

import counts

phase, back_end, work, tokens, *instances = sys.argv[1:]
work, tokens = pathlib.Path(work), [int(n) for n in tokens.split(",")]
(run,) = (work / f"results-{phase}").iterdir()

before = {name: counts.page(work / f"{phase}-before-{name}.prom") for name in instances}
after = {name: counts.page(work / f"{phase}-after-{name}.prom") for name in instances}
delta = {name: {key: after[name][key] - before[name][key] for key in after[name]} for name in instances}
# Every call counts here, in the window or not: the server does not know of windows.
calls = counts.lines(run / "calls.jsonl")
tiers = counts.tiers(run)
outcomes = collections.Counter(call["outcome"] for call in calls)
first, verdicts = tiers[0], ", ".join(dict.fromkeys(tier["verdict"] for tier in tiers))
print(f"  {len(calls)} calls: {dict(outcomes)}; verdict {verdicts}: {tiers[-1]['reasons'] or 'no reasons'}")
print(f"  first text p50 {first['ttft_wire_s_p50'] or 'unknown'} s, final p50 {first['final_s_p50'] or 'unknown'} s")
equal = counts.Equal()


def theirs(name):
    return sum(delta[instance][name] for instance in instances)


finished, made = theirs(counts.SERIES["finished"]), theirs(counts.SERIES["generation_tokens"])
ended = [call for call in calls if call["outcome"] in ("ok", "tail_lost", "empty_final")]
equal.true("every call came through", len(ended) == len(calls) > 0)
# Random weights never end a text, so that each answer has as many tokens as it may have; others are known by their text.
if back_end == "rolling":
    logs = counts.lines(work / f"{phase}.log")
    windows = sum(log["windows"] for log in logs)
    equal.same("calls, and sessions of the gateway", len(calls), len(logs), "gateway")
    equal.same("windows, and requests that ended", windows, finished)
    each = sum(tokens[min(n, len(tokens) - 1)] for log in logs for n in range(log["windows"]))
    equal.same("tokens of the windows, and tokens generated", each, made)
elif back_end == "realtime":
    equal.same("calls, and sockets", len(calls), theirs("vllm:websocket_connections_total"))
    equal.same("calls that ended, and requests that ended", len(ended), finished)
    equal.same("tokens of the segments, and tokens generated", sum(map(counts.segments, ended)) * tokens[0], made)
else:
    equal.same("calls that ended, and requests that ended", len(ended), finished)
    equal.same("tokens of the answers, and tokens generated", len(ended) * tokens[0], made)
if len(instances) > 1:
    served = collections.Counter(call.get("instance") for call in calls)
    for name in instances:
        ours = served[name]
        if back_end == "rolling":
            equal.same(f"calls that {name} served", ours, sum(log["upstream"] == name for log in logs), "gateway")
        else:
            equal.same(f"calls that {name} served, and its sockets", ours, delta[name]["vllm:websocket_connections_total"])
for name in instances:
    for ours, value in counts.series(run, name).items():
        equal.same(f"{ours} of {name} in our series", value, delta[name][counts.SERIES[ours]])
preempted = sum(float(tier["preempt_delta"] or 0) for tier in tiers)
equal.same("preemptions in the verdict", preempted, theirs(counts.SERIES["preemptions"]))
hits = theirs("vllm:prefix_cache_hits_total") + theirs("vllm:mm_cache_hits_total")
if phase == "cached":
    hit_rate = max(float(tier["prefix_hit_rate"] or 0) for tier in tiers)
    print(f"  prefix cache: {hits:g} tokens hit, our rate {hit_rate:.3f}")
    equal.true("caches that are on make the tier suspect", verdicts == "suspect" and hits > 0)
else:
    equal.same("cache hits", 0, hits)
left = sum(after[name]["vllm:num_requests_running"] + after[name]["vllm:num_requests_waiting"] for name in instances)
equal.same("requests left over", 0, left)
drained = [tier["drain_s"] for tier in tiers]
print(f"  drained {', '.join(f'{float(s):.1f} s' if s else 'never' for s in drained)} after the last call")
equal.true("the servers drained", all(drained))
if phase.startswith("marks"):
    sentence = "the number you have dialled is not in use"
    times = {"realtime": counts.segments, "rolling": lambda call: 1}[back_end]
    texts = [text["finals"] for path in run.glob("texts-*.jsonl") for text in counts.lines(path)]
    wanted = collections.Counter(" ".join([sentence] * times(call)) for call in calls)
    equal.true("every text is the sentence, once for each piece of audio, without marks", collections.Counter(texts) == wanted)
    equal.same("calls with an RTF, and calls", sum(call["rtf"] is not None for call in calls), len(calls), "all")
    equal.same("calls that break the rules of their dialect", sum(call["violations"] for call in calls), 0, "none")
if phase == "tiny":
    equal.true("requests were preempted, and that fails the tier", preempted > 0 and tiers[-1]["verdict"] == "fail")
sys.exit(equal.verdict(phase))
