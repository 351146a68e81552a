"""SIGTERM while somebody speaks: the call is finished, nobody new is let in, and then the gateway is gone.

    drain.py GATEWAY PID
"""

import os
import signal
import sys
import time
import urllib.error
import urllib.request

from caller import Caller

gateway, pid = sys.argv[1], int(sys.argv[2])
caller = Caller(gateway)
caller.speak(4)
os.kill(pid, signal.SIGTERM)
began = time.monotonic()
health = 200
while health == 200 and time.monotonic() < began + 10:
    try:
        health = urllib.request.urlopen(f"http://{gateway}/health", timeout=10).status
    except urllib.error.HTTPError as error:
        health = error.code
late = Caller(gateway).status
caller.speak(3)
caller.end()
final = caller.until("final")
took = time.monotonic() - began
print(f"  /health {health}, a new call gets {late}, the open one its final after {took:.1f} s, {final and final.get('audio_ms')} ms")
sys.exit(0 if (health, late) == (503, 503) and final and final.get("audio_ms") == 7_000 else "not drained as it should be")
