"""Batches of learners on several threads: the same numbers as on one."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import wgp_agents
from wgp_agents.algorithms.adaptive.dal_gp_ucb import covering_set
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.gp.action_sets import FixedArms
from wgp_agents.gp.box import Box
from wgp_agents.gp.nystrom import NystromArms
from wgp_gym import threads
from wgp_gym.threads import over_learners, over_parts
from wgp_gym.types import Array, Mask

LEARNERS = 40
AGENTS = ("wgp-ucb", "igp-ucb", "sw-gp-ucb", "tv-gp-ucb", "adaptive-wgp-ucb")


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    wgp_agents.set_threads(None)


def played(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Array, Array, int]:
    """Play an agent; return its actions, its posterior, and how many threads have worked."""
    env = make_vector("WGPBandit-Abrupt-v0", LEARNERS, horizon=40)
    agent, seen = wgp_agents.make(name, env), set()

    def _parts(call: object, number: int, work: float) -> list[object]:
        def _seen(part: slice) -> object:
            seen.add(threading.get_ident())
            return call(part)  # type: ignore[operator]

        return over_parts(_seen, number, work)

    for module in ("wgp_gym.threads", "wgp_agents.gp.surrogates.bank"):
        monkeypatch.setattr(f"{module}.over_parts", _parts)
    wgp_agents.set_threads(count)
    actions = rollout(agent, env, 7)["action"]
    posterior = agent.posterior()  # type: ignore[attr-defined]
    return actions, np.stack([posterior.mean, posterior.std]), len(seen)


@pytest.mark.parametrize("name", AGENTS)
def test_numbers_are_the_same_on_any_number_of_threads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "LEAST", 20_000.0)  # a part for each of three
    alone = played(name, 1, monkeypatch)
    for count in (2, 3):
        found = played(name, count, monkeypatch)
        np.testing.assert_array_equal(found[0], alone[0])
        np.testing.assert_array_equal(found[1], alone[1])
        assert found[2] >= 2
    assert alone[2] == 1


def test_parts_are_all_learners_once() -> None:
    wgp_agents.set_threads(4)
    parts = over_parts(lambda part: part, 10, 1e9)
    assert [(part.start, part.stop) for part in parts] == [(0, 2), (2, 5), (5, 7), (7, 10)]
    active = np.array([True, False, True, True, True])

    def _mine(mask: Mask) -> list[int]:
        return np.flatnonzero(mask).tolist()

    found = over_learners(_mine, active, 1e9)
    assert sorted(itertools.chain(*found)) == [0, 2, 3, 4]


def test_little_work_stays_on_this_thread() -> None:
    wgp_agents.set_threads(4)
    here = threading.get_ident()
    assert over_parts(lambda part: threading.get_ident(), 10, 1_000.0) == [here]
    assert over_parts(lambda part: threading.get_ident(), 1, 1e9) == [here]


def test_an_error_comes_once_all_have_ended() -> None:
    wgp_agents.set_threads(3)
    ended: list[int] = []

    def _call(part: slice) -> None:
        if part.start == 0:
            raise OverflowError("the first")
        threading.Event().wait(0.05)
        ended.append(part.start)

    with pytest.raises(OverflowError, match="the first"):
        over_parts(_call, 3, 1e9)
    assert sorted(ended) == [1, 2]


def said(code: str, **told: str) -> str:
    """Run code in a process whose threads are pinned by `told` alone; return what it prints."""
    env = {name: value for name, value in os.environ.items() if name not in threads.PINNED}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, env=env | told, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.mark.parametrize("count", [0, 1.5, 2_000])
def test_a_number_of_threads_is_checked(count: int) -> None:
    with pytest.raises(ValueError, match="'count'"):
        wgp_agents.set_threads(count)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "expected"),
    [({"NUMBA_NUM_THREADS": "3", "OMP_NUM_THREADS": "1"}, 3), ({"OMP_NUM_THREADS": "2,1"}, 2)],
)
def test_the_default_keeps_to_what_is_pinned(told: dict[str, str], expected: int) -> None:
    found = said("import wgp_agents; print(wgp_agents.get_threads())", **told)
    assert found == str(expected)


@pytest.mark.slow
def test_a_worker_has_one_thread() -> None:
    found = said(
        "import joblib, wgp_agents\n"
        "print(joblib.Parallel(2)(joblib.delayed(wgp_agents.get_threads)() for _ in range(2)))"
    )
    assert found == "[1, 1]"


def test_a_forked_process_begins_anew() -> None:
    wgp_agents.set_threads(3)
    assert over_parts(lambda part: part.stop - part.start, 3, 1e9) == [1, 1, 1]
    threads.begin_anew()
    assert wgp_agents.get_threads() == threads.default_threads()
    wgp_agents.set_threads(3)
    assert over_parts(lambda part: part.stop - part.start, 3, 1e9) == [1, 1, 1]


def test_without_new_threads_a_part_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def _refuse(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    wgp_agents.set_threads(2)
    monkeypatch.setattr(threads, "pool", lambda _: type("Ended", (), {"submit": _refuse})())
    here = threading.get_ident()
    assert over_parts(lambda part: threading.get_ident(), 2, 1e9) == [here, here]


@pytest.mark.parametrize(
    "make",
    [
        lambda source, points: FixedArms(source, points, np.ones(2)),
        lambda source, points: Box(source, points, np.ones(2)),
        lambda source, points: NystromArms(source, points, points, np.ones(2)),
        lambda source, points: covering_set(source, points, 0.1),
    ],
)
def test_features_are_found_on_one_thread_of_blas(make: Callable[..., object]) -> None:
    counts = list[int]()

    def _features(points: Array) -> Array:
        counts.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return np.concatenate([points, points**2], axis=1)

    with threadpool_limits(2, user_api="blas"):
        make(_features, np.random.default_rng(0).random((50, 2)))
    assert counts
    assert set(counts) == {1}
