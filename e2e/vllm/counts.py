"""What vLLM counted on its pages, and what a run of ours knows of the same time."""

import collections
import csv
import json
import math

# Names of our series, and vLLM's names of the same.
SERIES = {
    "finished": "vllm:request_success_total",
    "prompt_tokens": "vllm:prompt_tokens_total",
    "generation_tokens": "vllm:generation_tokens_total",
    "preemptions": "vllm:num_preemptions_total",
}


def page(path):
    """Sums over the labels of every series."""
    sums = collections.Counter()
    for line in path.read_text().splitlines():
        if line and line[0] != "#":
            series, value = line.rsplit(" ", 1)
            sums[series.split("{")[0]] += float(value)
    return sums


def lines(path):
    return [json.loads(line) for line in path.open()]


def tiers(run):
    with (run / "tiers.csv").open() as file:
        return list(csv.DictReader(file))


def series(run, instance):
    """By how much each of our counters of an instance grew from the first sample to the last."""
    read = [s["values"] for s in lines(run / "series.jsonl") if s["source"] == instance and s["kind"] == "engine"]
    return {name: read[-1][name] - read[0][name] for name in SERIES}


def segments(call):
    """The pieces of 5 s that vLLM's socket cuts a call into."""
    return math.ceil(round(call["audio_s"] * 1000) / 5000)


class Equal:
    """Prints both counts side by side and remembers those that differ."""

    def __init__(self):
        self.wrong = []

    def same(self, what, ours, theirs, whose="vLLM"):
        print(f"  {what}: ours {ours:g}, {whose} {theirs:g}{'' if ours == theirs else '  <-- differ'}")
        if ours != theirs:
            self.wrong.append(what)

    def true(self, what, ok):
        print(f"  {'ok' if ok else 'NOT SO'}: {what}")
        if not ok:
            self.wrong.append(what)

    def verdict(self, phase):
        return f"{phase}: not so: {', '.join(self.wrong)}" if self.wrong else 0
