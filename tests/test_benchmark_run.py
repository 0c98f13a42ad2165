"""Running an experiment: what changes no number, what fails, what is logged."""

from __future__ import annotations

import csv
import logging
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from benchmark_small import (
    ABRUPT,
    CHANCE,
    FAILS,
    SIX_RUNS,
    WINDOWS,
    Table,
    full_disk,
    play,
    stored,
)
from threadpoolctl import threadpool_info, threadpool_limits

from wgp_agents import cli
from wgp_agents.algorithms.references.baselines import Random
from wgp_agents.benchmark import play as playing
from wgp_agents.benchmark.declaration import declare
from wgp_agents.benchmark.parallel import Workers
from wgp_agents.benchmark.pieces import Pieces
from wgp_agents.benchmark.report.summarise import timings
from wgp_agents.benchmark.results import Results, load_results
from wgp_agents.benchmark.rollout import rollout
from wgp_agents.benchmark.run import LogFile


def numbers(results: Results, task: str, label: str) -> dict[str, Any]:
    return {name: array[:4] for name, array in results.read(task, label).items()}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("base")
    assert play(SIX_RUNS | {"seeds": 4}, folder) == []
    return load_results(folder)


GRID = {"id": ABRUPT, "kwargs": {"change_points": [[7, 14], []]}}
SAME: dict[str, tuple[Table, int]] = {
    "a seed": ({"seeds": 5}, 1),
    "an agent": ({"agent": [{"name": "oracle"}, CHANCE, WINDOWS, {"name": "wgp-ucb"}]}, 1),
    "another label": ({"agent": [{**WINDOWS, "label": "SW-GP-UCB window={window}"}, CHANCE]}, 1),
    "a grid value": (
        {"agent": [{"name": "sw-gp-ucb", "parameters": {"window": [3, 5, 10]}}, CHANCE]},
        1,
    ),
    "a task's grid value": ({"environment": [GRID]}, 1),
    "a task": ({"environment": [{"id": "WGPBandit-Slow-v0"}, *SIX_RUNS["environment"]]}, 1),
    "batch 1": ({"batch": 1}, 1),
    "batch 3": ({"batch": 3}, 1),
    "batch 100": ({"batch": 100}, 1),
    "jobs 2": ({}, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", SAME)
def test_changes_no_number_of_others(what: str, base: Results, tmp_path: Path) -> None:
    change, jobs = SAME[what]
    assert play(SIX_RUNS | {"seeds": 4} | change, tmp_path, jobs) == []
    found = load_results(tmp_path)
    (task,) = (name for name in found.tasks if name in ("abrupt", "abrupt change_points=[7, 14]"))
    for label in base.agents:
        expected = numbers(base, "abrupt", label)
        for name, array in numbers(found, task, label).items():
            assert array.dtype == expected[name].dtype
            np.testing.assert_array_equal(array, expected[name], err_msg=f"{label} {name}")


def test_other_roots_and_runs_have_other_numbers(base: Results, tmp_path: Path) -> None:
    play(SIX_RUNS | {"seeds": 4, "root_seed": 1}, tmp_path)
    other = load_results(tmp_path)
    finals = [r.final_regret("abrupt", r.agents[0]) for r in (base, other)]
    assert len(set(np.concatenate(finals).tolist())) == 8


@pytest.mark.slow
def test_comparisons_are_paired(base: Results, tmp_path: Path) -> None:
    kwargs = {"noise_std": [0.1, 0.5], "change_points": [[7, 14]]}
    play(SIX_RUNS | {"environment": [{"id": ABRUPT, "kwargs": kwargs}]}, tmp_path)
    found = load_results(tmp_path)
    for name in ("env_seed", "agent_seed", "norm_bound", "variation_budget"):
        columns = [found.per_run(t, a, name) for t in found.tasks for a in found.agents]
        for column in columns[1:]:
            np.testing.assert_array_equal(column, columns[0])
        assert len(set(columns[0].tolist())) == 6
    optimal = [found.steps(t, a, "optimal_action") for t in found.tasks for a in found.agents]
    for array in optimal[1:]:
        np.testing.assert_array_equal(array, optimal[0])


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_does_not_end_the_others(
    jobs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = play(FAILS, tmp_path, jobs)
    assert sorted((u.agent.label, u.runs.start) for u in failed) == [
        ("SW-GP-UCB window=10", 1),
        ("SW-GP-UCB window=5", 1),
        ("random", 1),
    ]
    assert len(stored(tmp_path)) == 9
    log = (tmp_path / "log.txt").read_text()
    assert log.count("Traceback (most recent call last)") == 3
    assert "ERROR SW-GP-UCB window=10 in abrupt, runs 1 to 1 failed:\nTraceback" in log
    assert "ValueError: The 'variation_budget' parameter" in log
    assert "done, 3 of 12 units failed" in log
    with pytest.raises(ValueError, match=r"Units are missing, 3 of them, such as .*0000001\.npz"):
        load_results(tmp_path)
    assert load_results(tmp_path, partial=True).runs("abrupt").tolist() == [0, 2, 3]
    printed = capsys.readouterr()
    assert "runs 1 to 1 failed" in printed.out + printed.err
    before = stored(tmp_path)
    assert len(play(FAILS, tmp_path)) == 3
    assert stored(tmp_path) == before


@pytest.mark.slow
def test_the_last_units_are_played_in_pieces(tmp_path: Path) -> None:
    values = SIX_RUNS | {"seeds": 43, "batch": 23, "agent": [WINDOWS, CHANCE, {"name": "d-ts"}]}
    pieces = Pieces(declare(values).units(), Workers(2))
    assert [len(unit.runs) for unit in pieces.work] == [
        23,
        20,
        23,
        20,
        11,
        12,
        10,
        10,
        11,
        12,
        10,
        10,
    ]
    assert play(values, tmp_path / "whole") == []
    assert play(values, tmp_path / "pieces", jobs=2) == []
    assert stored(tmp_path / "pieces") == stored(tmp_path / "whole")
    assert len(timings(load_results(tmp_path / "pieces"))) == 8


def test_a_unit_whose_piece_fails_has_failed(tmp_path: Path) -> None:
    values = FAILS | {"seeds": 20, "batch": 20}  # run 1 cannot be drawn
    failed = play(values, tmp_path, jobs=2)
    assert [len(unit.runs) for unit in failed] == [20] * 3
    assert stored(tmp_path) == {}
    assert "runs 0 to 19 failed:\nTraceback" in (tmp_path / "log.txt").read_text()


class Own(Random):
    """Another's agent: it may draw otherwise beside others."""


def test_others_agents_and_environments_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"name": f"{__name__}:Own"}
    values = SIX_RUNS | {"seeds": 40, "batch": 40, "agent": [own, CHANCE]}
    cut = Pieces(declare(values).units(), Workers(2)).work
    sizes = [(unit.agent.name, len(unit.runs)) for unit in cut]
    assert sizes == [(own["name"], 40), ("random", 20), ("random", 20)]
    monkeypatch.setitem(gymnasium.registry, "Own-v0", gymnasium.spec(ABRUPT))
    elsewhere = declare(values | {"environment": [{"id": "Own-v0"}], "agent": [CHANCE]})
    assert len(Pieces(elsewhere.units(), Workers(2)).work) == 1


def test_what_fails_is_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = rollout
    fails = True

    def _rollout(agent: Any, *rest: Any) -> Any:
        if fails and type(agent).__name__ == "Random":
            raise RuntimeError("no luck")
        return real(agent, *rest)

    monkeypatch.setattr(playing, "rollout", _rollout)
    assert {unit.agent.name for unit in play(SIX_RUNS, tmp_path)} == {"random"}
    fails = False
    assert play(SIX_RUNS, tmp_path) == []
    assert "RuntimeError: no luck" in (tmp_path / "log.txt").read_text()
    assert "9 units, 3 to play" in (tmp_path / "log.txt").read_text()


def test_warnings_of_a_unit_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = rollout

    def _rollout(*rest: Any) -> Any:
        warnings.warn("rather hot today", RuntimeWarning, stacklevel=1)
        return real(*rest)

    monkeypatch.setattr(playing, "rollout", _rollout)
    assert play(SIX_RUNS, tmp_path) == []
    log = (tmp_path / "log.txt").read_text()
    assert log.count("RuntimeWarning: rather hot today") == 9
    assert "WARNING random in abrupt, runs 4 to 5: RuntimeWarning: rather hot today" in log
    printed = capsys.readouterr()
    assert "random in abrupt, runs 4 to 5: RuntimeWarning" in printed.out + printed.err


def test_a_unit_is_made_and_played_with_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    for name in ("rollout", "prepare"):
        real = getattr(playing, name)

        def _spy(*rest: Any, real: Any = real) -> Any:
            seen.extend(pool["num_threads"] for pool in threadpool_info())
            return real(*rest)

        monkeypatch.setattr(playing, name, _spy)
    with threadpool_limits(2):
        assert play(SIX_RUNS, tmp_path) == []
    assert len(seen) >= 18
    assert set(seen) == {1}


def test_times_and_memory_of_every_unit(base: Results) -> None:
    rows = timings(base)
    assert {(row["task"], row["agent"], row["first_run"]) for row in rows} == {
        ("abrupt", label, str(first)) for label in base.agents for first in (0, 2)
    }
    # A batch of every agent comes before a second of any: what an end leaves can be compared.
    assert [row["first_run"] for row in rows] == ["0"] * 3 + ["2"] * 3
    for row in rows:
        assert 0 < float(row["seconds"]) < 60
        assert 10 < float(row["peak_memory_mib"]) < 10_000
        assert row["runs"] == "2"
        assert row["worker"].rpartition(":")[2].isdecimal()


@pytest.mark.slow
def test_a_line_that_a_kill_has_cut_is_left_out(tmp_path: Path) -> None:
    accents = SIX_RUNS | {"agent": [{"name": "random", "label": "hasard à λ"}, WINDOWS]}
    play(accents, tmp_path)
    path, victim = tmp_path / "timings.csv", next(tmp_path.glob("units/*/random*/0000004.npz"))
    lines = path.read_bytes().splitlines(keepends=True)
    (last,) = (line for line in lines if line.startswith("abrupt,hasard à λ,4,".encode()))
    others = [line for line in lines if line != last]
    whole = b"".join(others)
    places = range(1, len(last))
    for place in places:
        path.write_bytes(whole + last[:place])
        assert 8 <= len(timings(load_results(tmp_path))) <= 9
        if place % 9 == 0:
            victim.unlink()
            assert play(accents, tmp_path) == []
            assert path.read_bytes().startswith(whole + b"abrupt,hasard")
            rows = list(csv.reader(path.read_text("utf-8").splitlines()))
            assert [len(row) for row in rows] == [7] * 10
            assert [float(row[4]) > 0 for row in rows[1:]] == [True] * 9
    path.write_bytes(lines[0][:10])
    assert timings(load_results(tmp_path)) == []
    victim.unlink()
    assert play(accents, tmp_path) == []
    assert path.read_bytes().startswith(lines[0])


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_ends_the_run_and_keeps_what_is_done(
    jobs: int, tmp_path: Path, base: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    flags = ["--env", f"{ABRUPT}:change_points=[[7,14]]", "--agent", "sw-gp-ucb:window=[5,10]"]
    out = tmp_path / "out"
    command = ["run", *flags, "--agent", "random", "--seeds", "250", "--horizon", "20"]
    command += ["--out", str(out), "--jobs", str(jobs), "--no-report"]
    assert cli.main(command) == 0
    expected = stored(out)
    assert len(expected) == 9
    victim = sorted(out.glob("units/*/random*/*.npz"))[1]
    for path in out.glob("units/*/random*/*.npz"):
        path.unlink()
    before = stored(out)
    with full_disk(victim):
        assert cli.main(command) == 2
    said = capsys.readouterr().err
    assert "wgp-gym run: error: [Errno 28] No space left on device" in said
    assert "Traceback" not in said
    assert before.items() <= stored(out).items()
    assert not victim.exists()
    assert "ended early, by OSError" in (out / "log.txt").read_text()
    assert cli.main(command) == 0
    assert stored(out) == expected


@pytest.mark.slow
def test_a_log_that_cannot_be_written_ends_the_run_cleanly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    (tmp_path / "manifest.json.part").touch()  # of a start that was killed
    play(SIX_RUNS, tmp_path)
    before = stored(tmp_path)
    next(tmp_path.glob("units/*/random*/*.npz")).unlink()
    log = logging.getLogger("wgp_agents.benchmark.run")
    state = log.level, log.propagate, list(log.handlers)
    with monkeypatch.context() as patch:
        patch.setattr(LogFile, "_open", lambda _: Path("/dev/full").open("a"))  # noqa: SIM115
        with pytest.raises(OSError, match="No space left"):
            play(SIX_RUNS, tmp_path)
    assert (log.level, log.propagate, log.handlers) == state
    assert "Logging error" not in capsys.readouterr().err
    assert play(SIX_RUNS, tmp_path) == []
    assert stored(tmp_path) == before


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        (Workers(0), "'jobs' parameter of the workers must be an int of at least 1"),
        (Workers(1, "lokyy"), "did you mean 'loky'"),
        (Workers(1, "loky", "tcp://here"), "'address' .* must be empty for 'loky'"),
    ],
)
def test_wrong_workers_are_refused(workers: Workers, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        workers.checked()
