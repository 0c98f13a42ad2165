"""BOB-LinUCB: SW-LinUCB in blocks, its window drawn by Exp3, against naive ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_agents_bob import NaiveExp3

import wgp_agents
from wgp_agents.algorithms.linear.bob_lin_ucb import BOBLinUCB, default_block, default_windows
from wgp_agents.algorithms.linear.sw_lin_ucb import SWLinUCB
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.kernels import CentredLinear
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

ANGLES = np.arange(11) * 0.57
X = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)  # unit vectors, shown as (x + 1) / 2
NOISE, T, L, S, DELTA = 0.1, 300, 15, 1.5, 0.1
WINDOWS = (2, 5, 15)


def problem(batch: int | None = None, horizon: int = T) -> BanditProblem:
    bound: Any = S if batch is None else np.full(batch, S)
    return BanditProblem(CentredLinear(), (X + 1) / 2, horizon, NOISE, bound, bound)


def reward(arm: int, t: int) -> float:
    return float(X[arm] @ [math.cos(t / 25), math.sin(t / 25)]) + 0.1 * math.cos(7.1 * t)


def bounds(arms: list[int], rewards: list[float], window: int) -> Floats:
    """Return x^T theta + beta ||x|| of every arm from the last plays of the block."""
    seen, paid = X[arms[-window:]], np.array(rewards[-window:])
    V = seen.T @ seen + np.eye(2)
    theta = np.linalg.solve(V, seen.T @ paid)
    gain = 2 * math.log(1 + len(seen) / 2) + 2 * math.log(1 / DELTA)
    norms = np.sqrt(np.sum(X * np.linalg.solve(V, X.T).T, axis=1))
    found: Floats = X @ theta + (S + NOISE * math.sqrt(gain)) * norms
    return found


def test_it_is_sw_lin_ucb_in_blocks_under_exp3() -> None:
    agent = BOBLinUCB(
        problem(), block_length=L, windows=WINDOWS, gamma=0.3, reward_range=(-1.0, 1.0)
    )
    agent.reset(5)
    stream, master = UniformStreams([5]), NaiveExp3(3, 0.3)
    drawn: list[int] = []
    for block in range(T // L):
        arms: list[int] = []
        rewards: list[float] = []
        for step in range(L):
            uniform = [float(stream.draw()[0]) for _ in range(2)]  # the second one breaks ties
            if step == 0:
                drawn.append(master.draw(uniform[0]))
            arm = agent.act()
            assert agent.candidate[0] == drawn[-1]
            if step == 0:
                assert arm == int(uniform[1] * 11)  # nothing is known: all arms are alike
            else:
                bound = bounds(arms, rewards, WINDOWS[drawn[-1]])
                assert bound[arm] == pytest.approx(bound.max(), abs=1e-9)
            arms.append(arm)
            rewards.append(reward(arm, block * L + step))
            agent.observe(arm, rewards[-1])
        # [CSZ19]: 1 / 2 + sum / (2 L + 4 R (L ln(T / L^{1/2}))^{1/2})
        width = 2 * L + 4 * NOISE * math.sqrt(L * math.log(T / math.sqrt(L)))
        master.learn(drawn[-1], 1 / 2 + sum(rewards) / width)
    assert len(set(drawn)) == 3
    agent.act()
    found = agent.restart_rule.weights.probabilities()[0]  # type: ignore[union-attr]
    np.testing.assert_allclose(found, master.probabilities(), rtol=1e-12)


def test_with_one_window_it_is_sw_lin_ucb_restarted() -> None:
    agent = BOBLinUCB(problem(), block_length=L, windows=[5])
    agent.reset(0)
    for _block in range(3):
        alone = SWLinUCB(problem(), window=5)
        alone.reset(0)
        for t in range(L):
            arm = agent.act()
            assert agent.beta() == pytest.approx(alone.beta(), rel=1e-12)
            np.testing.assert_allclose(agent.posterior(), alone.posterior(), atol=1e-9)
            agent.observe(arm, reward(arm, t))
            alone.observe(arm, reward(arm, t))


def test_plays_before_a_block_begins_are_forgotten() -> None:
    agent, fresh = (BOBLinUCB(problem(), block_length=L, windows=WINDOWS) for _ in range(2))
    for one in (agent, fresh):
        one.reset(3)
    for t in range(7):
        agent.observe(t, 1.0)  # it was not asked yet
    for t in range(3 * L):
        arm = agent.act()
        assert arm == fresh.act()
        for one in (agent, fresh):
            one.observe(arm, reward(arm, t))


def test_defaults_by_hand() -> None:
    assert default_block(6000, 2) == 154  # 2 * 77.46
    assert default_block(3, 4) == 3
    # D = ceil(ln 154) = 6, 154^{1/6} = 2.3152
    assert default_windows(154).tolist() == [1, 2, 5, 12, 28, 66, 154]
    assert default_windows(1).tolist() == [1]
    assert default_windows(2).tolist() == [1, 2]
    assert all(default_windows(length).max() == length for length in range(1, 500))
    agent = BOBLinUCB(problem(horizon=6000))
    assert agent.block_length == 154
    np.testing.assert_array_equal(agent.windows, default_windows(154))


def regret_of(name: str, seed: int, **parameters: Any) -> float:
    """Return the mean regret of 20 learners where theta turns round twice."""
    agent = wgp_agents.make(name, problem(20, 1200), **parameters)
    agent.reset(1000 * seed)
    rng, regret = np.random.default_rng(seed), 0.0
    for t in range(1200):
        means = X @ [1.0, 0.0] * (1 if (t // 400) % 2 == 0 else -1)
        arms = np.asarray(agent.act())
        regret += means.max() - means[arms].mean()
        agent.observe(arms, means[arms] + NOISE * rng.standard_normal(20))
    return regret


def test_it_follows_changes_that_lin_ucb_does_not() -> None:
    # On seeds 1 to 8: 273 to 328 against 971 to 975.
    assert regret_of("bob-lin-ucb", 1) < 0.5 * regret_of("lin-ucb", 1)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("block_length", 0),
        ("block_length", T + 1),
        ("windows", [0, 3]),
        ("windows", [1.5, 3]),
        ("windows", []),
        ("gamma", 0.0),
        ("gamma", 1.5),
        ("reward_range", (1.0, 0.0)),
    ],
)
def test_errors(parameter: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of BOBLinUCB must be"):
        wgp_agents.make("bob-lin-ucb", problem(), **{parameter: value})
