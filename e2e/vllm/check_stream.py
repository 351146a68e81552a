"""Do the counts of tape-stream equal the server's own? The arguments are the phase and the folder with its files."""

import collections
import json
import pathlib
import sys

phase, work = sys.argv[1], pathlib.Path(sys.argv[2])


def page(name):
    sums = collections.Counter()
    for line in (work / name).read_text().splitlines():
        if line and line[0] != "#":
            series, value = line.rsplit(" ", 1)
            sums[series.split("{")[0]] += float(value)
    return sums


before, after = page(f"{phase}-before.prom"), page(f"{phase}-after.prom")
delta = {name: after[name] - before[name] for name in after}
replies = [json.loads(line) for line in (work / f"out-{phase}" / "requests.jsonl").open()]
record = (work / f"out-{phase}" / "record.toml").read_text()
outcomes = collections.Counter(reply["outcome"] for reply in replies)
reasons = collections.Counter(str(reply["finish_reason"]) for reply in replies)
print(f"  {len(replies)} requests: {dict(outcomes)}; finish reasons {dict(reasons)}")
wrong = []


def same(what, ours, theirs):
    print(f"  {what}: ours {ours:g}, vLLM {theirs:g}{'' if ours == theirs else '  <-- differ'}")
    if ours != theirs:
        wrong.append(what)


def hold(what, true):
    if not true:
        wrong.append(what)


used = [reply["usage"] for reply in replies if reply["usage"]]
same("answers", sum(reply["done"] for reply in replies), delta["vllm:request_success_total"])
same("prompt tokens", sum(u["prompt_tokens"] for u in used), delta["vllm:prompt_tokens_total"])
same("answer tokens", sum(u["completion_tokens"] for u in used), delta["vllm:generation_tokens_total"])
cached = sum(u.get("cached_tokens") or 0 for u in used)
same("tokens from the prefix cache", cached, delta["vllm:prefix_cache_hits_total"])
first = sorted(reply["ttft_s"] for reply in replies if reply["ttft_s"] is not None)
if first:
    chunks = sum(reply["chunks"] for reply in replies)
    print(f"  first text p50 {first[len(first) // 2]:.3f} s; {chunks} chunks with text")
hold("a record without a model", "model" in record)
if phase in ("closed", "open"):
    hold("answers that were not cut", set(outcomes) == {"length_cut"})
if phase == "ends":
    hold("no answer ended of its own accord", outcomes["ok"] > 0 and reasons["stop"] == outcomes["ok"])
if phase == "empty":
    hold("text where none can be", set(outcomes) == {"empty"})
if phase == "fresh":
    hold("hits where none can be", cached == 0)
if phase == "repeated":
    hold("no hits where there must be", cached > 0)
if phase in ("refused", "overlong"):
    print(f"  in its words: {replies[0]['words']}")
    hold("a refusal without words", set(outcomes) == {"http_status"} and all(r["words"] for r in replies))
if wrong:
    sys.exit(f"FAILED: {phase}: {', '.join(wrong)}")
