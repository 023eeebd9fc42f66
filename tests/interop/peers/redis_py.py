# SPDX-License-Identifier: Apache-2.0
"""A process that locks by the Lock of redis-py, and does as it is told on stdin (see
peer_process.hpp). usage: redis_py.py PORT KEY"""

import os
import sys
import time

try:
    import redis
    from redis.exceptions import LockError
except ImportError as fault:
    print("missing", fault, flush=True)
    sys.exit(0)

port, key = int(sys.argv[1]), sys.argv[2]
client = redis.Redis(host="127.0.0.1", port=port)
lock = None


def acquire(ttl_ms):
    global lock
    lock = client.lock(key, timeout=ttl_ms / 1000, blocking=False)
    return lock.acquire()


def whether(step):
    try:
        step()
        return True
    except LockError:
        return False


def work(folder):
    alone = True
    try:
        os.close(os.open(folder + "/inside", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        alone = False
        with open(folder + "/overlaps", "a") as log:
            log.write("redis-py beside another\n")
    with open(folder + "/count") as file:
        count = int(file.read())
    time.sleep(0.001)
    with open(folder + "/count", "w") as file:
        file.write(str(count + 1))
    if alone:
        os.unlink(folder + "/inside")


def contend(rounds, ttl_ms, folder):
    for _ in range(rounds):
        while not acquire(ttl_ms):
            time.sleep(0.005)
        work(folder)
        if not whether(lock.release):
            return "lost"
        time.sleep(0.005)
    return "done"


def obey(words):
    if words[0] == "acquire":
        return "granted" if acquire(int(words[1])) else "held"
    if words[0] == "renew":
        extended = whether(lambda: lock.extend(int(words[1]) / 1000, replace_ttl=True))
        return "renewed" if extended else "not_held"
    if words[0] == "release":
        return "released" if whether(lock.release) else "not_held"
    if words[0] == "contend":
        return contend(int(words[1]), int(words[2]), words[3])
    raise ValueError("what is " + words[0] + "?")


print("ready", flush=True)
for line in sys.stdin:
    try:
        print(obey(line.split()), flush=True)
    except Exception as fault:  # pylint: disable=broad-except
        print("error", fault, flush=True)
