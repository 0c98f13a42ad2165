"""The distribution of the drawn functions: sum of alpha_i k(., x_i), as [Deng22] Section 7.

Seeds are fixed. A right sampler passes a check in all but one of 10,000 seeds or so: on 200 other
seeds, one of 2,200 checks of `draw` failed.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import as_arms
from numpy.typing import NDArray
from scipy import stats

from wgp_gym.envs import BanditEnv
from wgp_gym.envs.optimum import grid
from wgp_gym.kernels import SquaredExponential
from wgp_gym.rkhs import DomainKernel, Functions

Make = Callable[..., BanditEnv]
Array = NDArray[np.float64]

SMALLEST_P = 1e-4
DOMAIN = np.linspace(0, 1, 100)
K = np.exp(-((DOMAIN[:, None] - DOMAIN) ** 2) / (2 * 0.2**2))


def draw(count: int, terms: int, seed: int = 0) -> Functions:
    kernel = DomainKernel(SquaredExponential(0.2), grid(100, 1))
    return Functions.draw(np.random.default_rng(seed), kernel, count, terms)


def test_one_term_is_uniform_in_place_and_height() -> None:
    f = draw(10_000, 1)
    row, column = np.nonzero(f.coefficients)
    assert len(row) == len(set(row)) == 10_000
    heights, centres = f.coefficients[row, column], f.centres[column]
    assert stats.kstest(heights, stats.uniform(-1, 2).cdf).pvalue > SMALLEST_P
    counts = np.bincount(centres, minlength=100)
    assert len(counts) == 100
    assert stats.chisquare(counts).pvalue > SMALLEST_P
    assert abs(stats.spearmanr(heights, centres).statistic) < 0.04  # independent


def test_centres_are_drawn_with_replacement() -> None:
    """Of 100 points, 100 draws hit 63.4 on average (variance 9.7); without replacement, all."""
    distinct = [np.count_nonzero(row) for row in draw(2_000, 100).coefficients]
    assert abs(np.mean(distinct) - 100 * (1 - 0.99**100)) < 4 * np.sqrt(9.7 / 2_000)


def test_terms_on_one_centre_add_up() -> None:
    """A centre hit m times has variance m / 3, so the sum of all coefficients has 100 / 3."""
    total = draw(5_000, 100).coefficients.sum(axis=1)
    assert abs(total.var() / (100 / 3) - 1) < 4 * np.sqrt(2 / 5_000)
    assert stats.kstest(total / np.sqrt(100 / 3), "norm").pvalue > SMALLEST_P


@pytest.mark.parametrize("x", [0, 37, 99])
def test_values_of_a_hundred_terms(x: int) -> None:
    """Var f(x) = 100 E[alpha^2] E[k(x, X)^2] = 100 / 3 mean_j k(x, x_j)^2; nearly normal."""
    values = draw(5_000, 100).values[:, x]
    scale = np.sqrt(100 / 3 * np.mean(K[x] ** 2))
    assert abs(values.mean()) < 4 * scale / np.sqrt(5_000)
    assert abs(values.var() / scale**2 - 1) < 4 * np.sqrt(2 / 5_000)
    assert stats.kstest(values / scale, "norm").pvalue > SMALLEST_P


def test_squared_norm_on_average() -> None:
    """E ||f||^2 = 100 E[alpha^2] k(x, x): the cross terms have mean 0."""
    squares = draw(5_000, 100).squared_norms()
    assert abs(squares.mean() - 100 / 3) < 4 * squares.std() / np.sqrt(5_000)


@pytest.mark.slow
def test_the_functions_of_an_episode(make_env: Make) -> None:
    """The three functions of an episode, and those of two seeds, are independent draws."""
    env, found = make_env("WGPBandit-Abrupt-v0", horizon=3, change_points=[2, 3]), []
    for seed in range(1_000):
        env.reset(seed=seed)
        rows = []
        for _ in range(3):
            rows.append(env.expected_rewards()[[10, 60]])
            env.step(0)
        found.append(np.concatenate(rows))
    f = np.array(found)  # f_1(a), f_1(b), f_2(a), ..., f_3(b)
    within = 100 / 3 * (K[[10, 60]] @ K[[10, 60]].T) / 100
    expected = np.kron(np.eye(3), within)
    scale = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
    np.testing.assert_array_less(np.abs(np.cov(f.T) - expected) / scale, 5 * np.sqrt(2 / 1_000))
    following = np.array([np.corrcoef(column[1:], column[:-1])[0, 1] for column in f.T])
    np.testing.assert_array_less(np.abs(following), 4.5 / np.sqrt(1_000))


def test_noise_is_independent_of_the_functions(make_env: Make) -> None:
    env, pairs = make_env("WGPBandit-Stationary-v0", horizon=1), []
    for seed in range(1_000):
        env.reset(seed=seed)
        _, reward, *_, info = env.step(40)
        pairs.append((info["expected_reward"], reward - info["expected_reward"]))
    truth, noise = np.array(pairs).T
    assert abs(np.corrcoef(truth, noise)[0, 1]) < 4 / np.sqrt(1_000)
    assert stats.kstest(noise / 0.1, "norm").pvalue > SMALLEST_P


def first_noise(env: BanditEnv) -> float:
    env.reset(seed=7)
    _, reward, *_, info = env.step(0)
    return float(reward - info["expected_reward"])


def test_noise_has_a_stream_of_its_own(
    make_env: Make, environment_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not move with what else is drawn, nor repeat it."""
    if environment_id == "WGPBandit-News-v0":
        pytest.skip("Its rewards are 0 or 1.")
    gaussian = {"reward": "gaussian"} if "Arms" in environment_id else as_arms(environment_id)
    env = make_env(environment_id, noise_std=0.1, **gaussian)
    noise = first_noise(make_env("WGPBandit-Abrupt-v0", num_terms=3))
    assert first_noise(env) == pytest.approx(noise, abs=1e-6)
    draw, given = env.task.draw_batch, []

    def spy(generators: list[np.random.Generator]) -> Any:
        given.extend(copy.deepcopy(generators))
        return draw(generators)

    monkeypatch.setattr(env.task, "draw_batch", spy)
    assert first_noise(env) == pytest.approx(noise, abs=1e-6)
    assert abs(0.1 * given[0].standard_normal() - noise) > 1e-3
