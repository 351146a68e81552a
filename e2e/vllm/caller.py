"""A caller of a gateway, just good enough: masks of zeros, a second of audio a message."""

import json
import socket
import struct

SECOND = struct.pack(">BBH4x", 0x82, 0xFE, 32_000) + b"\1\2" * 16_000


class Caller:
    """One call; `status` is the answer to its upgrade."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=180)
        self.reader = self.socket.makefile("rb")
        self.socket.sendall(
            b"GET /asr HTTP/1.1\r\nHost: g\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        self.status = int(self.reader.readline().split()[1])
        while self.reader.readline() not in (b"\r\n", b""):
            pass

    def speak(self, seconds):
        self.socket.sendall(SECOND * seconds)

    def end(self):
        payload = b'{"type":"end"}'
        self.socket.sendall(struct.pack(">BB4x", 0x81, 0x80 | len(payload)) + payload)

    def message(self):
        """The next message; none where the gateway closes instead."""
        head = self.reader.read(2)
        if len(head) < 2:
            return None
        size = head[1]
        if size == 126:
            (size,) = struct.unpack(">H", self.reader.read(2))
        payload = self.reader.read(size)
        return json.loads(payload) if head[0] & 15 == 1 else None

    def until(self, kind):
        """The first message of that type; none where the gateway closes before."""
        while (message := self.message()) is not None:
            if message["type"] == kind:
                return message
        return None

    def leave(self):
        self.socket.close()
        self.reader.close()
