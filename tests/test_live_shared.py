"""One bandit, many threads and processes, and some that are killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgp_agents.live import Arms, LiveBandit

PRICES = [10.0, 12.0, 14.0, 16.0, 18.0, 20.0]
AGENT: dict[str, Any] = {"agent": "wgp-ucb", "horizon": 1000}
FORK = multiprocessing.get_context("fork")


def shop(folder: Path) -> LiveBandit:
    """Return the bandit of these tests."""
    return LiveBandit(Arms(PRICES), storage=folder / "shop.db", name="espresso", **AGENT)


def sell(folder: Path, ours: Connection) -> None:
    """Ask and tell for ever, and say what has returned."""
    bandit = shop(folder)
    while True:
        decision = bandit.ask()
        ours.send(("asked", decision.id, decision.arm))
        assert isinstance(decision.arm, float)
        bandit.tell(decision.id, decision.arm)
        ours.send(("told", decision.id, decision.arm))


def check_kills(folder: Path, kills: int) -> None:
    """Kill a seller again and again, and look for what it had been told was kept."""
    rng, returned = np.random.default_rng(0), []
    for _ in range(kills):
        theirs, ours = FORK.Pipe(duplex=False)
        child = FORK.Process(target=sell, args=(folder, ours), daemon=True)
        child.start()
        ours.close()
        assert theirs.poll(60)
        time.sleep(float(rng.uniform(0.0, 0.05)))
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        while True:
            try:
                returned.append(theirs.recv())
            except (EOFError, OSError):
                break
    kept = shop(folder)
    log = kept.log()
    found = {(event.kind, event.decision, event.data["arm"]) for event in log}
    assert len(returned) >= kills
    assert {*returned} <= found
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    # What is known is what the whole log says: a copy that is told the same knows the same.
    again = LiveBandit(Arms(PRICES), **AGENT)
    told = {event.decision for event in log if event.kind == "told"}
    for event in log:
        if event.kind == "asked":
            arm = event.data["arm"]
            if event.decision in told:
                assert isinstance(arm, float)
                again.record(arm, arm)
    open_ones = [e for e in log if e.kind == "asked" and e.decision not in told]
    for event in open_ones:
        kept.retract(str(event.decision))
    np.testing.assert_allclose(kept.expects().mean, again.expects().mean, rtol=1e-9)


@pytest.mark.slow
def test_what_has_returned_is_kept_whatever_is_killed(tmp_path: Path) -> None:
    check_kills(tmp_path, 5)


@pytest.mark.slow
def test_what_has_returned_is_kept_after_two_hundred_kills(tmp_path: Path) -> None:
    check_kills(tmp_path, 200)


def hammer(folder: Path, steps: int) -> None:
    """Ask and tell from six threads of one process."""
    bandit = shop(folder)

    def _work() -> None:
        for _ in range(steps):
            decision = bandit.ask()
            bandit.tell(decision.id, float(decision.index))

    threads = [threading.Thread(target=_work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.slow
def test_six_processes_with_six_threads_share_one_bandit(tmp_path: Path) -> None:
    steps = 4
    workers = [FORK.Process(target=hammer, args=(tmp_path, steps)) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    bandit = shop(tmp_path)
    log = bandit.log()
    asked = [event.decision for event in log if event.kind == "asked"]
    assert asked == [str(k) for k in range(1, 36 * steps + 1)]
    told = {event.decision: event.data["reward"] for event in log if event.kind == "told"}
    arms = {event.decision: event.data["index"] for event in log if event.kind == "asked"}
    assert told == arms
    report = bandit.report()
    assert (report.num_decisions, report.num_told, report.num_open) == (144, 144, 0)
    assert sum(arm.plays for arm in report.arms) == 144
