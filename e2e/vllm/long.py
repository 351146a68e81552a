"""A call that the engine would not survive: does the gateway end it in time, with the reason?

    long.py GATEWAY SECONDS
"""

import sys
import time

from caller import Caller

gateway, seconds = sys.argv[1], int(sys.argv[2])
caller = Caller(gateway)
try:
    for _ in range(seconds):
        caller.speak(1)
        time.sleep(0.2)
except (BrokenPipeError, ConnectionResetError):
    pass  # it has hung up; what it said before is there to read
message = caller.until("error") or sys.exit("it closed without a reason, or took the call to its end")
print(f"  {seconds} s: {message['message']}")
sys.exit(0 if "max_model_len" in message["message"] else 1)
