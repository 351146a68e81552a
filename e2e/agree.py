"""Does what TC-06 reports agree with HAProxy's own statistics?"""

import csv
import json
import pathlib
import sys

run, stats = pathlib.Path(sys.argv[1]), sys.argv[2]
with open(stats) as file:
    rows = list(csv.DictReader(line.removeprefix("# ") for line in file if line.strip()))
servers = {r["svname"]: r for r in rows if r["pxname"] == "engines"}
incidents = json.loads((run / "tc06.json").read_text())["incidents"]
calls = [json.loads(line) for line in (run / "calls.jsonl").open()]
through = {f"tc06-kill-{round(i['share'] * 100):03d}": i["streams_balanced"] for i in incidents}
balanced = [c for c in calls if c["stream"] < through[c["step"]]]
wrong = []


def same(what, ours, theirs, within=0):
    ok = abs(ours - theirs) <= within
    print(f"  {what}: tc06 {ours:g}, haproxy {theirs:g}{'' if ok else '  <-- differ'}")
    if not ok:
        wrong.append(what)


def of(server, field):
    return int(servers[server][field] or 0)


print("tc06 against haproxy:")
# A call that was accepted is a 101 of the server that took it.
accepted = [c for c in balanced if c.get("connect_s") is not None]
same("calls accepted", len(accepted), of("BACKEND", "hrsp_1xx"))
nameless = sum(1 for c in accepted if not c.get("instance"))
for name in ("inst1", "inst2", "inst3"):
    ours = sum(1 for c in accepted if c.get("instance") == name)
    same(f"calls accepted by {name}", ours, of(name, "hrsp_1xx"), within=nameless)
same("times inst2 went down", len(incidents), of("inst2", "chkdown"))
for name in ("inst1", "inst3"):
    same(f"times {name} went down", 0, of(name, "chkdown"))
down_s = sum(i["timeline"]["well_s"] - i["timeline"]["fault_s"] for i in incidents)
# Health is seen by each side in its own time: checks come every second, two of them bring a server back.
same("seconds that inst2 was down", down_s, of("inst2", "downtime"), within=3 * len(incidents))
# A call that met the engine in its last instant was connected and never answered.
same("calls in all", len(balanced), of("BACKEND", "stot"))
same("calls never accepted", len(balanced) - len(accepted), of("BACKEND", "stot") - of("BACKEND", "hrsp_1xx"))
broken = sum(sum(i["in_flight"]["errors"].values()) for i in incidents)
lost = sum(sum(i["new_calls"]["errors"].values()) for i in incidents)
errors = sum(1 for c in balanced if c["class"] == "error")
# Within tc06 itself: every call that errored is one of the two.
same("calls that broke in flight or at their begin, against all that errored", broken + lost, errors)
sys.exit(f"these differ: {', '.join(wrong)}" if wrong else 0)
