"""What must be true of a ladder that drove the toy server from idle into saturation."""

import csv
import json
import pathlib
import sys

run = pathlib.Path(sys.argv[1])
with (run / "tiers.csv").open() as file:
    tiers = list(csv.DictReader(file))
calls = [json.loads(line) for line in (run / "calls.jsonl").open()]
wrong = []


def check(what, ok):
    print(f"  {'ok' if ok else 'NOT SO'}: {what}")
    if not ok:
        wrong.append(what)


def number(tier, name):
    return float(tier[name]) if tier.get(name) else None


print("streams verdict   ttft p95   final p95   wer    wer of finals   outcomes")
for tier in tiers:
    outcomes = " ".join(f"{k[8:]} {v}" for k, v in tier.items() if k.startswith("outcome_") and v not in ("", "0"))
    cells = [tier["streams"], tier["verdict"], tier["ttft_speech_s_p95"], tier["final_s_p95"], tier["wer"]]
    print("  ".join(cells + [tier["wer_finals"], outcomes]))

low, high = tiers[0], tiers[-1]
check("the lowest tier passes", low["verdict"] == "pass")
check("its words are exact", number(low, "wer") == 0 and number(low, "wer_finals") == 0)
check("every call of it is ok", number(low, "outcome_ok") == number(low, "calls_counted"))
check("the highest tier fails", high["verdict"] == "fail")
check("finals come later and later under load", (number(high, "final_s_p95") or 99) > 4 * number(low, "final_s_p95"))

lost = [c for c in calls if c["counted"] and c["outcome"] == "tail_lost"]
top = [c for c in calls if c["counted"] and c["step"] == high["step"]]
# A tail that was never made final costs words only where finals alone are read.
print(f"  tails lost: {len(lost)} of {sum(c['counted'] for c in calls)} counted calls, {len(top)} at the top")
for tier in tiers:
    if number(tier, "outcome_tail_lost"):
        check(f"lost tails cost words in the finals alone, {tier['streams']} streams", number(tier, "wer_finals") > number(tier, "wer"))
check("every outcome of the highest tier has a name", all(c["outcome"] for c in top))
sys.exit(f"not so: {', '.join(wrong)}" if wrong else 0)
