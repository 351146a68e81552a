"""A caller who hangs up in the middle: does the engine stop working for it?

    leave.py GATEWAY VLLM BACK_END
"""

import socket
import struct
import sys
import time
import urllib.request

gateway, vllm, back_end = sys.argv[1:]


def gauge(*names):
    with urllib.request.urlopen(f"http://{vllm}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(names))


def busy():
    return gauge("vllm:num_requests_running{", "vllm:num_requests_waiting{")


host, port = gateway.rsplit(":", 1)
caller = socket.create_connection((host, int(port)), timeout=30)
caller.sendall(
    b"GET /asr HTTP/1.1\r\nHost: g\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
assert b" 101 " in caller.recv(4096)
second = struct.pack(">BBH4x", 0x82, 0xFE, 32_000) + b"\1\2" * 16_000
caller.sendall(second * 12)
until = time.monotonic() + 30
while not busy() and time.monotonic() < until:
    time.sleep(0.05)
was = busy()
left = time.monotonic()
caller.close()
while busy() and time.monotonic() < left + 30:
    time.sleep(0.05)
print(f"  {back_end}: the engine had {was:g} requests, and none {time.monotonic() - left:.1f} s after the caller left")
sys.exit(0 if was and not busy() else f"{back_end}: the engine had {was:g} requests before and {busy():g} after")
