#!/usr/bin/env python3
"""Holds two recordings of outputs against each other, byte for byte, but for stated exceptions.

Usage: compare.py BEFORE AFTER EXCEPTIONS [quick]

With quick, the full-length campaign is not compared.

A line of EXCEPTIONS has three or four columns, divided by tabs:
  drop   GLOB  REGEX  reason          lines that match are left out on both sides
  sub    GLOB  REGEX  TEXT  reason    what matches is replaced by TEXT on both sides
  file   GLOB  reason                 the file is not compared, and may be there on one side only
  cells  GLOB  REGEX  reason          of a CSV file, columns whose names match are left out on both sides, and the others
                                      are compared by name, in whatever order
An exception that never applied is an error: the list says what differs, and nothing else.
"""
import csv
import difflib
import fnmatch
import io
import re
import sys
from pathlib import Path


def rules(path):
    found = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        need = {"drop": 4, "sub": 5, "file": 3, "cells": 4}.get(cells[0])
        if need != len(cells):
            sys.exit(f"{path}:{number}: {cells[0]} takes {need} columns, there are {len(cells)}")
        found.append({"line": number, "kind": cells[0], "glob": cells[1], "cells": cells[2:], "used": 0})
    return found


def text_of(path, name, exceptions):
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    for rule in exceptions:
        if not fnmatch.fnmatch(name, rule["glob"]):
            continue
        if rule["kind"] == "sub":
            text, n = re.subn(rule["cells"][0], rule["cells"][1], text)
            rule["used"] += n
        if rule["kind"] == "drop":
            kept = [l for l in text.splitlines(keepends=True) if not re.search(rule["cells"][0], l)]
            rule["used"] += len(text.splitlines()) - len(kept)
            text = "".join(kept)
        if rule["kind"] == "cells":
            rows = list(csv.DictReader(io.StringIO(text)))
            names = sorted(rows[0]) if rows else []
            kept = [name for name in names if not re.fullmatch(rule["cells"][0], name)]
            rule["used"] += 1
            text = "".join(f"{name}={row[name]}\n" for row in rows for name in kept)
    return text


def main():
    before, after, exceptions = Path(sys.argv[1]), Path(sys.argv[2]), rules(sys.argv[3])
    names = sorted(
        {str(p.relative_to(root)) for root in (before, after) for p in root.rglob("*") if p.is_file()}
    )
    if "quick" in sys.argv[4:]:
        names = [name for name in names if "campaign-full" not in name]
    differ = 0
    for name in names:
        if skipped := [r for r in exceptions if r["kind"] == "file" and fnmatch.fnmatch(name, r["glob"])]:
            skipped[0]["used"] += 1
            continue
        a, b = before / name, after / name
        if not a.exists() or not b.exists():
            differ += 1
            print(f"== {name}: only {'after' if b.exists() else 'before'}")
            continue
        if a.read_bytes() == b.read_bytes():
            continue
        was, now = (text_of(p, name, exceptions).splitlines() for p in (a, b))
        if was == now:
            continue
        differ += 1
        print(f"== {name}")
        for line in list(difflib.unified_diff(was, now, "before", "after", lineterm="", n=0))[2:14]:
            print("   ", line[:300].encode("utf-8", "replace").decode())
    idle = [r for r in exceptions if not r["used"]]
    for rule in idle:
        print(f"== exceptions, line {rule['line']}: never applied: {rule['kind']} {rule['glob']}")
    print(f"{len(names)} files, {differ} differ, {len(exceptions)} exceptions of which {len(idle)} never applied")
    sys.exit(1 if differ or idle else 0)


main()
