"""BOB-WGP-UCB: its blocks, Exp3 above them, and the memory within them, against naive ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_agents.algorithms.adaptive.bandit_over_bandit import block_rate
from wgp_agents.algorithms.adaptive.bob_wgp_ucb import (
    BOBWGPUCB,
    default_block,
    default_discounts,
)
from wgp_agents.algorithms.kernelized.wgp_ucb import WGPUCB
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

DOMAIN = np.linspace(0.0, 1.0, 30)[:, None]
KERNEL = SquaredExponential(0.2)
NOISE, T, L, WIDTH = 0.1, 84, 12, 2.0
DISCOUNTS = (0.5, 0.8, 1.0)


def problem(batch: int | None = None, horizon: int = T, bound: float = 2.0) -> BanditProblem:
    each = bound if batch is None else np.full(batch, bound)
    return BanditProblem(KERNEL, DOMAIN, horizon, NOISE, each, each)


def reward(arm: int, t: int) -> float:
    return math.sin(5 * DOMAIN[arm, 0] + t / 15) + 0.1 * math.cos(7.1 * t)


def bounds(arms: list[int], rewards: list[float], discount: float) -> Floats:
    """Return mean + WIDTH * std from the t x t matrix of the plays, weighted by age."""
    weights = np.sqrt(discount ** np.arange(len(arms) - 1.0, -1.0, -1.0))
    k = weights[:, None] * KERNEL(DOMAIN[arms], DOMAIN)
    M = weights[:, None] * KERNEL(DOMAIN[arms], DOMAIN[arms]) * weights
    solved = np.linalg.solve(M + NOISE**2 * np.eye(len(arms)), k)
    variance = np.maximum(1 - np.sum(k * solved, axis=0), 0.0)
    found: Floats = solved.T @ (weights * np.array(rewards)) + WIDTH * np.sqrt(variance)
    return found


class NaiveExp3:
    """Exp3 as printed, its weights as they are."""

    def __init__(self, size: int, gamma: float) -> None:
        self.weights, self.gamma = np.ones(size), gamma

    def probabilities(self) -> Floats:
        share = self.weights / self.weights.sum()
        found: Floats = (1 - self.gamma) * share + self.gamma / len(share)
        return found

    def draw(self, uniform: float) -> int:
        return int(np.searchsorted(self.probabilities().cumsum(), uniform, side="right"))

    def learn(self, chosen: int, paid: float) -> None:
        rate = self.gamma / len(self.weights) / self.probabilities()[chosen]
        self.weights[chosen] *= math.exp(rate * paid)


@pytest.mark.parametrize(("given", "top"), [((-1.0, 1.0), 1.0), (None, 2.0)])
def test_it_is_wgp_ucb_in_blocks_under_exp3(given: Any, top: float) -> None:
    words: dict[str, Any] = {"block_length": L, "discounts": DISCOUNTS, "gamma": 0.3}
    agent = BOBWGPUCB(problem(), **words, reward_range=given, confidence_width=WIDTH)
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
                assert arm == int(uniform[1] * 30)  # nothing is known: all arms are alike
            else:
                bound = bounds(arms, rewards, DISCOUNTS[drawn[-1]])
                assert bound[arm] == pytest.approx(bound.max(), abs=1e-6)
            arms.append(arm)
            rewards.append(reward(arm, block * L + step))
            agent.observe(arm, rewards[-1])
        # Cheung et al.'s Algorithm 2: theirs has a mean reward of at most 1 in the place of `top`
        width = 2 * L * top + 4 * NOISE * math.sqrt(L * math.log(T / math.sqrt(L)))
        master.learn(drawn[-1], 1 / 2 + sum(rewards) / width)
    assert len(set(drawn)) == 3
    agent.act()
    found = agent.restart_rule.weights.probabilities()[0]  # type: ignore[union-attr]
    np.testing.assert_allclose(found, master.probabilities(), rtol=1e-12)


def test_defaults_by_hand() -> None:
    # gamma_T = (ln 500)^2 = 38.62, and (38.62 * 500)^{1/2} = 138.96; ln 139 = 4.93
    assert default_block(500, 1) == 139
    memories = 1 / (1 - default_discounts(139))
    np.testing.assert_allclose(memories, [2.0, 2.683, 7.197, 19.306, 51.80, 139.0], rtol=1e-3)
    assert default_block(21, 3) == 11  # (ln 21)^4 * 21 = 1804 is above 21^2: half of T
    assert default_block(400, 2) == 200  # ((ln 400)^3 * 400)^{1/2} = 293.3
    assert default_block(10_000, 2) == 2796
    for horizon in (1, 2, 7, 20, 75, 400):  # in d = 1 there is no cap, and none is missed
        uncut = math.ceil(max(math.log(horizon), 1.0) * math.sqrt(horizon))
        assert default_block(horizon, 1) == min(uncut, horizon)
    np.testing.assert_allclose(default_discounts(1), [0.5])
    # 28 blocks of 3641 steps, 10 discounts: (10 ln 10 / (1.71828 * 28))^{1/2} = 0.6918
    assert default_block(100_000, 1) == 3641
    assert len(default_discounts(3641)) == 10
    np.testing.assert_allclose(block_rate(10, 100_000, 3641, 2), [0.6918] * 2, rtol=1e-3)
    agent = BOBWGPUCB(problem(horizon=500))
    assert agent.block_length == 139
    np.testing.assert_array_equal(agent.discounts, default_discounts(139))


def test_exp3_finds_the_discount_that_pays() -> None:
    # Of 40 learners over 20 seeds in 0.90 to 0.92 of the late blocks; in 1/3 by chance.
    agent = BOBWGPUCB(
        problem(40, horizon=600), block_length=3, discounts=DISCOUNTS, reward_range=(-1.0, 1.0)
    )
    agent.reset(0)
    late = []
    for t in range(600):
        agent.observe(agent.act(), np.where(agent.candidate == 1, 1.0, -1.0))
        if t >= 450:
            late.append(np.mean(agent.candidate == 1))
    assert np.mean(late) > 0.8


def test_each_block_has_the_width_of_wgp_ucb_with_its_discount() -> None:
    for gain in ("realised", "bound"):
        agent = BOBWGPUCB(problem(), block_length=L, discounts=DISCOUNTS, gain=gain)
        agent.reset(1)
        met = set()
        for _block in range(5):
            arm = agent.act()
            met.add(int(agent.candidate[0]))
            alone = WGPUCB(problem(), discount=DISCOUNTS[agent.candidate[0]], gain=gain)
            alone.reset(0)
            for t in range(L):
                assert agent.beta() == pytest.approx(alone.beta(), rel=1e-12)
                np.testing.assert_allclose(agent.posterior(), alone.posterior(), atol=1e-9)
                agent.observe(arm, reward(arm, t))
                alone.observe(arm, reward(arm, t))
                if t < L - 1:
                    arm = agent.act()
        assert len(met) > 1


def test_what_it_is_told_before_it_chooses_is_kept_and_counts_for_no_discount() -> None:
    agent = BOBWGPUCB(problem(), block_length=L, discounts=[0.7], confidence_width=WIDTH)
    agent.reset(0)
    agent.observe(3, 5.0)
    for block in range(2):
        for t in range(L):
            agent.act()
            if t == 0:
                assert agent.posterior().mean[3] == pytest.approx(5.0 / 1.01)
            agent.observe(20, 1.0)
        before = agent.posterior().mean[20]
        agent.observe(3, 5.0)  # the block is over: the next one's first play
        assert before > 0.9
        assert abs(agent.posterior().mean[20]) < 0.1, block


def test_each_episode_begins_alike() -> None:
    agent = BOBWGPUCB(problem(bound=0.1), block_length=4, discounts=DISCOUNTS, gamma=0.5)
    runs = []
    for _ in range(2):
        agent.reset(3)
        found = []
        for t in range(82):
            found.append((agent.act(), int(agent.candidate[0])))
            agent.observe(found[-1][0], 2.0 * (found[-1][1] == 2) - t % 2)
        runs.append(found)
    assert runs[0] == runs[1]


def test_a_learner_that_restarts_alone_begins_a_block_of_its_own() -> None:
    words: dict[str, Any] = {"block_length": 7, "discounts": DISCOUNTS}
    middle = float(DOMAIN[len(DOMAIN) // 2, 0])
    shown = np.array([[0.1, 1.0, middle, 0.3], [0.1, 1.0, middle, -0.3]])

    def run(agent: BOBWGPUCB, rows: Floats, starts: set[int]) -> list[tuple[Any, Any]]:
        agent.reset(4)
        found = []
        for t in range(30):
            begins = [t == 0] + [t == 0 or t in starts] * (len(rows) - 1)
            action = agent.predict(rows, episode_start=begins)[0]
            found.append((action[0], agent.candidate[0]))
        return found

    both = run(BOBWGPUCB(problem(2), **words), shown, {5, 20})
    alone = run(BOBWGPUCB(problem(1), **words), shown[:1], set())
    assert both == alone
    assert len({candidate for _, candidate in both}) > 1


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"block_length": 0}, r"'block_length' parameter of BOBWGPUCB must be an int in \[1, 84\]"),
        ({"block_length": 85}, r"an int in \[1, 84\]. Got 85"),
        (
            {"discounts": []},
            r"parameter of BOBWGPUCB must be a list of at least one number in \[1e-30, 1\]",
        ),
        ({"discounts": [0.0, 0.5]}, r"number in \[1e-30, 1\]"),
        ({"discounts": [0.5, 1.1]}, r"number in \[1e-30, 1\]"),
        ({"discounts": [math.nan]}, r"number in \[1e-30, 1\]"),
        ({"discounts": 0.5}, r"number in \[1e-30, 1\]"),
        ({"gamma": 0.0}, r"'gamma' parameter of BOBWGPUCB must be a float in \[1e-30, 1\]"),
        ({"reward_range": (1.0, 1.0)}, "'reward_range' parameter of BOBWGPUCB must be None or two"),
        ({"delta": 1.0}, r"'delta' parameter of BOBWGPUCB must be a float in \[1e-30, 1\)"),
    ],
    ids=str,
)
def test_bad_parameters(words: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        BOBWGPUCB(problem(), **words)
