"""UI-GP-UCB: what it plays, against t x t matrices."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from typing import Any, Literal

import gymnasium
import numpy as np
import pytest
from conftest import trace
from numpy.typing import NDArray

from wgp_agents.algorithms.adaptive.ui_gp_ucb import UIGPUCB
from wgp_agents.algorithms.kernelized.gp_ucb import GPUCB
from wgp_agents.core.observation import observation_of
from wgp_gym.kernels import CentredLinear, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

Model = Literal["walk", "noise"]
DOMAIN = np.linspace(0.0, 1.0, 50)[:, None]
KERNEL = SquaredExponential(0.2)
NOISE = 0.1
PROBLEM = BanditProblem(KERNEL, DOMAIN, 80, NOISE)
ABRUPT = "WGPBandit-Abrupt-v0"
every_model = pytest.mark.parametrize("model", ["walk", "noise"])


def posterior(
    model: Model, plays: Floats, points: Floats, rewards: Floats, injection: float, kernel: Any
) -> tuple[Floats, Floats]:
    """Return mean and variance at points `(n, d)` at the next step, from all plays `(t, d)`."""
    t, now = np.arange(len(plays)), 1.0
    K, k, noise = kernel(plays, plays), kernel(plays, points), np.full(len(plays), NOISE**2)
    if model == "walk":
        K, k = K * (1 + injection * np.minimum(t[:, None], t)), k * (1 + injection * t[:, None])
        now = 1 + injection * len(t)
    else:
        noise += injection * (len(t) - t)
    solved = np.linalg.solve(K + np.diag(noise), k)
    return solved.T @ rewards, now * kernel(points, points).diagonal() - np.sum(k * solved, axis=0)


def pay(arm: int, t: int) -> float:
    return math.sin(5 * DOMAIN[arm, 0] + t / 15) + 0.1 * math.cos(7.1 * t)


@pytest.mark.parametrize(
    ("model", "given", "injection"), [("walk", {}, 0.03), ("noise", {"injection": 0.002}, 0.002)]
)
def test_it_plays_the_largest_bound(model: Model, given: dict[str, Any], injection: float) -> None:
    agent = UIGPUCB(PROBLEM, model=model, **given)
    agent.reset(0)
    arms, rewards = [agent.act()], []
    for t in range(70):
        rewards.append(pay(arms[-1], t))
        agent.observe(arms[-1], rewards[-1])
        mean, variance = posterior(
            model, DOMAIN[arms], DOMAIN, np.array(rewards), injection, KERNEL
        )
        found = agent.posterior()
        assert found.mean == pytest.approx(mean, abs=1e-6)
        assert found.std == pytest.approx(np.sqrt(variance), abs=1e-6)
        arms.append(agent.act())
        bound = mean + math.sqrt(2) * np.sqrt(variance)
        assert bound[arms[-1]] >= bound.max() - 1e-5
    assert len(set(arms)) > 5


def test_the_default_is_the_walk() -> None:
    agents = [UIGPUCB(PROBLEM), UIGPUCB(PROBLEM, model="walk"), UIGPUCB(PROBLEM, model="noise")]
    for agent in agents:
        agent.reset(0)
        for t in range(20):
            agent.observe(t, pay(t, t))
    found = [agent.posterior().std for agent in agents]
    assert np.array_equal(found[0], found[1])
    assert found[0].max() > 1.05  # far from the plays: nothing draws it back to the prior
    assert found[2].max() <= 1.0


@every_model
def test_without_injection_it_is_gp_ucb(model: Model) -> None:
    agent = UIGPUCB(PROBLEM, model=model, injection=0.0, confidence_width="theory")
    plain = GPUCB(PROBLEM)
    for one in (agent, plain):
        one.reset(3)
        for t in range(40):
            one.observe((7 * t) % 50, pay((7 * t) % 50, t))
    assert agent.beta() == plain.beta()
    assert agent.posterior().mean == pytest.approx(plain.posterior().mean, abs=1e-9)
    assert agent.posterior().std == pytest.approx(plain.posterior().std, abs=1e-9)


@every_model
def test_arms_that_are_drawn_anew(model: Model) -> None:
    kernel, rng = CentredLinear(), np.random.default_rng(0)
    problem = BanditProblem(kernel, np.zeros((6, 3)), 40, NOISE, contextual=True)
    agent = UIGPUCB(problem, model=model)
    agent.reset(0)
    plays: list[Floats] = []
    rewards: list[float] = []
    for t in range(30):
        shown = rng.random((6, 3)).astype(np.float32).astype(float)
        arm = agent.act(observation_of(shown))
        if t > 0:
            seen = np.array(plays), shown, np.array(rewards)
            mean, variance = posterior(model, *seen, 0.03, kernel)
            found = agent.posterior()
            assert found.mean == pytest.approx(mean, abs=1e-6)
            assert found.std == pytest.approx(np.sqrt(variance), abs=1e-6)
            bound = mean + np.sqrt(2 * variance)
            assert bound[arm] >= bound.max() - 1e-5
        plays.append(shown[arm])
        rewards.append(float(shown[arm] @ [1.0, -0.5, 0.2]))
        agent.observe(arm, rewards[-1])


@every_model
@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_learner_i_is_the_single_learner(model: Model, batch: int) -> None:
    env: Any = gymnasium.make_vec(ABRUPT, num_envs=batch, vectorization_mode="vector_entry_point")
    added = np.geomspace(0.001, 3.0, batch)
    together = trace(UIGPUCB(env, model=model, injection=added), env, 5)
    for i in range(0, batch, 33):
        env = gymnasium.make(ABRUPT)
        alone = trace(UIGPUCB(env, model=model, injection=added[i]), env, 5 + i)
        for all_learners, single in zip(together, alone, strict=True):
            assert np.array_equal(all_learners[i], single[0])


@every_model
def test_it_plays_a_box(model: Model) -> None:
    agent = UIGPUCB(replace(PROBLEM, continuous=True), model=model)
    agent.reset(0)
    arms = [(7 * t) % 50 for t in range(12)]
    rewards = np.array([pay(arm, t) for t, arm in enumerate(arms)])
    for arm, reward in zip(arms, rewards, strict=True):
        agent.observe(DOMAIN[arm], reward)
    fine = np.linspace(0.0, 1.0, 2_001)[:, None]
    chosen = np.asarray(agent.act(), float)[None]
    mean, variance = posterior(model, DOMAIN[arms], fine, rewards, 0.03, KERNEL)
    there = posterior(model, DOMAIN[arms], chosen, rewards, 0.03, KERNEL)
    best = (mean + np.sqrt(2 * variance)).max()
    assert there[0] + np.sqrt(2 * there[1]) == pytest.approx(best, abs=1e-3)


@every_model
def test_a_copy_plays_on_alike(model: Model) -> None:
    agent = UIGPUCB(PROBLEM, model=model)
    agent.reset(0)
    for t in range(20):
        agent.observe(agent.act(), pay(t, t))
    for twin in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        other = copy.deepcopy(agent)
        for one in (twin, other):
            one.observe(3, 0.5)
        assert [twin.act() for _ in range(3)] == [other.act() for _ in range(3)]
        assert np.array_equal(twin.posterior().mean, other.posterior().mean)
        assert twin.information_gain() == other.information_gain() != agent.information_gain()
        assert not np.array_equal(twin.posterior().mean, agent.posterior().mean)


@every_model
def test_huge_rewards(model: Model) -> None:
    agent, small = UIGPUCB(PROBLEM, model=model), UIGPUCB(PROBLEM, model=model)
    for one, scale in ((agent, 1e30), (small, 1.0)):
        one.reset(0)
        for t in range(60):
            one.observe((7 * t) % 50, scale * pay((7 * t) % 50, t))
    assert agent.posterior().mean / 1e30 == pytest.approx(small.posterior().mean, abs=1e-8)


ERRORS: list[tuple[str, Any, str]] = [
    ("injection", -0.1, r"a float in .*, 1e.[36]0\]"),
    ("injection", math.inf, r"a float in .*, 1e.[36]0\]"),
    ("injection", [0.1, 0.1], "a scalar or of shape"),
    ("model", "drift", "one of"),
    ("delta", 1.0, r"a float in \[1e-30, 1\)"),
    ("confidence_width", "paper", "'theory', 'heuristic', a number or a function"),
    ("confidence_width", "constant", "'theory', 'heuristic', a number or a function"),
]


@pytest.mark.parametrize(("name", "value", "rule"), ERRORS)
def test_bad_parameters_are_refused(name: str, value: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' parameter of UIGPUCB must be {rule}"):
        UIGPUCB(PROBLEM, **{name: value})


def test_there_is_no_norm_bound() -> None:
    with pytest.raises(ValueError, match="UIGPUCB has no parameter 'norm_bound'"):
        UIGPUCB(PROBLEM, norm_bound=1.0)  # type: ignore[call-arg]
