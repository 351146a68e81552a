#!/usr/bin/env python3
"""Follows docs/tutorial.md word for word up to the servers of one's own: every command is run in order, and every line
that the page shows has to be printed by one of them, in the page's order, with no other line between two lines of the
same block."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tutorial.md"
# What has no place in a check: the build, which has been done, and the path, which is set below.
SKIPPED = ("cargo build", "export PATH=")
# Answers that are no: each is said on the page.
NO = {"tc03b", "tc03 --fail"}


def blocks(text):
    """Language and lines of every fenced block."""
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield language, body.splitlines()


def run(line, folder, env):
    """Runs a command; its standard output, line by line."""
    words = shlex.split(line)
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=900)
    name = words[0] + (" --fail" if "--fail" in words else "")
    allowed = {1} if name in NO else {0}
    if done.returncode not in allowed:
        sys.exit(f"{line}: exit code {done.returncode}, not {allowed}\n{done.stdout}{done.stderr}")
    print(f"ran: {line}", flush=True)
    return [l.rstrip() for l in done.stdout.splitlines()]


def place(shown, printed, start):
    """Where a block stands in what was printed."""
    for at in range(start, len(printed) - len(shown) + 1):
        if printed[at : at + len(shown)] == shown:
            return at + len(shown)
    return None


def main():
    text = PAGE.read_text().split("\n## 7.")[0]
    folder = Path(tempfile.mkdtemp(prefix="tutorial-"))
    (folder / "fixtures").symlink_to(ROOT / "fixtures")
    env = os.environ | {"PATH": f"{ROOT / 'target/debug'}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(folder)}
    printed, seen, checked = [], 0, 0
    for language, lines in blocks(text):
        if language == "console":
            for line in lines:
                if not line.startswith("$ "):
                    # Printed by the command above it.
                    lines_of = [line.rstrip()]
                    seen = check(lines_of, printed, seen)
                    checked += 1
                elif not line[2:].startswith(SKIPPED):
                    printed += run(line[2:], folder, env)
        elif language == "text":
            seen = check([l.rstrip() for l in lines], printed, seen)
            checked += len(lines)
    if checked < 60:
        sys.exit(f"only {checked} lines were found to check: was the page cut?")
    print(f"docs/tutorial.md: {checked} lines are printed as they stand there")


def check(shown, printed, seen):
    """Where to look on; ends the program where the page shows what was not printed."""
    at = place(shown, printed, seen)
    if at is None:
        rest = "\n".join(printed[seen:])
        sys.exit("the page shows\n" + "\n".join(shown) + "\n\nand what was printed is\n" + rest)
    return at


main()
