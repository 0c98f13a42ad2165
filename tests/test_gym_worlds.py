"""Laws in the place of numbers: tasks that are drawn anew for each episode, and told or not."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from numpy.typing import NDArray
from scipy import stats

import wgp_agents
import wgp_gym
from wgp_gym.envs import BanditEnv, BanditVectorEnv, LinearTask, RandomTask, SyntheticTask
from wgp_gym.kernels import Kernel, Matern, SquaredExponential

Make = Callable[..., BanditEnv]
Worlds = tuple[str, dict[str, Any]]

ABRUPT, SLOW, MARKOV = "WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0", "WGPBandit-Markov-v0"
LINEAR, CONTEXTUAL = "WGPBandit-LinearAbrupt-v0", "WGPBandit-LinearContextual-v0"
ARMS = "WGPBandit-ArmsAbrupt-v0"
RECURRING, HIDDEN = "WGPBandit-Recurring-v0", "WGPBandit-Hidden-v0"
NOISE, LENGTHS, KERNELS = [0.05, 1.0], [0.05, 0.5], ["se", "matern"]
TIMES: dict[str, Any] = {"change_points": "random", "change_rate": [0.01, 0.2]}
WORLDS: list[Worlds] = [
    (ABRUPT, {"noise_std": NOISE, "lengthscale": LENGTHS, "kernel": KERNELS, **TIMES}),
    (ABRUPT, {"norm_bound": 2.0, "num_terms": 10, **TIMES}),
    (ABRUPT, {"continuous": True, "noise_std": NOISE, "num_terms": 5, **TIMES}),
    (SLOW, {"noise_std": NOISE, "lengthscale": LENGTHS, "variation_budget": 3.0}),
    (RECURRING, {"noise_std": NOISE, "num_worlds": 3, **TIMES}),
    (HIDDEN, {"noise_std": NOISE, "lengthscale": LENGTHS, "num_terms": 10, **TIMES}),
    (MARKOV, {"noise_std": NOISE, "lengthscale": LENGTHS, "kernel": KERNELS}),
    (LINEAR, {"noise_std": NOISE, **TIMES}),
    (CONTEXTUAL, {"noise_std": NOISE, "link": "identity", "num_arms": 3, **TIMES}),
    (ARMS, {"changing_arms": 2, **TIMES}),
]
P_VALUE = 1e-3  # of each test of a distribution below; the seeds are fixed


def by_name(world: Worlds) -> str:
    return "-".join([world[0].split("-")[1], *world[1]])


def make_vector(name: str, batch: int, **parameters: Any) -> BanditVectorEnv:
    env = gymnasium.make_vec(
        name, num_envs=batch, vectorization_mode="vector_entry_point", **parameters
    ).unwrapped
    assert isinstance(env, BanditVectorEnv)
    return env


def played(env: Any, actions: list[Any], **reset: Any) -> list[Any]:
    """Return all that an episode shows, and what its functions are."""
    seen = [env.reset(**reset)]
    for action in actions:
        seen += [env.expected_rewards(), env.function_changes(), env.step(action)]
    return seen


def actions_for(env: Any, steps: int) -> list[Any]:
    env.action_space.seed(1)
    return [env.action_space.sample() for _ in range(steps)]


def changes(env: BanditEnv, **reset: Any) -> list[int]:
    """Return the steps that were the first to meet a new function, as `info` tells them."""
    env.reset(**reset)
    action = env.action_space.sample()
    told = [env.step(action)[4]["changed"] for _ in range(env.problem.known_horizon("a test"))]
    return (np.flatnonzero(told) + 1).tolist()


def named(kernel: Kernel) -> dict[str, Any]:
    """Return the keywords of a kernel."""
    assert isinstance(kernel, SquaredExponential | Matern)
    name = "se" if isinstance(kernel, SquaredExponential) else "matern"
    return {"kernel": name, "lengthscale": kernel.lengthscale}


@pytest.mark.parametrize("world", WORLDS, ids=by_name)
def test_an_episode_is_one_of_the_task_that_was_drawn(make_env: Make, world: Worlds) -> None:
    name, parameters = world
    env = make_env(name, horizon=60, **parameters)
    actions = actions_for(env, 60)
    times = set()
    for seed in range(4):
        seen = played(env, actions, seed=seed)
        problem = env.problem
        drawn: dict[str, Any] = {}
        if "noise_std" in parameters:
            drawn["noise_std"] = problem.noise_scale
        if "lengthscale" in parameters:
            drawn |= named(problem.kernel)
        if "change_points" in parameters:
            drawn |= {"change_points": changes(env, seed=seed), "change_rate": None}
            times.add(tuple(drawn["change_points"]))
        fixed = make_env(name, horizon=60, **parameters | drawn)
        assert type(fixed.task) is not RandomTask
        np.testing.assert_equal(played(fixed, actions, seed=seed), seen)
        for told in ("noise_scale", "norm_bound", "variation_budget"):
            assert getattr(fixed.problem, told) == getattr(problem, told)
        assert fixed.problem.kernel == problem.kernel
        (one,), (same,) = env.dynamics.episodes, fixed.dynamics.episodes
        for kept in ("values", "coefficients", "centres"):
            np.testing.assert_array_equal(getattr(one, kept), getattr(same, kept))
    assert len(times) == (4 if "change_points" in parameters else 0)


@pytest.mark.parametrize("world", WORLDS, ids=by_name)
def test_a_batch_is_the_single_environments(make_env: Make, world: Worlds) -> None:
    name, parameters = world
    parameters = {"horizon": 40, "told": "law", **parameters}
    vector = make_vector(name, 5, **parameters)
    actions = actions_for(vector, 85)  # two episodes
    found: list[Any] = [vector.reset(seed=7), *(vector.step(action) for action in actions)]
    for i in range(5):
        single = make_env(name, **parameters)
        alone: list[Any] = [single.reset(seed=7 + i)]
        for action in actions:
            alone.append(single.reset() if alone[-1][-1]["t"] == 40 else single.step(action[i]))
        for one, many in zip(alone, found, strict=True):
            np.testing.assert_array_equal(one[0], many[0][i])
            for key, value in one[-1].items():
                np.testing.assert_array_equal(many[-1][key][i], value, key)
        np.testing.assert_array_equal(single.expected_rewards(), vector.expected_rewards()[i])
        kept, same = vector.dynamics.episodes[i], single.dynamics.episodes[0]
        np.testing.assert_array_equal(kept.values, same.values)
        assert (kept.kernels, kept.noise_scale) == (same.kernels, same.noise_scale)


@pytest.mark.slow
def test_numbers_are_log_uniform_and_names_uniform() -> None:
    laws = {"noise_std": NOISE, "lengthscale": LENGTHS, "kernel": ["se", "matern", "linear"]}
    env = make_vector(ABRUPT, 900, horizon=2, points_per_dim=3, num_terms=2, told="law", **laws)
    env.reset(seed=0)
    noise: list[float] = []
    length: list[float] = []
    names = []
    for episode in env.dynamics.episodes:
        assert episode.kernels is not None
        (kernel,) = episode.kernels
        names.append(type(kernel).__name__)
        if isinstance(kernel, SquaredExponential | Matern):
            length.append(named(kernel)["lengthscale"])
        assert isinstance(episode.noise_scale, float)
        noise.append(episode.noise_scale)
    for found, (low, high) in ((noise, NOISE), (length, LENGTHS)):
        assert low <= min(found) <= max(found) <= high
        assert stats.kstest(found, stats.loguniform(low, high).cdf).pvalue > P_VALUE
    assert stats.chisquare([names.count(name) for name in sorted(set(names))]).pvalue > P_VALUE
    assert len(set(names)) == 3
    # Independent of each other: ranks of two uniforms.
    short = np.array([one for one, name in zip(noise, names, strict=True) if name != "Linear"])
    assert stats.spearmanr(short, length).pvalue > P_VALUE


def test_laws_have_a_stream_of_their_own(make_env: Make) -> None:
    env = make_env(ABRUPT, noise_std=NOISE)
    env.reset(seed=5)
    entropy = np.random.default_rng(5).integers(2**63, size=2).tolist()
    own = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(1,)))
    expected = 0.05 * 20 ** own.random(2)[1]  # the first number is that of the rate of changes
    assert env.problem.noise_scale == pytest.approx(expected, rel=1e-12)


def changed_steps(**parameters: Any) -> NDArray[np.bool_]:
    env = make_vector(ABRUPT, 600, horizon=41, points_per_dim=3, num_terms=2, **parameters)
    env.reset(seed=3)
    actions = np.zeros(600, np.int64)
    return np.array([env.step(actions)[4]["changed"] for _ in range(41)]).T


def test_changes_come_at_each_step_with_one_probability() -> None:
    changed = changed_steps(change_points="random", change_rate=0.15)
    assert not changed[:, 0].any()
    each = [stats.binomtest(int(count), 600, 0.15).pvalue for count in changed[:, 1:].sum(axis=0)]
    assert min(each) > P_VALUE / 40
    # Each is a coin of its own: episodes' counts are binomial, and neighbours independent.
    counts = np.bincount(changed.sum(axis=1), minlength=15)[:15]
    expected = stats.binom(40, 0.15).pmf(np.arange(15))
    few = np.array([0, 3, 5, 6, 7, 9, 15])
    binned = np.add.reduceat(counts, few[:-1]), np.add.reduceat(expected, few[:-1])
    share = 600 * binned[1] / binned[1].sum()
    assert stats.chisquare(binned[0] * 600 / binned[0].sum(), share).pvalue > P_VALUE
    both = int((changed[:, 1:-1] & changed[:, 2:]).sum())
    assert stats.binomtest(both, 600 * 39, 0.15**2).pvalue > P_VALUE


def test_the_rate_of_changes_is_log_uniform() -> None:
    counts = changed_steps(change_points="random", change_rate=[0.02, 0.5]).sum(axis=1)
    rates = stats.loguniform(0.02, 0.5).ppf((np.arange(2000) + 0.5) / 2000)
    expected = stats.binom(40, rates[:, None]).pmf(np.arange(41)).mean(axis=0)
    edges = np.array([0, 1, 2, 4, 7, 12, 20])
    found = np.add.reduceat(np.bincount(counts, minlength=41), edges)
    assert stats.chisquare(found, 600 * np.add.reduceat(expected, edges)).pvalue > P_VALUE


@pytest.mark.parametrize(("rate", "changed"), [(0, 0), (1, 11), (1.0, 11)])
def test_never_and_always(make_env: Make, rate: float, changed: int) -> None:
    env = make_env(ABRUPT, horizon=12, change_points="random", change_rate=rate)
    assert len(changes(env, seed=1)) == changed
    assert env.dynamics.episodes[0].values.shape == (1 + changed, 100)


@pytest.mark.slow
def test_the_drift_of_a_markov_task_is_log_uniform() -> None:
    law = {"eps": [0.1, 0.9], "kernel": "linear", "contextual": True}
    env = make_vector(MARKOV, 300, dim=6, points_per_dim=2, horizon=200, **law)
    env.reset(seed=2)
    theta = np.array([episode.coefficients for episode in env.dynamics.episodes])
    before, after = theta[:, :-1].reshape(300, -1), theta[:, 1:].reshape(300, -1)
    correlation = (before * after).sum(axis=1) / (before**2).sum(axis=1)
    eps = 1 - correlation**2  # right to 0.03 or so
    assert stats.kstest(eps, stats.loguniform(0.1, 0.9).cdf).pvalue > P_VALUE


@pytest.mark.parametrize("kernel", [["matern", "modified-matern"], "matern"], ids=["drawn", "one"])
def test_norms_and_variation_are_those_of_dense_algebra(make_env: Make, kernel: Any) -> None:
    env = make_env(
        ABRUPT,
        **{"points_per_dim": 4, "dim": 2, "nu": 0.5, "horizon": 30, "num_terms": 7},
        **{"change_points": "random", "change_rate": 0.2, "lengthscale": [0.2, 1.0]},
        kernel=kernel,
    )
    for seed in range(3):
        env.reset(seed=seed)
        problem = env.problem
        solved = np.linalg.inv(problem.kernel(problem.domain, problem.domain))
        functions, told = [], []
        for _ in range(30):
            functions.append(env.expected_rewards())
            told.append(env.step(env.action_space.sample())[4])
        f = np.array(functions)
        moved = np.diff(f, axis=0, prepend=f[:1])
        steps = np.sqrt(np.maximum(np.einsum("ti,ij,tj->t", moved, solved, moved), 0))
        norms = np.sqrt(np.einsum("ti,ij,tj->t", f, solved, f))
        np.testing.assert_allclose([one["variation"] for one in told], steps.cumsum(), rtol=1e-9)
        spent = np.abs(moved).max(axis=1).cumsum()
        np.testing.assert_allclose([one["sup_variation"] for one in told], spent, rtol=1e-9)
        np.testing.assert_array_equal([one["optimal_reward"] for one in told], f.max(axis=1))
        np.testing.assert_array_equal([one["optimal_action"] for one in told], f.argmax(axis=1))
        np.testing.assert_array_equal([one["changed"] for one in told], moved.any(axis=1))
        assert problem.norm_bound == pytest.approx(norms.max(), rel=1e-9)
        assert problem.variation_budget == told[-1]["variation"]
        assert sum(one["changed"] for one in told) > 1


def test_what_a_learner_of_the_law_alone_is_told(make_env: Make) -> None:
    laws = {"noise_std": NOISE, "lengthscale": LENGTHS, "kernel": ["matern", "se"], "told": "law"}
    env, vector = make_env(ABRUPT, **laws), make_vector(ABRUPT, 3, **laws)
    for seed in (None, 1, 2):
        if seed is not None:
            env.reset(seed=seed)
            vector.reset(seed=seed)
        for problem in (env.problem, vector.problem):
            assert problem.kernel == Matern(math.sqrt(0.05 * 0.5), 2.5)
            assert problem.noise_scale is problem.norm_bound is problem.variation_budget is None
    assert (env.problem.batch_size, vector.problem.batch_size) == (None, 3)
    asked = {"norm_bound": 2.0, "variation_budget": 1.0, "told": "law"}
    for env in (make_env(SLOW, **asked), make_env(SLOW, lengthscale=LENGTHS, **asked)):
        env.reset(seed=1)
        problem = env.problem
        assert (problem.noise_scale, problem.norm_bound, problem.variation_budget) == (0.1, 2, 1)


def test_what_is_drawn_is_told(make_env: Make) -> None:
    vector = make_vector(ABRUPT, 3, noise_std=NOISE, **TIMES)
    assert vector.problem.noise_scale is None
    vector.reset(seed=4)
    scales = np.array([episode.noise_scale for episode in vector.dynamics.episodes])
    np.testing.assert_array_equal(vector.problem.noise_scale, scales)
    assert len(set(scales.tolist())) == 3
    single = make_env(ABRUPT, noise_std=NOISE, **TIMES)
    single.reset(seed=5)
    assert single.problem.noise_scale == scales[1]


def test_noise_has_the_deviation_that_was_drawn() -> None:
    env = make_vector(ABRUPT, 40, noise_std=NOISE, **TIMES)
    env.reset(seed=1)
    actions = np.zeros(40, np.int64)
    paid = [(one[1] - one[4]["expected_reward"]) for one in (env.step(actions) for _ in range(500))]
    z = np.array(paid) / env.problem.noise_scale
    assert stats.kstest(z.ravel(), "norm").pvalue > P_VALUE
    squares = (z**2).sum(axis=0)
    assert stats.kstest(squares, stats.chi2(500).cdf).pvalue > P_VALUE


OPTIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (ABRUPT, {}, {"noise_std": 0.5, "change_points": [10, 20], "lengthscale": 0.1}),
    (ABRUPT, {"noise_std": NOISE, **TIMES}, {"noise_std": 0.3, "change_points": [10]}),
    (ABRUPT, {"continuous": True}, {"kernel": "matern", "lengthscale": 0.4}),
    (SLOW, {"lengthscale": LENGTHS}, {"lengthscale": 0.2, "kernel": "matern"}),
    (MARKOV, {"eps": [0.01, 0.1]}, {"eps": 0.5}),
    (LINEAR, {}, {"change_points": [5], "noise_std": 0.0}),
]


@pytest.mark.parametrize(("name", "parameters", "options"), OPTIONS)
def test_options_are_for_one_episode(
    make_env: Make, name: str, parameters: dict[str, Any], options: dict[str, Any]
) -> None:
    parameters = {"horizon": 30, **parameters}
    usual = parameters | ({"change_rate": None} if "change_points" in options else {})
    env, never = make_env(name, **parameters), make_env(name, **parameters)
    fixed = make_env(name, **usual | options)
    actions = actions_for(env, 30)
    seen = played(env, actions, seed=5, options=dict(options))
    np.testing.assert_equal(played(fixed, actions, seed=5), seen)
    assert env.problem.kernel == fixed.problem.kernel
    assert env.problem.noise_scale == fixed.problem.noise_scale
    never.reset(seed=5)
    for _ in range(2):  # the next episodes are those that would have been
        np.testing.assert_equal(played(env, actions), played(never, actions))
        assert env.problem.kernel == never.problem.kernel


def test_options_of_a_vector_environment_are_for_all(make_env: Make) -> None:
    vector = make_vector(ABRUPT, 3, horizon=6, noise_std=NOISE, **TIMES)
    options = {"lengthscale": 0.1, "kernel": "matern", "reset_mask": np.ones(3, bool)}
    vector.reset(seed=3, options=options)
    assert named(vector.problem.kernel) == {"kernel": "matern", "lengthscale": 0.1}
    actions = actions_for(vector, 7)
    found = [vector.step(action) for action in actions]
    usual = {"kernel": "se", "lengthscale": 0.2}
    assert named(vector.problem.kernel) == usual  # of the episodes after these
    for i in range(3):
        single = make_env(ABRUPT, horizon=6, noise_std=NOISE, **TIMES)
        single.reset(seed=3 + i, options={"lengthscale": 0.1, "kernel": "matern"})
        alone = [single.step(action[i])[1] for action in actions[:6]]
        assert alone == [many[1][i] for many in found[:6]]
        assert single.reset()[1]["optimal_reward"] == found[6][4]["optimal_reward"][i]


def test_a_number_in_the_place_of_a_law_leaves_all_else(make_env: Make) -> None:
    laws = {"noise_std": NOISE, "lengthscale": LENGTHS, "kernel": KERNELS, **TIMES}
    env = make_env(ABRUPT, **laws)
    usual = changes(env, seed=9)
    told, rewards = env.problem, env.expected_rewards()
    assert changes(env, seed=9, options={"noise_std": 0.3}) == usual
    assert (env.problem.kernel, env.problem.noise_scale) == (told.kernel, 0.3)
    np.testing.assert_array_equal(env.expected_rewards(), rewards)
    assert changes(env, seed=9, options={"kernel": "linear"}) == usual
    assert env.problem.noise_scale == told.noise_scale
    assert changes(env, seed=9, options={"change_points": [7]}) == [7]
    assert (env.problem.kernel, env.problem.noise_scale) == (told.kernel, told.noise_scale)
    assert changes(env, seed=9, options={"change_points": "random"}) == usual
    more = changes(env, seed=9, options={"change_rate": 0.2})
    assert set(usual) < set(more)  # the same numbers, below a larger one


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (ABRUPT, {"noise_std": [1.0, 0.5]}, r"'noise_std' .* \[low, high\] with 0 < low < high"),
    (ABRUPT, {"noise_std": [0.0, 0.5]}, r"'noise_std' .* \[low, high\] with 0 < low < high"),
    (ABRUPT, {"noise_std": [0.1, float("inf")]}, r"'noise_std' .* \[low, high\]"),
    (ABRUPT, {"noise_std": [0.1, 0.2, 0.3]}, r"'noise_std' .* \[low, high\]"),
    (ABRUPT, {"noise_std": [0.1, "a"]}, r"'noise_std' .* \[low, high\]"),
    (ABRUPT, {"noise_std": [[0.1], [0.2]]}, r"'noise_std' .* \[low, high\]"),
    (ABRUPT, {"noise_std": [0.1, 1e40]}, r"'noise_std' .* in \[0, 1e\+30\]\. Got 1e\+40"),
    (ABRUPT, {"lengthscale": [1e-12, 0.1]}, r"'lengthscale' .* Got 1e-12"),
    (ABRUPT, {"kernel": ["se", "rbf"]}, r"'kernel' .* Got 'rbf'"),
    (ABRUPT, {"kernel": ["se", 3]}, "'kernel' .* must be one of"),
    (ABRUPT, {"change_points": "random"}, r"'change_rate' .* in \[0, 1\]\. Got None"),
    (ABRUPT, {"change_points": "sometimes"}, "'change_points' .* a list of steps"),
    (ABRUPT, {"change_rate": 0.1}, "'change_rate' .* None where change_points is not"),
    (ABRUPT, TIMES | {"change_rate": 1.5}, r"'change_rate' .* in \[0, 1\]\. Got 1.5"),
    (ABRUPT, TIMES | {"change_rate": [0.1, 1.5]}, r"'change_rate' .* in \[0, 1\]\. Got 1.5"),
    (ABRUPT, TIMES | {"variation_budget": 1.0}, "'variation_budget' .* that never changes"),
    (ABRUPT, TIMES | {"num_terms": 5000, "horizon": 50_000}, "'change_points' .* such that"),
    (ABRUPT, {"kernel": KERNELS, "continuous": True}, "'continuous' .* kernel .* is drawn"),
    (ABRUPT, {"lengthscale": LENGTHS, "continuous": True}, "'continuous' .* is drawn"),
    (ABRUPT, {"told": "nothing"}, "'told' .* one of 'drawn', 'law'"),
    (SLOW, TIMES, "'change_points' .* None for the schedule 'piecewise_linear'"),
    (MARKOV, {"eps": [0.5, 1.5]}, r"'eps' .* in \[0, 1\]\. Got 1.5"),
    (ARMS, {"noise_std": NOISE}, "'noise_std' .* None where rewards are 0 or 1"),
    (LINEAR, TIMES | {"theta": [[1.0, 0.0]]}, "'theta' .* one vector for each"),
]


@pytest.mark.parametrize(("name", "parameters", "message"), REFUSED)
def test_refused(make_env: Make, name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_env(name, **parameters)


def test_learners_of_several_episodes_share_a_kernel() -> None:
    laws: list[dict[str, Any]] = [{"kernel": KERNELS}, {"lengthscale": LENGTHS}]
    for law in laws:
        with pytest.raises(ValueError, match=r"'told' .* must be \"law\" .* Got 'drawn'"):
            make_vector(ABRUPT, 2, **law)
        make_vector(ABRUPT, 1, **law).reset(seed=1)
        env = make_vector(ABRUPT, 2)
        with pytest.raises(ValueError, match=r"'told' .* must be \"law\""):
            env.reset(options=law)
        assert env.reset(seed=1)[0].shape == (2, 4)


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"bogus": 3}, r"no parameter 'bogus'\. It takes .*'noise_std', 'lengthscale', 'kernel', "),
    ({"noise": 3}, r"no parameter 'noise' \(did you mean 'noise_std'\?\)"),
    ({"horizon": 3}, "no parameter 'horizon'"),
    ({"told": "law"}, "no parameter 'told'"),
    ({"noise_std": -1.0}, r"'noise_std' .* in \[0, 1e\+30\]\. Got -1.0"),
    ({"change_points": [9, 5]}, "'change_points' .* strictly increasing"),
    ({"change_rate": 0.5}, "'change_rate' .* None where change_points is not"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_refused_options(make_env: Make, options: dict[str, Any], message: str) -> None:
    for env in (make_env(ABRUPT), make_vector(ABRUPT, 2)):
        env.reset(seed=1, options={"change_points": [2, 3]})
        with pytest.raises(ValueError, match=message):
            env.reset(options=options)
        changed = [env.step(env.action_space.sample())[4]["changed"] for _ in range(3)]
        assert np.array(changed).T.reshape(-1, 3).all(axis=0).tolist() == [False, True, True]


def test_who_takes_no_options(make_env: Make) -> None:
    for env in (make_env("WGPBandit-Stock-v0"), BanditEnv(SyntheticTask("abrupt"))):
        with pytest.raises(ValueError, match=r"no parameter 'noise_std'\. It takes none\."):
            env.reset(options={"noise_std": 0.1})


def test_a_random_task_is_a_task(make_env: Make) -> None:
    task = RandomTask(SyntheticTask, schedule="abrupt", noise_std=NOISE, **TIMES)
    env, same = BanditEnv(task), make_env(ABRUPT, noise_std=NOISE, **TIMES)
    actions = actions_for(env, 9)
    seen = played(same, actions, seed=2)
    np.testing.assert_equal(played(env, actions, seed=2), seen)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        np.testing.assert_equal(played(other, actions, seed=2), seen)
    rng = np.random.default_rng(1)
    one, two = task.draw(rng), task.draw(rng)
    assert one.noise_scale != two.noise_scale
    assert one.knots is not None
    assert len(one.values) == one.knots[-1] + 1


def test_a_law_is_not_the_callers(make_env: Make) -> None:
    law = [0.05, 1.0]
    env, same = make_env(ABRUPT, noise_std=law), make_env(ABRUPT, noise_std=[0.05, 1.0])
    law[1] = 1e9
    for options in ({}, {"lengthscale": 0.1}):
        for one in (env, same):
            one.reset(seed=1, options=options)
        assert env.problem.noise_scale == same.problem.noise_scale


class Louder(LinearTask):
    """A task of one's own that says itself what may be drawn of it."""

    drawable: ClassVar = {"loudness": "range", "length": "range"}

    def __init__(self, loudness: float = 0.5, length: float = 10) -> None:
        super().__init__("rotation", horizon=int(length), norm_bound=loudness)


