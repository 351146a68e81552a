"""Calls through a balancer, and what becomes of them: spread, stickiness, ejection, return, refusal.

    balancer.py BALANCER ENGINE...      # address; NAME.pid in $WORK holds an engine's process, NAME.start starts it again

With $STATS, the socket of HAProxy's statistics, it also waits until the balancer itself calls an engine down, and tells
how long that took. A caller just good enough for the built-in engine: masks of zeros, short messages.
"""

import asyncio
import collections
import csv
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

WORK = pathlib.Path(os.environ["WORK"])
STATS = os.environ.get("STATS")
TWO_SECONDS = [struct.pack("<h", 8000 if n // 20 % 2 else -8000) * 1600 for n in range(20)]
HELD = 30  # calls open at a time
wrong = []


def check(what, ok):
    print(f"  {'ok' if ok else 'NOT SO'}: {what}")
    if not ok:
        wrong.append(what)


class Refused(Exception):
    pass


class Call:
    """One call; `heard` are the instances that answered it."""

    def __init__(self):
        self.heard, self.texts = [], []

    @classmethod
    async def open(cls, address):
        call = cls()
        host, port = address.rsplit(":", 1)
        call.reader, call.writer = await asyncio.open_connection(host, int(port))
        call.writer.write(
            f"GET /asr HTTP/1.1\r\nHost: {address}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        status = (await call.reader.readline()).decode()
        if " 101 " not in status:
            call.writer.close()
            raise Refused(status.strip() or "closed")
        while await call.reader.readline() not in (b"\r\n", b""):
            pass
        return call

    def send(self, opcode, payload):
        self.writer.write(bytes([0x80 | opcode, 0x80 | 126]) + struct.pack(">H", len(payload)) + bytes(4) + payload)

    def speak(self):
        """Two seconds, a whole window of the engine."""
        for chunk in TWO_SECONDS:
            self.send(2, chunk)

    async def answer(self):
        """The next message, or none at the end."""
        try:
            head = await self.reader.readexactly(2)
            size = head[1]
            if size == 126:
                (size,) = struct.unpack(">H", await self.reader.readexactly(2))
            payload = await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        if head[0] & 15 != 1:
            return None
        message = json.loads(payload)
        self.heard.append(message["instance"])
        return message

    async def window(self):
        """Speaks and waits until the answer covers what was said."""
        self.speak()
        self.said_ms = getattr(self, "said_ms", 0) + 2000
        while (message := await self.answer()) is not None:
            if message["audio_ms"] >= self.said_ms:
                return True
        return False

    async def end(self):
        self.send(1, b'{"type":"end"}')
        while (message := await self.answer()) is not None:
            if message["type"] == "final":
                self.writer.close()
                return True
        self.writer.close()
        return False


async def short(balancer):
    """A call of two seconds: when it was let in, and by whom."""
    began = time.monotonic()
    try:
        call = await Call.open(balancer)
    except Refused as refused:
        return began, time.monotonic() - began, None, str(refused)
    in_s = time.monotonic() - began
    ok = await call.window() and await call.end()
    return began, in_s, call.heard[0] if call.heard else None, None if ok else "broke"


def kill(name):
    file = WORK / f"{name}.pid"
    os.kill(int(file.read_text()), signal.SIGKILL)
    file.unlink()  # soon it is somebody else's number
    return time.monotonic()


def called(name):
    """What HAProxy calls an engine now: `UP`, `DOWN`, or on its way to one of them."""
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(STATS)
        to.sendall(b"show stat\n")
        page = b"".join(iter(lambda: to.recv(65536), b"")).decode()
    rows = csv.DictReader(page.removeprefix("# ").splitlines())
    return next(row["status"] for row in rows if row["svname"] == name)


async def until_called(status, name, since, patience_s):
    """Seconds until HAProxy calls an engine that; none if it does not in time."""
    while called(name) != status:
        if time.monotonic() > since + patience_s:
            return None
        await asyncio.sleep(0.02)
    return time.monotonic() - since


async def main(balancer, names):
    print(f"{HELD} calls at once")
    calls, slowest = [], 0
    for _ in range(HELD):
        began = time.monotonic()
        calls.append(await Call.open(balancer))
        slowest = max(slowest, time.monotonic() - began)
    # A second, or what this machine makes of it: it may be busy with something else.
    soon = max(1, 3 * slowest)
    answered = await asyncio.gather(*(call.window() for call in calls))
    check("every call is answered", all(answered))
    spread = collections.Counter(call.heard[0] for call in calls)
    print(f"  spread: {dict(sorted(spread.items()))}")
    check("calls are spread evenly", max(spread.values()) - min(spread.values()) <= 1 and len(spread) == len(names))
    for _ in range(2):
        await asyncio.gather(*(call.window() for call in calls))
    messages = sum(len(call.heard) for call in calls)
    check(f"each call stays where it is ({messages} messages)", all(len(set(call.heard)) == 1 for call in calls))

    victim = names[1]
    print(f"{victim} is killed with SIGKILL")
    mine = [call for call in calls if call.heard[0] == victim]
    others = [call for call in calls if call.heard[0] != victim]
    killed = kill(victim)
    if STATS:
        seen = asyncio.create_task(until_called("DOWN", victim, killed, 10))
    gone = await asyncio.gather(*(call.answer() for call in mine))
    print(f"  its {len(mine)} calls broke within {(time.monotonic() - killed) * 1000:.0f} ms")
    check("its calls break at once and are not moved", all(message is None for message in gone))
    tasks = []
    while time.monotonic() < killed + 5:
        tasks.append(asyncio.create_task(short(balancer)))
        await asyncio.sleep(0.05)
    after = await asyncio.gather(*tasks)
    refused = [why for *_, why in after if why]
    slowest = max(in_s for _, in_s, *_ in after)
    first = min(began + in_s for began, in_s, _, why in after if why is None) - killed
    print(f"  {len(after)} new calls in 5 s: {len(refused)} failed {refused[:3]}, slowest let in after {slowest * 1000:.0f} ms")
    check("no new call fails", not refused)
    check("no new call waits for the dead engine", slowest < soon)
    check(f"calls go on {first * 1000:.0f} ms after the kill", first < soon)
    if STATS:
        ejected = await seen
        # At the first connection that it refuses, or after two checks a second apart.
        check(f"the balancer ejects it {ejected and round(ejected, 2)} s after the kill", ejected is not None and ejected < 3)
    check("the calls of the others finish", all(await asyncio.gather(*(call.end() for call in others))))

    print(f"{victim} is started again")
    started = time.monotonic()
    subprocess.run(["sh", "-c", (WORK / f"{victim}.start").read_text()], check=True)
    back = None
    while back is None and time.monotonic() < started + 20:
        results = await asyncio.gather(*(short(balancer) for _ in range(6)))
        if any(by == victim for *_, by, why in results if not why):
            back = time.monotonic() - started
    print(f"  it serves again after {back:.1f} s" if back else "  it serves no more")
    check("an engine that is back gets calls", back is not None)

    print("all are killed")
    for name in names:
        killed = kill(name)
    if STATS:
        for name in names:
            check(f"the balancer calls {name} down", await until_called("DOWN", name, killed, 10) is not None)
    refused = [await short(balancer) for _ in range(5)]
    print(f"  {sorted({why or 'let in' for *_, why in refused})}, slowest after {max(s for _, s, *_ in refused) * 1000:.0f} ms")
    check("every call is refused", all(why and why != "broke" for *_, why in refused))
    check("a refusal comes at once", all(in_s < soon for _, in_s, *_ in refused))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
sys.exit(f"not so: {', '.join(wrong)}" if wrong else 0)
