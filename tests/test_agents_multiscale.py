"""The schedule, the rates and the parameters of MASTER."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest

import wgp_agents
from wgp_agents.algorithms.adaptive.master import MASTER
from wgp_agents.algorithms.adaptive.multiscale import Blocks, interleaved_level, regret_rate
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array


def test_how_often_instances_begin() -> None:
    # In a block of order 5, an instance of order m begins with probability 2^{-(5 - m) / 2} at
    # each of 2^{5 - m} times: means of 20,000 blocks, within 5 standard errors.
    blocks, random = Blocks(20_000, 63), np.random.default_rng(0)
    everyone, begun = np.ones(20_000, bool), np.zeros(6)
    for _ in range(31):  # the blocks before it
        blocks.advance(everyone)
    assert (blocks.order == 5).all()
    for step in range(32):
        new = blocks.schedule(everyone, random.random((20_000, 6)))
        assert not new[:, [m for m in range(6) if step % 2**m]].any()
        assert blocks.alive[:, 5].all()
        begun += new.sum(axis=0)
        blocks.advance(everyone)
    places = 20_000 * 2.0 ** np.arange(5, -1, -1)
    chances = 2.0 ** (-np.arange(5, -1, -1) / 2)
    errors = np.sqrt(places * chances * (1 - chances))
    assert (np.abs(begun - places * chances) <= 5 * errors).all()


def test_igp_ucb_loses_no_more_than_rho_says() -> None:
    # Sum of f~ - R of IGP-UCB on functions that stay, at all t, with the gain of its own plays.
    points, noise_scale, bound, delta = np.linspace(0, 1, 30)[:, None], 0.3, 1.5, 0.1
    problem = BanditProblem(SquaredExponential(0.2), points, 300, noise_scale, bound, 0.0)
    agent: Any = wgp_agents.make("igp-ucb", problem, delta=delta)
    closest = []
    for seed in range(5):
        function = 1.5 * np.exp(-(((points[:, 0] - 0.4) / 0.2) ** 2))
        random = np.random.default_rng(seed).standard_normal(300)
        agent.reset(seed)
        shortfall, ratio = 0.0, 0.0
        for t in range(300):
            hope, arm = agent.confidence_interval().upper.max(), agent.act()
            reward = float(function[arm] + noise_scale * random[t])
            agent.observe(arm, reward)
            shortfall += hope - reward
            known = (bound, noise_scale, noise_scale**2, delta, agent.information_gain())
            rate = regret_rate(*(np.array([number]) for number in known))[0]
            ratio = max(ratio, shortfall / (rate * math.sqrt(t + 1)))
        closest.append(ratio)
    assert 0.3 < min(closest) <= max(closest) < 1, closest  # no bound is that far off


def test_the_horizon_below_which_rewards_in_0_1_fail_no_test() -> None:
    # Gerogiannis, Huang and Veeravalli, Theorem 4: with rho(t) >= t^{-1/2}, 9 rho-hat(T) is above
    # 1, and so is that of every t, unless T is at least 1.24 billion (delta at its largest, 1).
    def least(horizon: int) -> float:
        level = interleaved_level(np.ones(1), np.ones(1), horizon)[0]
        return float(9 * level / math.sqrt(horizon))

    assert least(1_240_000_000) > 1 > least(1_250_000_000)


def greedy(gram: Array, plays: int, ridge: float) -> float:
    """Return the information gain of plays each of which is where the variance is largest."""
    chosen: list[int] = []
    for _ in range(plays):
        cross = gram[:, chosen]
        noisy = cross[chosen] + ridge * np.eye(len(chosen))
        variance = 1 - np.einsum("ij,ji->i", cross, np.linalg.solve(noisy, cross.T))
        chosen.append(int(variance.argmax()))
    gain: float = np.linalg.slogdet(np.eye(plays) + gram[np.ix_(chosen, chosen)] / ridge)[1] / 2
    return gain


@pytest.mark.parametrize("gain", ["order", "computed"])
def test_the_gain_in_rho(gain: str) -> None:
    many, scales = np.ones(41), np.geomspace(1e-5, 1e-3, 41)
    kernel, points = SquaredExponential(0.3), np.linspace(0, 1, 12)[:, None]
    problem = BanditProblem(kernel, points, 150, 0.3, 1.5 * many, many)

    def failures(given: Any) -> list[int]:
        agent = MASTER(problem, information_gain=given, scale=scales)
        agent.reset(0)
        for t in range(150):
            agent.observe(np.full(41, t % 12), np.zeros(41))
        return [int(count) for count in agent.fired.second]

    number = math.log(150) ** 2  # (log T)^(d + 1)
    if gain == "computed":
        number = greedy(kernel(points, points), 150, 0.3**2)
    assert failures(gain) == failures(number) != failures(1.1 * number)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scale": -1.0}, r"'scale' parameter of MASTER must be a float in \[0, 1e\+30\]"),
        ({"delta": 1.0}, r"'delta' parameter of MASTER must be a float in \[1e-30, 1\)"),
        ({"regularization": 0.0}, r"'regularization' parameter of MASTER .* \[1e-09, 1e\+60\]"),
        ({"norm_bound": -1.0}, r"'norm_bound' parameter of MASTER .* \[0, 1e\+30\]"),
        ({"noise_scale": -0.1}, r"'noise_scale' parameter of MASTER .* \[0, 1e\+30\]"),
        ({"information_gain": "known"}, "must be 'order', 'computed' or a number in"),
        ({"information_gain": 0.0}, r"'information_gain' parameter of MASTER .* \[1e-30, 1e\+30\]"),
        ({"features": "none"}, "'features' parameter of MASTER must be one of"),
    ],
    ids=str,
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    problem = BanditProblem(SquaredExponential(0.3), np.zeros((1, 1)), 50, 0.1, 1.0, 1.0)
    with pytest.raises(ValueError, match=message):
        MASTER(problem, **parameters)


def test_what_it_cannot_play() -> None:
    with pytest.raises(ValueError, match="'env' parameter of MASTER must be a task whose arms"):
        MASTER(gymnasium.make("WGPBandit-LinearContextual-v0"))
    early = MASTER(gymnasium.make("WGPBandit-Abrupt-v0"))
    early.reset(0)
    with pytest.raises(RuntimeError, match="The norm bound is drawn with the episode"):
        early.act()
