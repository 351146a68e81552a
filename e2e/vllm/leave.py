"""A caller who hangs up in the middle: does the engine stop working for it?

    leave.py GATEWAY VLLM BACK_END
"""

import sys
import time
import urllib.request

from caller import Caller

gateway, vllm, back_end = sys.argv[1:]


def busy():
    with urllib.request.urlopen(f"http://{vllm}/metrics", timeout=60) as page:
        lines = page.read().decode().splitlines()
    names = ("vllm:num_requests_running{", "vllm:num_requests_waiting{")
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(names))


caller = Caller(gateway)
caller.speak(12)
until = time.monotonic() + 60
while not (was := busy()) and time.monotonic() < until:
    time.sleep(0.05)
left = time.monotonic()
caller.leave()
while busy() and time.monotonic() < left + 60:
    time.sleep(0.05)
print(f"  {back_end}: the engine had {was:g} requests, and none {time.monotonic() - left:.1f} s after the caller left")
sys.exit(0 if was and not busy() else f"{back_end}: the engine had {was:g} requests before and {busy():g} after")
