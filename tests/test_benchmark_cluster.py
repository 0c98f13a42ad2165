"""Units on a Dask or a Ray cluster: the same numbers, though a worker is killed."""

from __future__ import annotations

import os
import pickle
import runpy
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_small import ABRUPT, SIX_RUNS, play, stored, write_toml
from threadpoolctl import threadpool_info

from wgp_agents import cli
from wgp_agents.benchmark import play as playing
from wgp_agents.benchmark.declaration import declare
from wgp_agents.benchmark.experiment import Unit
from wgp_agents.benchmark.parallel import Workers, run_as_done
from wgp_agents.benchmark.play import attempt
from wgp_agents.benchmark.rollout import rollout
from wgp_agents.benchmark.run import run

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "many_learners.py"
LONGER = SIX_RUNS | {"seeds": 20, "horizon": 200}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    here = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with distributed.LocalCluster(dashboard_address=":0", **here) as started:
        yield started


def threads(unit: Unit) -> list[int]:
    """Play a unit; return the sizes of the pools meanwhile, and then the process."""
    seen: list[int] = []

    def _rollout(*rest: Any) -> Any:
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return rollout(*rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(playing, "rollout", _rollout)
        playing.play(unit)
    return [*seen, os.getpid()]


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    serial, out = tmp_path / "serial", tmp_path / "cluster"
    play(LONGER, serial)
    killed: list[int] = []

    def _kill() -> None:
        while len(list(out.glob("units/*/*/*.npz"))) < 3:
            time.sleep(0.01)
        # One that has played: its row is written just after its unit.
        killed.append(int((out / "timings.csv").read_text().splitlines()[1].rpartition(":")[2]))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=_kill, daemon=True)
    killer.start()
    assert run(declare(LONGER), out, Workers(2, "dask", cluster.scheduler_address)) == []
    killer.join(10)
    assert killed
    assert stored(out, ".npz") == stored(serial, ".npz")
    log, timings = ((out / name).read_text() for name in ("log.txt", "timings.csv"))
    assert "done, 0 of 30 units failed" in log
    workers = {line.rpartition(":")[2] for line in timings.splitlines()[1:]}
    assert str(killed[0]) in workers
    assert len(workers) >= 2  # the other one, or that in its place, has played the rest
    assert str(os.getpid()) not in workers


@pytest.mark.slow
def test_a_worker_plays_with_one_thread(cluster: Any) -> None:
    made = declare(SIX_RUNS)
    workers = Workers(2, "dask", cluster.scheduler_address)
    cluster.wait_for_workers(2, timeout=60)  # on fewer, joblib plays here
    for *sizes, process in run_as_done(threads, made.units(), workers):
        assert process != os.getpid()
        assert sizes
        assert set(sizes) == {1}


def test_little_is_moved() -> None:
    values = SIX_RUNS | {"seeds": 100, "batch": 100, "horizon": 500}
    (_, _, unit) = declare(values | {"environment": [{"id": ABRUPT}]}).units()
    outcome = attempt(unit)
    assert outcome.error == ""
    # A unit is words; per run and step come back a float32, two bytes and a truth value.
    assert len(pickle.dumps(unit)) < 1_000
    assert len(pickle.dumps(outcome)) < 100 * 500 * 7 + 10_000


@pytest.mark.slow
def test_another_backend_of_joblib_plays_the_same(whole: Path, tmp_path: Path) -> None:
    assert run(declare(SIX_RUNS), tmp_path, Workers(2, "multiprocessing").checked()) == []
    assert stored(tmp_path) == stored(whole)


def test_threads_would_share_what_belongs_to_a_process() -> None:
    for backend in ("threading", "sequential"):
        with pytest.raises(ValueError, match=f"must be one of .*'loky'.* Got '{backend}'"):
            Workers(2, backend).checked()


@pytest.mark.slow
def test_ray_plays_the_same(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="the extra 'harnesses' brings it")
    play(SIX_RUNS, tmp_path / "serial")
    try:
        assert run(declare(SIX_RUNS), tmp_path / "ray", Workers(2, "ray")) == []
    finally:
        ray.shutdown()
    assert stored(tmp_path / "ray", ".npz") == stored(tmp_path / "serial", ".npz")
    workers = (tmp_path / "ray" / "timings.csv").read_text().splitlines()[1:]
    assert str(os.getpid()) not in {line.rpartition(":")[2] for line in workers}


@pytest.mark.slow
def test_the_command_starts_a_cluster_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed")
    play(SIX_RUNS, tmp_path / "serial")
    file = write_toml(tmp_path / "small.toml", SIX_RUNS)
    command = ["run", str(file), "--backend", "dask", "--jobs", "1", "--no-report", "--out"]
    assert cli.main([*command, str(tmp_path / "out")]) == 0
    assert stored(tmp_path / "out") == stored(tmp_path / "serial")
    nobody = ["--address", "nonsense://nowhere"]
    assert cli.main([*command, str(tmp_path / "new"), *nobody]) == 2
    assert "wgp-gym run: error: " in capsys.readouterr().err
    assert not list(tmp_path.glob("new/units/*"))


@pytest.mark.slow
def test_shards_of_learners_on_workers_choose_as_one_batch_does(cluster: Any) -> None:
    distributed: Any = pytest.importorskip("distributed")
    example: Any = runpy.run_path(str(EXAMPLE))
    with distributed.Client(cluster) as client:
        found = example["play"](client, "wgp-ucb", 7, 12, 3, seed=5)
    agent, world = example["sharded"]("wgp-ucb", 7), example["World"](7, 5)
    agent.reset(5)
    actions = agent.act()
    for t in range(12):
        agent.observe(actions, world.pay(actions, t))
        actions = agent.act()
    np.testing.assert_array_equal(found.actions, actions)
    assert len(set(actions.tolist())) > 1
