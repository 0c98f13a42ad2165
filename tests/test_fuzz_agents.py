"""Random calls of every agent, half of them hostile: refused in words, or a play of the task."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from conftest import LEARNERS, fits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.core.observation import observation_of
from wgp_gym.kernels import CentredLinear, SquaredExponential
from wgp_gym.problem import BanditProblem

pytestmark = pytest.mark.slow

ARMS, DIM, STEPS = 5, 2, 40
MESSAGE = 1_000  # characters that a refusal may take
PLACES = np.random.default_rng(0).random((ARMS, DIM))
KINDS = ("arms", "box", "contextual")

numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-3, ARMS + 3),
    st.sampled_from([10**400, -(10**400), 2**63, 1e300, -1e300, 5e-324, True, None, "1", b"1", 1j]),
    st.just(np.ma.masked),
)
hostile = st.one_of(
    numbers,
    st.lists(numbers, max_size=8),
    st.lists(st.lists(numbers, max_size=3), max_size=4),
    arrays(np.float64, array_shapes(max_dims=3, max_side=12)),
    arrays(np.int64, array_shapes(max_dims=2, max_side=12)),
    st.just(np.ma.masked_equal([1.0, -9999.0, 1.0], -9999.0)),
    st.just({"a": 1}),
)
masks = st.one_of(hostile, *(arrays(np.bool_, shape) for shape in [(ARMS,), (3, ARMS), (1,), (3,)]))
call = st.sampled_from(
    ["play", "observe", "predict", "act", "posterior", "reset", "allowed", "active", "learners"]
)
steps = st.lists(st.tuples(call, hostile, hostile, st.booleans(), masks), min_size=1, max_size=8)


def problem(kind: str, batch: int | None) -> BanditProblem:
    each = 1.0 if batch is None else np.ones(batch)
    kernel = CentredLinear() if kind == "contextual" else SquaredExponential(0.5)
    return BanditProblem(
        kernel,
        PLACES,
        STEPS,
        0.1,
        each,
        each,
        continuous=kind == "box",
        contextual=kind == "contextual",
    )


def made(name: str, kind: str, batch: int | None) -> Agent | None:
    """Return an agent in the middle of a run, or None if it does not play such tasks."""
    try:
        agent = wgp_agents.make(name, problem(kind, batch))
    except ValueError:
        return None
    agent.reset(3)
    for _ in range(3):
        play(agent)
    return agent


def shown(agent: Agent) -> Any:
    """Return an observation that the task could show at its beginning."""
    batch = (agent.num_learners,) if agent.batched else ()
    if agent.problem.contextual:
        return observation_of(np.broadcast_to(PLACES[::-1], (*batch, ARMS, DIM)))
    return np.zeros((*batch, 3 + DIM))


def play(agent: Agent) -> None:
    """Play a step, and check that it fits the task."""
    action = agent.act(shown(agent))
    many = np.asarray(action)
    if agent.problem.continuous:
        assert ((many >= 0) & (many <= 1)).all()
    else:
        assert ((many >= 0) & (many < ARMS)).all()
    agent.observe(action, 0.3 * np.ones(agent.num_learners) if agent.batched else 0.3)


def attempt(agent: Agent, what: str, first: Any, second: Any, third: bool, mask: Any) -> None:
    """Make one call."""
    if what == "play":
        play(agent)
    elif what == "observe":
        agent.observe(first, second, **({"arms": first} if third else {}))
    elif what == "predict":
        agent.predict(shown(agent) if third else first, episode_start=second)
    elif what == "act":
        agent.act(first)
    elif what == "reset":
        agent.reset(first)
    elif what == "allowed":
        agent.act(shown(agent), allowed=mask)
    elif what == "active":
        agent.observe(first, second, active=mask)
    elif what == "learners":
        agent.reset(first if third else None, learners=mask)
    elif hasattr(agent, "posterior"):
        assert np.isfinite(agent.posterior()).all()


def same(one: Agent, other: Agent) -> None:
    """Check that two agents go on alike."""
    for _ in range(2):
        np.testing.assert_array_equal(one.act(shown(one)), other.act(shown(other)))
        if hasattr(one, "posterior") and hasattr(other, "posterior"):
            np.testing.assert_array_equal(one.posterior(), other.posterior())


@pytest.mark.parametrize("name", [name for name in LEARNERS if fits(name, "WGPBandit-Abrupt-v0")])
@settings(
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from(KINDS), st.sampled_from([None, 1, 3]), steps)
def test_every_call_is_a_play_or_a_refusal(
    name: str, kind: str, batch: int | None, steps: list[tuple[str, Any, Any, bool, Any]]
) -> None:
    agent = made(name, kind, batch)
    if agent is None:
        return
    for what, *rest in steps:
        before = copy.deepcopy(agent)
        try:
            attempt(agent, what, *rest)
        except (ValueError, RuntimeError) as refusal:
            text = str(refusal)
        else:
            continue
        assert len(text) < MESSAGE
        same(copy.deepcopy(agent), before)
    play(agent)
    if hasattr(agent, "posterior"):
        assert np.isfinite(agent.posterior()).all()
        assert not math.isnan(float(np.sum(agent.posterior())))
