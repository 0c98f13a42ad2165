"""The command is killed, interrupted, started twice; the files come out as if it had not been."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmark_small import SIX_RUNS, stored, write_toml
from threadpoolctl import threadpool_limits

from wgp_agents import cli
from wgp_agents.benchmark.parallel import Workers, run_as_done

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

LONGER = SIX_RUNS | {"seeds": 20, "horizon": 12000}
UNITS = 30
TABLES = (".npz", ".toml", ".md")
COMMAND = [sys.executable, "-c", "import sys; from wgp_agents.cli import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toml(tmp_path_factory.mktemp("file") / "small.toml", LONGER)


def files(folder: Path) -> dict[str, bytes]:
    """Return all that must not depend on interruptions: timings and the page's costs may."""
    csvs = ("runs.csv", "summary.csv", "comparisons.csv", "aggregate.csv")
    named = {name: (folder / name).read_bytes() for name in (*csvs, "manifest.json")}
    return stored(folder, *TABLES) | named


def finished(file: Path, out: Path) -> dict[str, bytes]:
    """Run the command to its end, here, and return the files."""
    command = ["run", str(file), "--out", str(out), "--jobs", "1", "--no-report"]
    assert cli.main(command) == 0
    assert cli.main(["report", str(out), "--format", "md"]) == 0
    return files(out)


@pytest.fixture(scope="module")
def expected(file: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    with threadpool_limits(2):
        return finished(file, tmp_path_factory.mktemp("expected"))


def started(file: Path, out: Path, jobs: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "run", str(file), "--out", str(out), "--jobs", str(jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def until(condition: Callable[[], object], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def units(out: Path) -> int:
    return len(list(out.glob("units/*/*/*.npz")))


def alive(session: int) -> list[int]:
    """Return the processes of a session that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            # After the name, which may hold spaces: state, parent, group, session.
            state, _, _, of = (path / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has just ended
            continue
        if int(of) == session and state != "Z":
            found.append(int(path.name))
    return found


def begin(file: Path, out: Path, jobs: int, moment: int) -> subprocess.Popen[str]:
    """Start the command and wait until so many units are done; 0: it has hardly begun."""
    process = started(file, out, jobs)
    there = (lambda: units(out) >= moment) if moment else (out / "manifest.json").exists
    assert until(there, 60), process.communicate(timeout=5)
    return process


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "ends"),
    [
        (1, [(0, signal.SIGKILL), (1, signal.SIGINT), (4, signal.SIGKILL)]),
        (2, [(1, signal.SIGINT), (4, signal.SIGKILL)]),
    ],
)
def test_an_end_loses_what_is_in_flight_at_most(
    jobs: int,
    ends: list[tuple[int, signal.Signals]],
    file: Path,
    expected: dict[str, bytes],
    tmp_path: Path,
) -> None:
    before = 0
    for moment, end in ends:
        process = begin(file, tmp_path, jobs, moment)
        (os.kill if end == signal.SIGKILL else os.killpg)(process.pid, end)
        code = process.wait(30)
        done = units(tmp_path)
        assert max(before, moment) <= done < UNITS
        before = done
        if Path("/proc").is_dir():
            assert until(lambda: not alive(process.pid), 30), "orphans live on"  # noqa: B023
        out, err = process.communicate(timeout=10)
        assert code == (-signal.SIGKILL if end == signal.SIGKILL else 130)
        if end == signal.SIGINT:
            assert out == ""
            # joblib's own watch over semaphores may lose a race with the end of the process.
            others = re.compile(r"^\s*$|playing:|resource_tracker|^  warnings\.warn\(")
            said = [line for line in err.splitlines() if not others.search(line)]
            stopped, interrupted = said
            assert re.fullmatch(
                r"Stopped after \d+ of \d+ units: the same command plays the rest\.", stopped
            )
            assert interrupted == "Interrupted. Files that were written before are whole."
            assert "ended early, by KeyboardInterrupt" in (tmp_path / "log.txt").read_text()
    assert stored(tmp_path).items() <= expected.items()
    assert finished(file, tmp_path) == expected
    log = (tmp_path / "log.txt").read_text()
    assert f"{UNITS} units, {UNITS - before} to play" in log
    assert "WARNING" not in log
    assert not list(tmp_path.rglob("*.part"))


def blocked(piece: int) -> set[int]:
    return signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.slow
def test_workers_leave_interrupts_to_the_process_that_started_them() -> None:
    # A KeyboardInterrupt in a worker's middle printed tracebacks, or ended it by a segfault.
    before = blocked(0)
    found = list(run_as_done(blocked, range(3), Workers(2)))
    assert all(signal.SIGINT in masks for masks in found)
    assert blocked(0) == before


@pytest.mark.slow
def test_two_at_once_and_the_loss_of_a_worker(
    file: Path, expected: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = begin(file, tmp_path, 2, 1)
    timings = tmp_path / "timings.csv"  # its row is written just after the unit
    assert until(lambda: timings.exists() and timings.read_text().count("\n") > 1, 30)
    try:
        os.killpg(first.pid, signal.SIGSTOP)
        before = stored(tmp_path, ".npz", ".json", ".toml", ".txt")
        second = started(file, tmp_path, 1)
        _, err = second.communicate(timeout=60)
        assert second.returncode == 2
        assert f"wgp-gym run: error: Another process is writing to {tmp_path}." in err
        assert "Traceback" not in err
        assert stored(tmp_path, ".npz", ".json", ".toml", ".txt") == before
        (worker,) = {int(line.rpartition(":")[2]) for line in timings.read_text().splitlines()[1:2]}
        os.killpg(first.pid, signal.SIGCONT)
        os.kill(worker, signal.SIGKILL)
        _, err = first.communicate(timeout=60)
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
    assert first.returncode == 2
    assert "wgp-gym run: error: A worker process ended in mid-work. It may have been short" in err
    assert "Traceback" not in err
    assert units(tmp_path) < UNITS
    assert finished(file, tmp_path) == expected
