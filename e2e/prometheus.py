"""Does Prometheus hold what the run's files hold, and does every panel of the dashboard show something?"""

import collections
import json
import math
import pathlib
import sys
import urllib.parse
import urllib.request

run, server, step = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
wrong = []


def ask(expression):
    query = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"http://{server}/api/v1/query?{query}", timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def one(expression):
    found = ask(expression)
    return float(found[0]["value"][1]) if len(found) == 1 else None


def same(what, theirs, ours, within=0.0):
    ok = theirs is not None and abs(theirs - ours) <= within
    if not ok:
        print(f"  {what}: Prometheus {theirs}, files {ours}  <-- differ")
        wrong.append(what)
    return ok


calls = [json.loads(line) for line in (run / "calls.jsonl").open()]
calls = [c for c in calls if c["step"] == step]
journal = [json.loads(line) for line in (run / "steps.jsonl").open()]
report = next(s for s in journal if s["step"] == step)["report"]

print(f"{step}: what Prometheus holds against the run's files")
kinds = collections.Counter((c["outcome"], c["class"], c["counted"]) for c in calls)
for (outcome, klass, counted), n in kinds.items():
    labels = f'step="{step}",outcome="{outcome}",class="{klass}",counted="{str(counted).lower()}"'
    same(f"calls {outcome} {klass} counted={counted}", one(f"tapedeck_calls_total{{{labels}}}"), n)
same("calls in all", one(f'sum(tapedeck_calls_total{{step="{step}"}})'), len(calls))
same("calls planned", one(f'tapedeck_calls_planned{{step="{step}"}}'), report["calls_expected"])

basis = {"wire": "ttft_wire_s", "speech": "ttft_speech_s", "window": "ttft_window_s"}[report["ttft_basis"]]
final = {"audio": "final_s", "speech": "final_speech_s"}[report["final_basis"]]
judged = [c for c in calls if c["counted"] and c["class"] in ("ok", "quality")]
for name, field in (
    ("tapedeck_ttft_seconds", basis),
    ("tapedeck_final_seconds", final),
    ("tapedeck_connect_seconds", "connect_s"),
    ("tapedeck_rtf_ratio", "rtf"),
):
    values = [c[field] for c in judged if c.get(field) is not None]
    if not values:
        wrong.append(f"{field}: the run has no value to compare")
    same(f"{name} count", one(f'{name}_count{{step="{step}"}}'), len(values))
    same(f"{name} sum", one(f'{name}_sum{{step="{step}"}}'), sum(values), within=1e-6)
    for bucket in ask(f'{name}_bucket{{step="{step}"}}'):
        bound = float(bucket["metric"]["le"])
        same(f"{name} up to {bound}", float(bucket["value"][1]), sum(v <= bound for v in values))
same("first-text p95", one(f'tapedeck_ttft_p95_seconds{{step="{step}"}}'), report["summaries"][basis]["p95"]["value"], 1e-9)
late = one(f'tapedeck_wake_late_p99_seconds{{step="{step}"}}')
same("our lateness", late, report["wake_late_p99_ms"] / 1e3, 1e-9)
verdict = [v["metric"]["verdict"] for v in ask(f'tapedeck_step_verdict{{step="{step}"}}')]
if verdict != [report["verdict"]]:
    wrong.append(f"verdict: Prometheus {verdict}, files {report['verdict']}")
if ask('{__name__=~"tapedeck_.*",simulated!="true"}'):
    wrong.append("a series of the built-in engine that does not say simulated")
info = [s["metric"] for s in ask("tapedeck_run_info")]
if [i.get("run") for i in info] != [run.name]:
    wrong.append(f"run info: {info}")

dashboard = json.loads(pathlib.Path("docs/grafana-dashboard.json").read_text())
expressions = [t["expr"] for panel in dashboard["panels"] for t in panel["targets"]]
shown = 0
for expression in expressions:
    values = [float(series["value"][1]) for series in ask(expression)]
    if values and not all(math.isnan(v) for v in values):
        shown += 1
    else:
        wrong.append(f"the dashboard shows nothing for {expression}")
print(f"  {len(calls)} calls, {len(judged)} judged; {shown} of {len(expressions)} expressions of the dashboard show something")
sys.exit("\n".join(wrong) if wrong else 0)
