"""A call that the engine would not survive: does the gateway end it in time, with the reason?

    long.py GATEWAY SECONDS
"""

import json
import socket
import struct
import sys
import time

gateway, seconds = sys.argv[1], int(sys.argv[2])
host, port = gateway.rsplit(":", 1)
caller = socket.create_connection((host, int(port)), timeout=60)
caller.sendall(
    b"GET /asr HTTP/1.1\r\nHost: g\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
reader = caller.makefile("rb")
assert b" 101 " in reader.readline()
while reader.readline() != b"\r\n":
    pass
second = struct.pack(">BBH4x", 0x82, 0xFE, 32_000) + b"\1\2" * 16_000
try:
    for _ in range(seconds):
        caller.sendall(second)
        time.sleep(0.2)
except (BrokenPipeError, ConnectionResetError):
    pass  # it has hung up; what it said before is there to read
while True:
    head = reader.read(2)
    size = head[1]
    if size == 126:
        (size,) = struct.unpack(">H", reader.read(2))
    payload = reader.read(size)
    if head[0] & 15 != 1:
        sys.exit(f"closed without a reason: {payload!r}")
    message = json.loads(payload)
    if message["type"] == "error":
        print(f"  {seconds} s: {message['message']}")
        sys.exit(0 if "max_model_len" in message["message"] else 1)
    if message["type"] == "final":
        sys.exit("it was taken to its end")