def test_a_task_of_ones_own_says_what_may_be_drawn() -> None:
    env = BanditEnv(f"{__name__}:Louder", loudness=[0.1, 1.0])
    bounds = []
    for seed in range(5):
        env.reset(seed=seed)
        bounds.append(env.problem.norm_bound)
    assert len(set(bounds)) == 5
    assert all(0.1 <= bound <= 1 for bound in bounds if bound is not None)
    env.reset(options={"loudness": 0.5})
    assert env.problem.norm_bound == pytest.approx(0.5)
    with pytest.raises(ValueError, match=r"'drawable' .* Louder must be .* that leave T and"):
        BanditEnv(f"{__name__}:Louder", length=[10.0, 20.0])


class Counted(LinearTask):
    """A task that counts how often it is made."""

    drawable: ClassVar = {"noise_std": "range"}
    made = 0

    def __init__(self, noise_std: float = 0.1) -> None:
        super().__init__("rotation", horizon=10, noise_std=noise_std)
        Counted.made += 1


def test_where_noise_alone_is_drawn_no_task_is_made_anew() -> None:
    """So a reset takes no longer than without a law."""
    env = BanditEnv(f"{__name__}:Counted", noise_std=NOISE)
    plain = BanditEnv(f"{__name__}:Counted")
    before = Counted.made
    scales = set()
    for seed in range(5):
        env.reset(seed=seed)
        plain.reset(seed=seed)
        scales.add(env.problem.noise_scale)
        np.testing.assert_array_equal(env.expected_rewards(), plain.expected_rewards())
    assert len(scales) == 5
    assert Counted.made == before


