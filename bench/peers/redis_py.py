# SPDX-License-Identifier: Apache-2.0
"""64 threads of one process, each with a key of its own, by the Lock of redis-py: cycles of acquire
and release. usage: redis_py.py PORT SECONDS"""

import sys
import threading
import time

import redis

port, length = int(sys.argv[1]), float(sys.argv[2])
client = redis.Redis(host="127.0.0.1", port=port)
counts = [0] * 64
start = time.monotonic()


def caller(number):
    lock = client.lock("redis-py-%d" % number, timeout=30, blocking=False)
    while time.monotonic() - start < length:
        lock.acquire()
        lock.release()
        counts[number] += 1


threads = [threading.Thread(target=caller, args=(number,)) for number in range(64)]
for one in threads:
    one.start()
for one in threads:
    one.join()
rate = sum(counts) / (time.monotonic() - start)
print("64 threads by redis-py %s Lock %.0f cycles/s" % (redis.__version__, rate))
