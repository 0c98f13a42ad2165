"""Functions that take turns, and changes that nobody's plays show."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from wgp_gym.envs import BanditEnv
from wgp_gym.rkhs import expansions

Make = Callable[..., BanditEnv]
Parameters = dict[str, Any]

ABRUPT, RECURRING = "WGPBandit-Abrupt-v0", "WGPBandit-Recurring-v0"
HIDDEN, STATIONARY = "WGPBandit-Hidden-v0", "WGPBandit-Stationary-v0"
ROUGH: Parameters = {"kernel": "matern", "nu": 0.5}  # whose matrix can be inverted
TASKS: list[Parameters] = [
    {},
    ROUGH,
    {"dim": 2, "points_per_dim": 20, "num_terms": 30},  # fewer centres than points
    {"lengthscale": 0.5, "points_per_dim": 500, "num_terms": 5},
    {"continuous": True, "num_terms": 10},
    {"kernel": "modified-matern", "dim": 2, "points_per_dim": 12},
]


def values_of(env: BanditEnv, seed: int) -> NDArray[Any]:
    """Return the functions of an episode, `(K, n)`."""
    env.reset(seed=seed)
    values: NDArray[Any] = env.dynamics.episodes[0].values
    return values


def told(env: BanditEnv, steps: int, seed: int, action: Any = None) -> list[dict[str, Any]]:
    """Play one action, or some, and return the infos."""
    env.reset(seed=seed)
    env.action_space.seed(0)
    plays = (env.action_space.sample() if action is None else action for _ in range(steps))
    return [env.step(play)[4] for play in plays]


@pytest.mark.parametrize("name", [RECURRING, HIDDEN])
@pytest.mark.parametrize("parameters", TASKS, ids=str)
def test_functions_are_their_expansions(make_env: Make, name: str, parameters: Parameters) -> None:
    env = make_env(name, **parameters)
    for seed in range(3):
        values = values_of(env, seed)
        (episode,) = env.dynamics.episodes
        kernel, domain = env.problem.kernel, env.problem.domain
        found = expansions(kernel, domain, episode.centres, episode.coefficients)
        np.testing.assert_allclose(found.values, values, atol=1e-9 * np.abs(values).max())
        moves = np.diff(episode.coefficients, axis=0)
        K = kernel(domain[episode.centres], domain[episode.centres])
        spent = np.sqrt(np.einsum("ki,ij,kj->k", moves, K, moves)).sum()
        assert episode.variation_budget == pytest.approx(spent, rel=1e-6)


@pytest.mark.parametrize("name", [RECURRING, HIDDEN])
def test_norms_and_variation_are_those_of_dense_algebra(make_env: Make, name: str) -> None:
    small: Parameters = {"dim": 2, "points_per_dim": 6, "horizon": 30, "num_terms": 7}
    env = make_env(name, **ROUGH, **small, change_points=[5, 9, 20])
    for seed in range(3):
        infos = told(env, 30, seed)
        problem, f = env.problem, values_of(env, seed)
        solved = np.linalg.inv(problem.kernel(problem.domain, problem.domain))
        steps = np.sqrt(np.einsum("ki,ij,kj->k", np.diff(f, axis=0), solved, np.diff(f, axis=0)))
        spent = np.repeat(np.append(0, steps.cumsum()), [4, 4, 11, 11])
        np.testing.assert_allclose([info["variation"] for info in infos], spent, rtol=1e-8)
        norms = np.sqrt(np.einsum("ki,ij,kj->k", f, solved, f))
        assert problem.norm_bound == pytest.approx(norms.max(), rel=1e-8)
        assert problem.variation_budget == pytest.approx(steps.sum(), rel=1e-8)
        best = np.repeat(f.max(axis=1), [4, 4, 11, 11])
        np.testing.assert_array_equal([info["optimal_reward"] for info in infos], best)
        changes = [t for t, info in enumerate(infos, start=1) if info["changed"]]
        assert changes == [5, 9, 20]


@pytest.mark.parametrize("worlds", [None, 2, 3, 7])
def test_worlds_take_turns(make_env: Make, worlds: int | None) -> None:
    env = make_env(RECURRING, change_points=list(range(10, 60, 10)), num_worlds=worlds)
    count = worlds or 2
    f = values_of(env, 3)
    assert f.shape == (6, 100)
    for k in range(6):
        np.testing.assert_array_equal(f[k], f[k % count])
    assert len(np.unique(f, axis=0)) == min(count, 6)
    # They are the functions of the abrupt task with as many.
    fresh = make_env(ABRUPT, change_points=list(range(2, count + 1)))
    np.testing.assert_allclose(values_of(fresh, 3)[:6], f[:count], atol=1e-12)


def test_the_usual_changes(make_env: Make) -> None:
    for name, expected in ((RECURRING, [20, 40, 60, 80]), (HIDDEN, [20, 40])):
        infos = told(make_env(name, horizon=100), 100, seed=1)
        assert [t for t, info in enumerate(infos, start=1) if info["changed"]] == expected


def test_a_learner_that_stays_sees_no_hidden_change(make_env: Make) -> None:
    for parameters in TASKS:
        env = make_env(HIDDEN, horizon=20, noise_std=0.0, change_points=[10], **parameters)
        _, info = env.reset(seed=2)
        best = info["optimal_action"]
        if env.task.continuous:  # the best point of the grid, a row of it
            best = env.problem.domain[env.expected_rewards().argmax()]
        infos = told(env, 20, 2, best)
        paid = [info["expected_reward"] for info in infos]
        np.testing.assert_allclose(paid, paid[0], atol=1e-6 * abs(paid[0]))
        f = env.dynamics.episodes[0].values
        gap = f[0].max() - f[0].min()
        assert infos[9]["regret"] - infos[8]["regret"] > 0.45 * gap
        assert infos[8]["regret"] < 0.05 * gap


@pytest.mark.parametrize("rise", [None, 0.1, 2.0])
@pytest.mark.parametrize("parameters", TASKS, ids=str)
def test_what_changes_and_what_stays(
    make_env: Make, parameters: Parameters, rise: float | None
) -> None:
    env = make_env(HIDDEN, rise=rise, change_points=[10, 20, 30], **parameters)
    domain = env.problem.domain
    for seed in range(4):
        f = values_of(env, seed)
        asked = (rise or 0.5) * (f[0].max() - f[0].min())
        for before, after in itertools.pairwise(f):
            old, new = int(before.argmax()), int(after.argmax())
            around = np.linalg.norm(domain - domain[old], axis=1)
            assert after.max() >= before.max() + asked * (1 - 1e-9)
            assert after[old] == pytest.approx(before[old], abs=1e-9 * np.abs(f).max())
            moved = np.abs(after - before)
            assert moved[around <= 0.1].max() <= 3e-3 * moved.max()
            assert around[new] > 0.1
    first = make_env(STATIONARY, **parameters)
    np.testing.assert_array_equal(values_of(first, 3)[0], f[0])


def test_a_bump_is_the_smallest_function_that_stays_and_rises(make_env: Make) -> None:
    """Of all functions that are 0 around the old optimum and so large at c, it has the least norm.

    That norm is height / v^{1/2}, v the variance left at c once all points around are known: with
    this kernel all of them are held.
    """
    env = make_env(HIDDEN, **ROUGH, lengthscale=0.5, num_terms=10, change_points=[10])
    K = env.problem.kernel(env.problem.domain, env.problem.domain)
    where = env.problem.domain[:, 0]
    ranks = []
    for seed in range(80):
        before, after = values_of(env, seed)
        near = np.abs(where - where[before.argmax()]) <= 0.1
        assert near.sum() <= 20
        solved = np.linalg.inv(K[np.ix_(near, near)])
        left = 1 - np.einsum("pn,pq,qn->n", K[near], solved, K[near])
        bump = after - before
        peaks = np.flatnonzero(np.isclose(after, before.max() + 0.5 * np.ptp(before), rtol=1e-9))
        sizes = np.abs(bump[peaks]) / np.sqrt(np.maximum(left[peaks], 1e-300))
        spent = env.dynamics.episodes[0].variation_budget
        match = peaks[np.isclose(sizes, spent, rtol=1e-6)]
        assert match.size
        apart = np.flatnonzero(left >= left.max() / 2)
        assert match[0] in apart
        ranks.append((np.searchsorted(apart, match[0]) + 0.5) / len(apart))
    assert stats.kstest(ranks, "uniform").pvalue > 1e-3  # the seeds are fixed


def test_bounds_that_are_asked_for(make_env: Make) -> None:
    plain, env = make_env(HIDDEN), make_env(HIDDEN, norm_bound=2.0)
    f, scaled = values_of(plain, 1), values_of(env, 1)
    bound = plain.problem.norm_bound
    assert isinstance(bound, float)
    np.testing.assert_allclose(scaled, f * (2.0 / bound), rtol=1e-12)
    assert env.problem.norm_bound == 2.0
    budgeted = make_env(RECURRING, variation_budget=4.0)
    values_of(budgeted, 1)
    assert budgeted.problem.variation_budget == pytest.approx(4.0)


def test_without_a_change(make_env: Make) -> None:
    env = make_env(HIDDEN, change_points=[])
    np.testing.assert_array_equal(values_of(env, 5), values_of(make_env(STATIONARY), 5))
    env = make_env(RECURRING, change_points=[])
    assert values_of(env, 5).shape == (1, 100)
    assert env.problem.variation_budget == 0


@pytest.mark.parametrize(
    ("name", "parameters", "match"),
    [
        (ABRUPT, {"num_worlds": 2}, "'num_worlds' .* None for the schedule 'abrupt'"),
        (HIDDEN, {"num_worlds": 2}, "'num_worlds' .* None for the schedule 'hidden'"),
        (RECURRING, {"rise": 0.5}, "'rise' .* None for the schedule 'recurring'"),
        (RECURRING, {"num_worlds": 1}, r"'num_worlds' .* int in \[2, 1000\]"),
        (RECURRING, {"num_worlds": 1001}, r"'num_worlds' .* int in \[2, 1000\]"),
        (HIDDEN, {"rise": 0}, r"'rise' .* float in \[0\.001, 100\]"),
        (HIDDEN, {"rise": 101.0}, r"'rise' .* float in \[0\.001, 100\]"),
        (HIDDEN, {"kernel": "linear"}, "'kernel' .* change in one place alone"),
        (HIDDEN, {"lengthscale": 30.0}, r"'lengthscale' .* one place alone\. Got 30\.0"),
        (STATIONARY, {"change_rate": 0.1}, "'change_rate' .* None where change_points is not"),
        (HIDDEN, {"change_rate": 0.1}, "'change_rate' .* None where change_points is not"),
    ],
)
def test_refused(make_env: Make, name: str, parameters: Parameters, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make_env(name, **parameters)