def test_single_environments_in_a_row_are_the_native_batch() -> None:
    laws = {"noise_std": NOISE, **TIMES, "horizon": 12}
    many = SyncVectorEnv([lambda: gymnasium.make(ABRUPT, **laws)] * 3)
    native = make_vector(ABRUPT, 3, **laws)
    many.reset(seed=4)
    native.reset(seed=4)
    for action in actions_for(native, 30):
        one, other = many.step(action), native.step(action)
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_json_holds_all_of_it() -> None:
    env = gymnasium.make(ABRUPT, noise_std=(0.05, 1.0), kernel=np.array(["se", "matern"]), **TIMES)
    assert env.spec is not None
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.reset(seed=1)[1] == env.reset(seed=1)[1]
    assert again.unwrapped.problem.noise_scale == env.unwrapped.problem.noise_scale  # type: ignore[attr-defined]


def test_an_agent_is_of_the_kernel_and_the_noise_that_it_was_made_for(make_env: Make) -> None:
    env = make_env(ABRUPT, noise_std=NOISE)
    with pytest.raises(ValueError, match=r"'noise_scale' .* or give it 'noise_scale'"):
        wgp_agents.make("wgp-ucb", env)  # before anything was drawn
    env.reset(seed=1)
    learners = [wgp_agents.make(name, env) for name in ("wgp-ucb", "master", "pe-gp-ucb")]
    given = [
        wgp_agents.make("wgp-ucb", env, noise_scale=0.3),
        *(wgp_agents.make(name, env) for name in ("adaptive-wgp-ucb", "ucb1", "random")),
    ]
    for agent in learners + given:
        agent.reset(0)
    env.reset(seed=2)
    for agent in learners:
        with pytest.raises(ValueError, match=r"'noise_scale' .* when \w+ was made: make it after"):
            agent.reset(0)
    for agent in given:
        agent.reset(0)
    env = make_env(ABRUPT, lengthscale=LENGTHS)
    env.reset(seed=1)
    agents = [wgp_agents.make(name, env) for name in ("igp-ucb", "adaptive-wgp-ucb", "opkb")]
    env.reset(seed=2)
    for agent in agents:
        with pytest.raises(ValueError, match=r"'kernel' .* when \w+ was made: make it after"):
            agent.reset(0)


