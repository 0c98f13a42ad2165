"""GP-UCB, TV-GP-UCB and its R-GP-UCB: what they play, against t x t matrices."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import trace
from numpy.typing import NDArray

from wgp_agents.algorithms.kernelized.gp_ucb import GPUCB
from wgp_agents.algorithms.kernelized.tv_gp_ucb import TVGPUCB
from wgp_agents.algorithms.kernelized.tv_r_gp_ucb import TVRGPUCB
from wgp_agents.gp.agent import GPAgent
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

DOMAIN = np.linspace(0.0, 1.0, 50)[:, None]
KERNEL = SquaredExponential(0.2)
NOISE = 0.1
PROBLEM = BanditProblem(KERNEL, DOMAIN, 80, NOISE)
ABRUPT = "WGPBandit-Abrupt-v0"
CLASSES: list[Any] = [GPUCB, TVGPUCB, TVRGPUCB]
every_agent = pytest.mark.parametrize("kind", CLASSES)


def reward(arm: int, t: int) -> float:
    return math.sin(5 * DOMAIN[arm, 0] + t / 15) + 0.1 * math.cos(7.1 * t)


def follow(agent: GPAgent, steps: int) -> tuple[list[int], list[float], list[float]]:
    """Return what an agent plays, what it is paid, and the widths that it plays with."""
    agent.reset(0)
    arms, rewards, widths = [], [], []
    for t in range(steps):
        widths.append(agent.beta())
        arms.append(agent.act())
        rewards.append(reward(arms[-1], t))
        agent.observe(arms[-1], rewards[-1])
    return arms, rewards, widths


def bounds(arms: list[int], rewards: list[float], eps: float, width: float) -> Floats:
    """Return mean + width * std at the next step from the covariance of all plays."""
    t, gram = len(arms), KERNEL(DOMAIN, DOMAIN)
    age = np.arange(t)
    apart = np.abs(age[:, None] - age) / 2
    M = gram[np.ix_(arms, arms)] * (1 - eps) ** apart + NOISE**2 * np.eye(t)
    k = gram[arms] * (1 - eps) ** ((t - age[:, None]) / 2)
    variance = 1 - np.sum(k * np.linalg.solve(M, k), axis=0)
    found: Floats = k.T @ np.linalg.solve(M, np.array(rewards)) + width * np.sqrt(variance)
    return found


def check_plays(agent: GPAgent, eps: float, widths: list[float]) -> None:
    arms, rewards, betas = follow(agent, len(widths))
    assert betas == pytest.approx(widths, rel=1e-12)
    assert len(set(arms)) > 3
    for t in range(1, len(arms)):
        bound = bounds(arms[:t], rewards[:t], eps, widths[t])
        assert bound[arms[t]] == pytest.approx(bound.max(), abs=1e-6)


THEORY = [math.sqrt(2 * math.log(50 * (math.pi * t) ** 2 / (6 * 0.1))) for t in range(1, 61)]
HEURISTIC = [math.sqrt(0.8 * math.log(4 * t)) for t in range(1, 61)]


def test_gp_ucb_plays_its_bound() -> None:
    check_plays(GPUCB(PROBLEM), 0.0, THEORY)


@pytest.mark.parametrize("eps", [0.0, 0.03, 0.3])
def test_tv_gp_ucb_plays_its_bound(eps: float) -> None:
    check_plays(TVGPUCB(PROBLEM, eps=eps), eps, HEURISTIC)
    check_plays(TVGPUCB(PROBLEM, eps=eps, confidence_width="theory"), eps, THEORY)
    check_plays(TVGPUCB(PROBLEM, eps=eps, confidence_width=1.5), eps, [1.5] * 30)


def test_tv_gp_ucb_fits_eps_where_told() -> None:
    agent = TVGPUCB(PROBLEM, eps="fit")
    arms, rewards, _ = follow(agent, 60)
    eps = float(agent.surrogate.eps[0])  # type: ignore[attr-defined]
    assert 1e-4 <= eps <= 0.1
    expected = bounds(arms, rewards, eps, agent.beta())
    assert agent.confidence_interval().upper == pytest.approx(expected, abs=1e-7)


def test_without_drift_both_agents_of_the_model_are_gp_ucb() -> None:
    same = follow(GPUCB(PROBLEM, confidence_width="heuristic"), 60)
    assert follow(TVGPUCB(PROBLEM, eps=0.0), 60)[1] == same[1]
    assert follow(TVGPUCB(PROBLEM), 60)[1] != same[1]
    assert follow(TVRGPUCB(PROBLEM, eps=0.0), 60)[1] == same[1]


def test_r_gp_ucb_is_gp_ucb_run_afresh_on_each_block() -> None:
    # N = ceil(12 x 0.0625^{-1/4}) = 24
    arms, rewards, widths = follow(TVRGPUCB(PROBLEM, eps=0.0625), 60)
    assert widths == pytest.approx(HEURISTIC)
    for start in (0, 24, 48):

        def _width(seen: NDArray[np.int64], past: int = start) -> Floats:
            found: Floats = np.sqrt(0.8 * np.log(4 * (seen + past + 1)))
            return found

        twin = GPUCB(PROBLEM, confidence_width=_width)
        twin.reset(0)
        block = list(zip(arms, rewards, strict=True))[start : start + 24]
        for t, (arm, paid) in enumerate(block):
            upper = twin.confidence_interval().upper
            assert upper[arm] == pytest.approx(upper.max(), abs=1e-8), (start, t)
            twin.observe(arm, paid)


LENGTHS = [(0.01, 38), (0.03, 29), (1.0, 12), (1e-3, 68), (1e-4, math.inf), (0.0, math.inf)]


@pytest.mark.parametrize(("eps", "period"), LENGTHS)
def test_the_length_of_a_block(eps: float, period: float) -> None:
    # T = 80; 12 eps^{-1/4} = 37.95, 28.83, 12, 67.48, 120
    agent = TVRGPUCB(PROBLEM, eps=eps)
    agent.reset(0)
    assert agent.surrogate.period[0] == period  # type: ignore[attr-defined]


def test_a_length_that_is_whole_is_not_rounded_up() -> None:
    agent = TVRGPUCB(BanditProblem(KERNEL, DOMAIN, 500, NOISE), eps=1e-4)
    agent.reset(0)
    assert agent.surrogate.period[0] == 120  # type: ignore[attr-defined]


def test_the_length_of_a_block_may_be_given() -> None:
    agent = TVRGPUCB(PROBLEM, restart_period=7)
    agent.reset(0)
    assert agent.surrogate.period[0] == 7  # type: ignore[attr-defined]


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("kind", "own"), [(GPUCB, {}), (TVGPUCB, {}), (TVGPUCB, {"eps": "fit"}), (TVRGPUCB, {})]
)
def test_learner_i_is_the_single_learner(kind: Any, own: dict[str, Any], batch: int) -> None:
    env: Any = gymnasium.make_vec(ABRUPT, num_envs=batch, vectorization_mode="vector_entry_point")
    together = trace(kind(env, **own), env, 5)
    for i in range(0, batch, 33):
        env = gymnasium.make(ABRUPT)
        alone = trace(kind(env, **own), env, 5 + i)
        for all_learners, single in zip(together, alone, strict=True):
            assert np.array_equal(all_learners[i], single[0])


@pytest.mark.parametrize("kind", [TVGPUCB, TVRGPUCB])
def test_each_learner_has_its_own_drift(kind: Any) -> None:
    env: Any = gymnasium.make_vec(ABRUPT, num_envs=3, vectorization_mode="vector_entry_point")
    values, width = [0.001, 0.1, 1.0], [1.0, 2.0, 3.0]
    agents = kind(env, eps=values, confidence_width=width, delta=[0.1, 0.2, 0.3])
    together = trace(agents, env, 5)
    for i in range(3):
        env = gymnasium.make(ABRUPT)
        alone = trace(kind(env, eps=values[i], confidence_width=width[i]), env, 5 + i)
        for all_learners, single in zip(together, alone, strict=True):
            assert np.array_equal(all_learners[i], single[0])


@every_agent
def test_agents_play_a_box(kind: Any) -> None:
    env = gymnasium.make(ABRUPT, continuous=True, horizon=4)
    agent = kind(env, confidence_width="theory")
    env.reset(seed=0)
    agent.reset(0)
    for _ in range(4):
        action = agent.act()
        agent.observe(action, float(env.step(action)[1]))
    mean, std = agent.posterior()
    assert np.isfinite(mean).all()
    assert std.min() >= 0


@every_agent
def test_a_copy_plays_on_alike(kind: Any) -> None:
    agent = kind(PROBLEM)
    follow(agent, 20)
    for twin in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        twin.observe(3, 0.5)
        other = copy.deepcopy(agent)
        other.observe(3, 0.5)
        assert [twin.act() for _ in range(3)] == [other.act() for _ in range(3)]
        assert np.array_equal(twin.posterior().mean, other.posterior().mean)


ERRORS: list[tuple[str, Any, str]] = [
    ("delta", 0.0, r"a float in \[1e-30, 1\)"),
    ("delta", [0.1, 0.1], "a scalar or of shape"),
    ("confidence_width", "paper", "'theory', 'heuristic',.* a number or a function"),
    ("confidence_width", -1.0, r"a float in .*, 1e.[36]0\]"),
    ("regularization", 0.0, r"a float in .*, 1e.[36]0\]"),
    ("noise_scale", -1.0, r"a float in .*, 1e.[36]0\]"),
]


@pytest.mark.parametrize(("name", "value", "rule"), ERRORS)
@every_agent
def test_bad_parameters_are_refused(kind: Any, name: str, value: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' parameter of {kind.__name__} must be {rule}"):
        kind(PROBLEM, **{name: value})


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, "guess", True])
def test_a_bad_drift_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="'eps' parameter of TVGPUCB must be"):
        TVGPUCB(PROBLEM, eps=value)
    with pytest.raises(ValueError, match="'eps' parameter of TVRGPUCB must be"):
        TVRGPUCB(PROBLEM, eps=value)


def test_a_bad_block_is_refused() -> None:
    with pytest.raises(ValueError, match="'restart_period' parameter of TVRGPUCB must be"):
        TVRGPUCB(PROBLEM, restart_period=0)
