"""Processes that use a store, for its tests: `python store_child.py KIND STORAGE ...`."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable

from wgp_agents.live import Event, Snapshot, open_store
from wgp_agents.live.storage import Store

NAME = "hammered"


def append(store: Store, who: str, count: int, told: Callable[[int], object] = id) -> None:
    """Append so many decisions, and say each event's number once it is kept."""
    for i in range(count):
        with store.session() as session:
            if session.settings() is None:
                session.create({})
            event = session.append(Event("asked", f"{who}-{i}", {"arm": i % 3}))
            if i % 5 == 0:
                session.keep(Snapshot(event.seq, bytes(100_000), "1", "f"))
        told(event.seq)


def hammer(storage: str, who: str, threads: str, count: str) -> None:
    """Append from several threads; begin when there is something on the standard input."""
    print("ready", flush=True)
    sys.stdin.readline()
    store = open_store(storage, NAME)
    several = [
        threading.Thread(target=append, args=(store, f"{who}-{i}", int(count)))
        for i in range(int(threads))
    ]
    for one in several:
        one.start()
    for one in several:
        one.join()


def kills(storage: str, count: str) -> None:
    """Let children append, kill each at a random moment, and print what they said, as JSON."""
    draw = random.Random(0)
    said = []
    for child in range(int(count)):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            store = open_store(storage, NAME)
            append(store, str(child), 10**6, lambda seq: os.write(write, b"%d\n" % seq))  # noqa: B023
        os.close(write)
        with os.fdopen(read) as lines:
            early = [lines.readline() for _ in range(draw.choice([0, 0, 1, 2, 5, 11]))]
            time.sleep(draw.uniform(0.0, 0.02 if early else 0.05))
            os.kill(pid, signal.SIGKILL)
            said.append([int(line) for line in [*early, *lines] if line])
        os.waitpid(pid, 0)
    print(json.dumps(said))


def fork(storage: str, count: str) -> None:
    """Fork while another thread appends; the children go on with the store of before.

    The parent closes it and opens others, as if nobody else used the file.
    """
    store = open_store(storage, NAME)
    thread = threading.Thread(target=append, args=(store, "thread", int(count)))
    thread.start()
    pids = []
    for child in range(2):
        if (pid := os.fork()) == 0:
            append(store, f"child-{child}", int(count))
            store.close()
            os._exit(0)
        pids.append(pid)
    thread.join()
    store.close()
    for i in range(int(count)):
        store = open_store(storage, NAME)
        append(store, f"parent-{i}", 1)
        store.close()
    print([os.waitpid(pid, 0)[1] for pid in pids])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
