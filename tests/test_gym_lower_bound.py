"""The needles of lower bounds: their shape, norms and heights, and where they stand."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import wgp_agents
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_gym.envs import BanditEnv, LowerBoundTask
from wgp_gym.envs.lower_bound import least_regret
from wgp_gym.kernels import Matern, ModifiedMatern

Make = Callable[..., BanditEnv]
Floats = NDArray[np.float64]

NAME = "WGPBandit-LowerBound-v0"


def functions(env: BanditEnv, seed: int = 0) -> Floats:
    """Return the functions of an episode, one for each block."""
    env.reset(seed=seed)
    (episode,) = env.dynamics.episodes
    return episode.values


def distance(K: Floats, f: Floats) -> float:
    return math.sqrt(f @ np.linalg.solve(K, f))


@pytest.mark.parametrize(
    ("kernel", "parameters"),
    [
        (Matern(0.2, 2.5), {}),
        (Matern(0.1, 1.5), {"nu": 1.5, "lengthscale": 0.1}),
        (ModifiedMatern(0.2, 0.5), {"nu": 0.5, "kernel": "modified-matern", "blocks": 9}),
        (Matern(0.2, 2.5), {"dim": 2, "points_per_dim": 12, "num_needles": 16}),
        (Matern(0.2, 2.5), {"epsilon": 0.3, "num_needles": 4, "blocks": 3}),
    ],
    ids=str,
)
def test_norms_and_variation(make_env: Make, kernel: Any, parameters: dict[str, Any]) -> None:
    """Against the least norm of a function with these values, f^T K^{-1} f."""
    env = make_env(NAME, **parameters)
    f = functions(env)
    K = kernel(env.problem.domain, env.problem.domain)
    largest = max(distance(K, row) for row in f)
    spent = sum(distance(K, later - row) for row, later in itertools.pairwise(f))
    assert env.problem.norm_bound == pytest.approx(largest, rel=1e-5)
    assert env.problem.variation_budget == pytest.approx(spent, rel=1e-5)


def test_the_shape_of_a_needle(make_env: Make) -> None:
    """2 epsilon exp(1 - 1 / (1 - r^2)) up to half the way to the next one, written out."""
    f = functions(make_env(NAME, epsilon=0.5, points_per_dim=101, num_needles=5))[0]
    places = [10, 30, 50, 70, 90]
    top = int(f.argmax())
    assert top in places
    assert f[top] == 1.0
    for away in range(-10, 11):
        r = away / 10
        expected = math.exp(1 - 1 / (1 - r * r)) if abs(r) < 1 else 0.0
        assert f[top + away] == pytest.approx(expected, abs=1e-15)
    assert np.count_nonzero(f) == 19


def test_no_point_sees_two_needles(make_env: Make) -> None:
    for parameters in ({}, {"dim": 2, "points_per_dim": 11, "num_needles": 25}):
        env = make_env(NAME, blocks=400, **parameters)
        seen = np.unique(functions(env), axis=0)
        assert len(seen) == parameters.get("num_needles", 10)
        assert ((seen > 0).sum(axis=0) <= 1).all()


def test_blocks_are_equally_long_and_each_has_its_own_place(make_env: Make) -> None:
    env = make_env(NAME, blocks=7, horizon=100)
    env.reset(seed=1)
    changes, best = [], [env.optimal_action()]
    for step in range(1, 100):
        env.step(0)
        if env.function_changes():
            changes.append(step)
            best.append(env.optimal_action())
    assert changes == [math.floor(100 * i / 7) for i in range(1, 7)]
    assert all(one != other for one, other in itertools.pairwise(best))


def test_places_are_uniform_among_the_others() -> None:
    """Pairs of neighbours in 90 classes, 4,000 blocks: chi-squared, p = 0.001 at 137."""
    task = LowerBoundTask(blocks=4000, horizon=4000, points_per_dim=30)
    best = task.draw(np.random.default_rng(5)).optimal_action
    places = np.unique(best, return_inverse=True)[1]
    pairs = np.bincount(places[:-1] * 10 + places[1:], minlength=100).reshape(10, 10)
    assert (pairs.diagonal() == 0).all()
    found = pairs[~np.eye(10, dtype=bool)]
    assert stats.chisquare(found).pvalue > 0.001


def test_the_height_is_where_a_block_is_too_short(make_env: Make) -> None:
    """With tau / M plays the divergence of a needle from none is 1 / 2, by its integral."""
    env = make_env(NAME, horizon=800, blocks=4, num_needles=8, noise_std=0.3)
    height, scale = functions(env).max(), 0.3
    y = np.linspace(-4, 4, 20001)
    p, q = stats.norm(height, scale), stats.norm(0, scale)
    divergence = np.trapezoid(p.pdf(y) * (p.logpdf(y) - q.logpdf(y)), y)
    assert divergence * (800 / 4 / 8) == pytest.approx(0.5, rel=1e-6)


def test_a_budget_buys_blocks(make_env: Make) -> None:
    """With the derived height m blocks spend it, m - 1 less, but for a few percent."""
    for budget in (5.0, 10.0, 16.0, 20.0, 30.0, 100.0, 1000.0):
        env = make_env(NAME, variation_budget=budget)
        f = functions(env)
        assert env.problem.variation_budget == pytest.approx(budget, rel=1e-9)
        m = len(f)
        fewer, now = (0.1 * math.sqrt(10 * blocks / 500) for blocks in (m - 1, m))
        assert 0.95 * fewer * (m - 2) < f.max() * (m - 1) < 1.05 * now * (m - 1)
    more = make_env(NAME, variation_budget=4000.0)
    assert len(functions(more)) > len(f)


@pytest.mark.parametrize("budget", [0.5, 2, 5, 7, 10, 16, 20, 25, 30, 60, 100, 300, 1000])
def test_what_a_budget_buys_is_hard(make_env: Make, budget: float) -> None:
    """Without a bound it has 1 - 1 / 9 - (10 / 9)^{1/2} / 2 = 0.36 of h T; lower needles more."""
    f = functions(make_env(NAME, variation_budget=budget))
    height, steps = float(f.max()), 500 / len(f)
    assert len(f) * least_regret(height, steps, 10, 0.1) > 0.3 * height * 500


def test_a_budget_of_zero(make_env: Make) -> None:
    plain = functions(make_env(NAME, blocks=1))
    np.testing.assert_array_equal(functions(make_env(NAME, variation_budget=0)), plain)
    for norm in (0.0, 0.5, 9.0):
        env = make_env(NAME, variation_budget=0, norm_bound=norm)
        f = functions(env)
        assert (env.problem.norm_bound, env.problem.variation_budget) == (norm, 0.0)
        np.testing.assert_allclose(f / max(f.max(), 1e-300), (norm > 0) * plain / plain.max())
    with pytest.raises(ValueError, match=r"'variation_budget' .* above 0 for functions that are"):
        functions(make_env(NAME, blocks=5, variation_budget=0))


def test_a_budget_of_many_steps() -> None:
    T = 3_000_000
    drawn = LowerBoundTask(horizon=T, variation_budget=10).draw(np.random.default_rng(0))
    height, steps = float(drawn.values.max()), T / len(drawn.values)
    assert len(drawn.values) * least_regret(height, steps, 10, 0.1) > 0.3 * height * T


def test_bounds_rescale_needles_as_they_are(make_env: Make) -> None:
    plain = functions(make_env(NAME, blocks=5))
    for name, value in (("norm_bound", 2.0), ("variation_budget", 3.0)):
        env = make_env(NAME, blocks=5, **{name: value})
        f = functions(env)
        factor = f.max() / plain.max()
        np.testing.assert_allclose(f, factor * plain, rtol=1e-12)
        assert getattr(env.problem, name) == pytest.approx(value, rel=1e-9)
    both = make_env(NAME, blocks=5, norm_bound=2.0, variation_budget=3.0)
    both.reset(seed=0)
    assert both.problem.norm_bound == 2.0
    assert both.problem.variation_budget == pytest.approx(3.0, rel=1e-9)
    with pytest.raises(ValueError, match=r"'variation_budget' .* within norm_bound = 0.1"):
        functions(make_env(NAME, blocks=5, norm_bound=0.1, variation_budget=3.0))


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("blocks", 0, r"an int in \[1, 500\]"),
        ("blocks", 501, r"an int in \[1, 500\]"),
        ("epsilon", 0.0, "a float in"),
        ("num_needles", 1, "an int of at least 2"),
        ("num_needles", 51, r"m\^1, m a whole number of at most points_per_dim / 2"),
        ("kernel", "se", "one of 'matern', 'modified-matern'"),
        ("lengthscale", 5.0, "shorter, or the kernel rougher"),
        ("points_per_dim", 2001, "small enough for points_per_dim.dim to be at most 2,000"),
    ],
)
def test_refused(make_env: Make, name: str, value: Any, rule: str) -> None:
    with pytest.raises(
        ValueError, match=f"The '{name}' parameter of LowerBoundTask must be {rule}"
    ):
        make_env(NAME, **{name: value})


def test_what_has_no_place_on_a_grid(make_env: Make) -> None:
    with pytest.raises(ValueError, match=r"'num_needles' .* must be m\^2"):
        make_env(NAME, dim=2, points_per_dim=10)


def test_without_noise(make_env: Make) -> None:
    assert functions(make_env(NAME, noise_std=0, epsilon=0.2)).max() == 0.4
    np.testing.assert_array_equal(functions(make_env(NAME, noise_std=0)), functions(make_env(NAME)))


def test_the_least_regret_of_two_hypotheses() -> None:
    """One step and needles of height R: a learner cannot know more than chance, 1 / (M - 1).

    Pinsker's inequality costs (1 / 2) (1 / (M - 1))^{1/2} beside it; and with 20 steps, by an exact
    sum, it is below what the best test of two equally likely places has to lose.
    """
    least = least_regret(0.1, 1, 5, 0.1)
    assert least == pytest.approx(0.1 * (1 - 1 / 4 - 1 / 2 / math.sqrt(4)))
    assert least < 0.1 * (1 - 1 / 4)
    # Three places, of which two are possible. Whoever is told the sums of both arms' noise at once
    # errs with probability Phi(-h (2 tau)^{1/2} / (2 R)), the more seldom the more it has seen.
    h, R, steps = 0.05, 0.1, 20
    told = sum(h * stats.norm.cdf(-h * math.sqrt(2 * t) / (2 * R)) for t in range(steps))
    assert least_regret(h, steps, 3, R) < told
    assert least_regret(1.0, 100, 10, 0.1) == 0.0


def final_regret(name: str, **parameters: Any) -> float:
    """Return the mean regret of an agent in five episodes."""
    env = make_vector(NAME, 5, **parameters)
    played = rollout(wgp_agents.make(name, env), env, seed=0)
    return float(played["cumulative_regret"][:, -1].mean())


@pytest.mark.slow
def test_it_is_hard() -> None:
    """Random play has 15.0, others as much (40 runs: WGP-UCB 15.0, the adaptive agent 14.5)."""
    chance = final_regret("random")
    least = 5 * least_regret(0.1 * math.sqrt(10 / 100), 100, 10, 0.1)
    assert least == pytest.approx(0.382 * chance, rel=0.01)
    for name in ("wgp-ucb", "thompson"):
        assert least < 0.9 * chance < final_regret(name)


@pytest.mark.slow
def test_needles_thirty_times_as_high_are_found() -> None:
    """Random play has 473, the adaptive agent 328."""
    easy = {"epsilon": 0.5}
    assert final_regret("adaptive-wgp-ucb", **easy) < 0.8 * final_regret("random", **easy)
