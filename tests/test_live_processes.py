"""A store used by several threads and processes, forked and killed: nothing is lost, no gaps."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from store_child import NAME

from wgp_agents.live import Event, open_store

pytest.importorskip("sqlalchemy")
CHILD = Path(__file__).with_name("store_child.py")


def started(*command: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(CHILD), *map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    return out


def whole_log(storage: str) -> list[Event]:
    """Return the log, whose numbers have no gaps."""
    store = open_store(storage, NAME)
    with store.session() as session:
        log = session.events()
        assert session.last == len(log)
    store.close()
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    return log


def several(kind: str, storage: str, count: int, *arguments: object) -> None:
    """Run processes that begin at once."""
    processes = [started(kind, storage, f"process{i}", *arguments) for i in range(count)]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [finished(process) for process in processes] == [""] * count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "threads", "count"),
    [(2, 3, 3), pytest.param(2, 6, 50, marks=pytest.mark.slow)],
)
def test_every_append_is_there_once(
    database: str, processes: int, threads: int, count: int
) -> None:
    # The first sessions of all make the tables and the bandit.
    several("hammer", database, processes, threads, count)
    expected = {
        f"process{i}-{j}-{k}"
        for i in range(processes)
        for j in range(threads)
        for k in range(count)
    }
    log = whole_log(database)
    assert len(log) == len(expected)
    assert {event.decision for event in log} == expected


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks and signals of POSIX")
@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_a_killed_process_loses_nothing_that_was_returned(database: str, count: int) -> None:
    said: list[list[int]] = json.loads(finished(started("kills", database, count)))
    log = whole_log(database)
    assert len(said) == count
    assert sum(map(len, said)) >= count
    for child, numbers in enumerate(said):
        own = [event.seq for event in log if event.decision.split("-")[0] == str(child)]  # type: ignore[union-attr]
        # At most the one that was kept and not yet said.
        assert own[: len(numbers)] == numbers
        assert len(own) <= len(numbers) + 1
    if database.startswith("sqlite"):
        found = sqlite3.connect(database.removeprefix("sqlite:///"))
        assert found.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found.close()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of POSIX")
def test_parent_and_children_go_on_after_a_fork(database: str) -> None:
    # Where the child inherited a connection, SQLite lost events and said that its file is damaged.
    assert finished(started("fork", database, 30)) == "[0, 0]\n"
    expected = {f"{who}-{i}" for who in ("thread", "child-0", "child-1") for i in range(30)}
    expected |= {f"parent-{i}-0" for i in range(30)}
    log = whole_log(database)
    assert len(log) == len(expected)
    assert {event.decision for event in log} == expected
