"""What must be true of a ladder that drove the toy server from idle into saturation.

    check.py RUN SERVER.jsonl      # what the server had of its core, and what it waited for it

On a machine that is busy with something else the server waits for its core and the client wakes late. Verdicts and
latencies then say nothing of the server and are not judged; what its words are, and that it saturates, is judged always.
"""

import csv
import json
import pathlib
import sys

run = pathlib.Path(sys.argv[1])
with (run / "tiers.csv").open() as file:
    tiers = list(csv.DictReader(file))
calls = [json.loads(line) for line in (run / "calls.jsonl").open()]
samples = [json.loads(line) for line in open(sys.argv[2])]
origin = json.loads((run / "run.json").read_text())["origin_unix_s"]
wrong = []


def check(what, ok):
    print(f"  {'ok' if ok else 'NOT SO'}: {what}")
    if not ok:
        wrong.append(what)


def number(tier, name):
    return float(tier[name]) if tier.get(name) else None


def core(tier):
    """Shares of the tier's window for which the server ran, and for which it waited for its core."""
    window = [origin + number(tier, name) for name in ("window_from_s", "window_to_s")]
    first, last = (min(samples, key=lambda s: abs(s["unix_s"] - at)) for at in window)
    wall = last["unix_s"] - first["unix_s"]
    return (last["ran_s"] - first["ran_s"]) / wall, (last["waited_s"] - first["waited_s"]) / wall


print("streams verdict   ttft p95   final p95   wer    wer of finals   server ran, waited   outcomes")
shares = {}
for tier in tiers:
    ran, waited = shares[tier["streams"]] = core(tier)
    outcomes = " ".join(f"{k[8:]} {v}" for k, v in tier.items() if k.startswith("outcome_") and v not in ("", "0"))
    cells = [tier["streams"], tier["verdict"], tier["ttft_speech_s_p95"], tier["final_s_p95"], tier["wer"]]
    print("  ".join(cells + [tier["wer_finals"], f"{ran:.2f} {waited:.2f}", outcomes]))

low, high = tiers[0], tiers[-1]
ran, waited = shares[low["streams"]]
busy = waited > 0.1 * ran or low["verdict"] == "invalid"
check("every call of the lowest tier comes through", number(low, "err_streams") == 0)
for tier in tiers:
    if number(tier, "err_streams") == 0:
        check(f"the words are exact, {tier['streams']} streams", number(tier, "wer") == 0)
if busy:
    late = low["wake_late_p99_ms"] or "unknown"
    print(f"  not judged, for this machine is busy: the server ran {ran:.2f} and waited {waited:.2f} of the time; we woke {late} ms late")
else:
    check("the lowest tier passes", low["verdict"] == "pass")
    check("every call of it is ok, and the words of its finals are exact", number(low, "outcome_ok") == number(low, "calls_counted"))
    check("finals come later and later under load", (number(high, "final_s_p95") or 99) > 4 * number(low, "final_s_p95"))
check("the highest tier does not pass", high["verdict"] in ("fail", "invalid"))
check("its finals are too late, or do not come", (number(high, "final_s_p95") or 99) > 2)
check(f"the server saturates: it ran or waited for its core {sum(shares[high['streams']]):.0%} of the time", sum(shares[high["streams"]]) > 0.9)
check(f"and did not at idle: {sum(shares[low['streams']]):.0%}", busy or ran + waited < 0.6)

lost = [c for c in calls if c["counted"] and c["outcome"] == "tail_lost"]
top = [c for c in calls if c["counted"] and c["step"] == high["step"]]
# A tail that was never made final costs words only where finals alone are read.
print(f"  tails lost: {len(lost)} of {sum(c['counted'] for c in calls)} counted calls, {len(top)} at the top")
for tier in tiers:
    if number(tier, "outcome_tail_lost"):
        check(f"lost tails cost words in the finals alone, {tier['streams']} streams", number(tier, "wer_finals") > number(tier, "wer"))
check("every outcome of the highest tier has a name", all(c["outcome"] for c in top))
sys.exit(f"not so: {', '.join(wrong)}" if wrong else 0)