def test_agents_play_what_is_drawn() -> None:
    laws = {"told": "law", "lengthscale": LENGTHS, **TIMES}
    env = make_vector(ABRUPT, 3, horizon=30, **laws)
    observation, _ = env.reset(seed=1)
    for name in ("adaptive-wgp-ucb", "oracle", "oracle-restart"):
        agent = wgp_agents.make(name, env, **({"norm_bound": 4.0} if "restart" in name else {}))
        observation, info = env.reset(seed=1)
        agent.reset(0)
        for _ in range(30):
            observation, paid, _, _, info = env.step(action := agent.act(observation))
            agent.observe(action, paid)
        assert (info["cumulative_regret"] == 0).all() == (name == "oracle")


def test_seeds_for_one_purpose_are_no_others() -> None:
    every = [wgp_gym.seeds(purpose) for purpose in ("train", "validation", "test")]
    assert all(one.step == 1 and len(one) >= 10**14 for one in every)
    assert min(one.start for one in every) == 10**9  # below are everybody's own
    for one, other in itertools.pairwise(every):
        assert one.stop <= other.start
    assert every[-1].stop < 2**63
    with pytest.raises(ValueError, match=r"'purpose' .* one of 'train', .* Got 'trial'"):
        wgp_gym.seeds("trial")  # type: ignore[arg-type]


@pytest.mark.parametrize("refused", [{"seed": -1}, {"seed": -1, "options": {"noise_std": 0.3}}])
@pytest.mark.parametrize("batch", [None, 2])
def test_a_refused_reset_leaves_the_episode_as_it_was(
    refused: dict[str, Any], batch: int | None
) -> None:
    source: Any = (
        gymnasium.make_vec(
            "WGPBandit-Abrupt-v0", num_envs=2, vectorization_mode="vector_entry_point"
        )
        if batch
        else gymnasium.make("WGPBandit-Abrupt-v0")
    )
    source.reset(seed=1)
    source.reset(seed=2, options={"noise_std": 0.5})
    action = np.array([3, 3]) if batch else 3
    source.step(action)
    truth, noise = source.unwrapped.expected_rewards(), source.unwrapped.problem.noise_scale
    with pytest.raises(ValueError, match="seed"):
        source.reset(**refused)
    np.testing.assert_array_equal(source.unwrapped.expected_rewards(), truth)
    np.testing.assert_array_equal(source.unwrapped.problem.noise_scale, noise)
    assert np.all(source.step(action)[4]["t"] == 2)
