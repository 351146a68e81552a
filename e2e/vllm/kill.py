"""What TC-06 says of a vLLM that was killed, against the gateway's log and the pages of the servers. TOKENS are those of an answer.

    kill.py FOLDER TOKENS
"""

import collections
import json
import pathlib
import sys

import counts

work, answer = pathlib.Path(sys.argv[1]), int(sys.argv[2])
(run,) = (work / "results-kill").iterdir()
(incident,) = json.loads((run / "tc06.json").read_text())["incidents"]
victim = incident["timeline"]["instance"]
calls = counts.lines(run / "calls.jsonl")
logs = counts.lines(work / "kill.log")
ended = collections.Counter(log["outcome"] for log in logs)
outcomes = collections.Counter(call["outcome"] for call in calls)
print(f"  {len(calls)} calls: {dict(outcomes)}; sessions of the gateway: {dict(ended)}")
equal = counts.Equal()
BEGAN = "process_start_time_seconds"

refused = [call for call in calls if call["outcome"] in ("handshake", "refused_busy")]
equal.same("calls, and sessions of the gateway and refusals", len(calls), len(logs) + len(refused), "gateway")
equal.same("calls that broke, and sessions whose server failed", outcomes["server_error"], ended["upstream_failed"], "gateway")
finals = sum(outcomes[o] for o in ("ok", "tail_lost", "empty_final"))
equal.same("calls that came through, and sessions that were done", finals, ended["done"], "gateway")
moved = sum(bool(log.get("moves")) for log in logs)
broken = incident["in_flight"]["errors"].values(), incident["new_calls"]["errors"].values()
new = incident["new_calls"]["calls"]
print(f"  of the calls in flight {sum(broken[0])} broke, of {new} new ones {sum(broken[1])}; {moved} went on at another server")
equal.true("calls in flight on it broke, or went on at another server", sum(broken[0]) + moved > 0)
equal.same("new calls that broke", 0, sum(broken[1]), "gateway")
equal.true("nobody was sent to it once it was gone", incident["ejected_s"] is not None and incident["ejected_s"] < 3)
equal.true("it came back and served a call", incident["timeline"]["well_s"] is not None and incident["rejoined_s"] is not None)



def answered(name, logs):
    """Windows that a server answered, those of sessions included which left it when it was gone."""
    total = 0
    for log in logs:
        moves = log.get("moves", [])
        total += sum(move["windows"] for move in moves if move["from"] == name)
        if log["upstream"] == name:
            total += log["windows"] - sum(move["windows"] for move in moves)
    return total


def lost(log):
    """Whether a session lost the victim, by breaking or by leaving it."""
    broke = log["outcome"] == "upstream_failed" and log["upstream"] == victim
    return broke or any(move["from"] == victim for move in log.get("moves", []))


for name in ("inst1", "inst2", "inst3"):
    before = counts.page(work / f"kill-before-{name}.prom")
    after = counts.page(work / f"kill-after-{name}.prom")
    mine = logs
    if name == victim:
        equal.true(f"{name} is another process", after[BEGAN] > before[BEGAN])
        # Its counters began anew with it. The gateway logs a session when it is over: what follows those that lost it is new.
        mine = logs[max((i for i, log in enumerate(logs) if lost(log)), default=-1) + 1 :]
        before = collections.Counter()
    windows, requests = answered(name, mine), counts.SERIES["finished"]
    equal.same(f"windows of {name}, and requests that ended", windows, after[requests] - before[requests])
    tokens = after[counts.SERIES["generation_tokens"]] - before[counts.SERIES["generation_tokens"]]
    equal.same(f"tokens of {name}'s windows, and tokens generated", windows * answer, tokens)
left = "vllm:num_requests_running", "vllm:num_requests_waiting"
equal.same("requests left over", 0, sum(counts.page(work / f"kill-after-{n}.prom")[k] for n in ("inst1", "inst2", "inst3") for k in left))
sys.exit(equal.verdict("kill"))
