"""Wrappers of what is paid, what is told of changes, one-hot histories, and given episodes."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import wgp_gym
from wgp_gym.wrappers import (
    ChangeNotification,
    HistoryObservation,
    OneHotHistory,
    RegretReward,
    SeededEpisodes,
    VectorChangeNotification,
    VectorOneHotHistory,
    VectorRegretReward,
)

TASK, STOCK, MARKOV = "WGPBandit-Abrupt-v0", "WGPBandit-Stock-v0", "WGPBandit-Markov-v0"
HORIZON = 10
ARMS = [0, 99, 50, 20, 3, 3, 7, 60, 81, 5]


def single(name: str = TASK, **parameters: Any) -> Any:
    return gymnasium.make(name, **({"horizon": HORIZON} | parameters))


def native(count: int, name: str = TASK, **parameters: Any) -> Any:
    mode = "vector_entry_point"
    parameters = {"horizon": HORIZON} | parameters
    return gymnasium.make_vec(name, count, vectorization_mode=mode, **parameters)


def wrapped(kind: str) -> Any:
    """Return each wrapper around a single environment."""
    made: dict[str, Any] = {
        "regret": lambda: RegretReward(single()),
        "one-hot": lambda: OneHotHistory(single(STOCK), 2),
        "changes": lambda: ChangeNotification(single(), "how-much"),
        "told history": lambda: ChangeNotification(HistoryObservation(single(), 3), "whether"),
        "episodes": lambda: SeededEpisodes(single(), [5, 8]),
    }
    return made[kind]()


def test_the_package_has_its_wrappers() -> None:
    assert wgp_gym.wrappers.RegretReward is RegretReward


@pytest.mark.parametrize("kind", ["regret", "one-hot", "changes", "told history", "episodes"])
def test_gymnasium_accepts_them_and_makes_them_again(kind: str) -> None:
    env = wrapped(kind)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is different from the unwrapped version")  # it is
        check_env(env, skip_render_check=True)
    again = gymnasium.make(env.spec)
    assert type(again) is type(env)
    np.testing.assert_array_equal(again.reset(seed=1)[0], env.reset(seed=1)[0])


def test_regret_is_read_off_the_functions() -> None:
    env, bare = RegretReward(single()), single()
    env.reset(seed=3)
    bare.reset(seed=3)
    for arm in ARMS:
        means = bare.unwrapped.expected_rewards()
        shown, paid, *_ = bare.step(arm)
        observation, reward, *_ = env.step(arm)
        assert reward == means[arm] - means.max() <= 0.0
        np.testing.assert_array_equal(observation, shown)
        assert observation[-1] == np.float32(paid)  # the task's own


@pytest.mark.parametrize("mode", [*AutoresetMode])
@pytest.mark.parametrize("form", ["native", "sync"])
def test_regrets_of_a_batch(form: str, mode: AutoresetMode) -> None:
    if form == "native":
        many = native(2, horizon=3, autoreset_mode=mode)
    else:
        many = SyncVectorEnv([lambda: single(horizon=3)] * 2, autoreset_mode=mode)
    env = VectorRegretReward(many)
    env.reset(seed=5)
    for step in range(3):
        means = np.array(many.call("expected_rewards") if form == "sync" else
                         many.unwrapped.expected_rewards())  # fmt: skip
        rewards = env.step(np.array([4, 70]))[1]
        np.testing.assert_array_equal(rewards, means[[0, 1], [4, 70]] - means.max(axis=1))
        assert rewards.max() < 0, step
    if mode == AutoresetMode.NEXT_STEP:
        assert not env.step(np.array([4, 70]))[1].any()  # begins the next episodes


def test_one_hot_rows() -> None:
    env: Any = OneHotHistory(single(STOCK), 2, reward_scale=2.0)
    n = env.unwrapped.action_space.n
    assert n == 29
    rows = [env.reset(seed=1)[0]]
    assert not rows[0].any()
    rewards = []
    for arm in (3, 28, 0):
        observation, reward, *_ = env.step(arm)
        rows.append(observation)
        rewards.append(np.float32(reward) / 2)
    expected = np.zeros(1 + 2 * (2 + n), np.float32)
    expected[[0, 1, 2, 2 + n]] = 0.3, 1, 1, rewards[2]  # arm 0, the newest
    expected[[3 + n, 4 + n + 28, 4 + 2 * n]] = 1, 1, rewards[1]
    np.testing.assert_array_equal(rows[-1], expected)
    assert all(env.observation_space.contains(row) for row in rows)


def test_a_batch_of_one_hot_rows_is_the_single_ones() -> None:
    many = VectorOneHotHistory(native(3, points_per_dim=4, dim=2), 2)
    alone = [OneHotHistory(single(points_per_dim=4, dim=2), 2) for _ in range(3)]
    rows = many.reset(seed=5)[0]
    ones = [env.reset(seed=5 + i)[0] for i, env in enumerate(alone)]
    for actions in np.random.default_rng(0).integers(16, size=(HORIZON, 3)):
        np.testing.assert_array_equal(rows, ones)
        rows = many.step(actions)[0]
        assert many.observation_space.contains(rows)
        ones = [env.step(int(arm))[0] for env, arm in zip(alone, actions, strict=True)]
    assert not many.step(actions)[0].any()  # the next episodes begin


def test_what_is_told_of_a_change() -> None:
    """With T = 10 f_2 and f_4 are new (0.2 T, 0.4 T): what is told comes with their rewards."""
    env: Any = ChangeNotification(single(), "how-much")
    notices = [env.reset(seed=2)[0][-2:]]
    spent = 0.0
    for arm in ARMS:
        before = env.unwrapped.function_changes()
        observation, _, _, _, info = env.step(arm)
        assert observation[-2] == before == (info["t"] in (2, 4))
        assert observation[-1] == np.float32(info["variation"] - spent)
        spent = info["variation"]
        notices.append(observation[-2:])
    assert np.flatnonzero(np.array(notices)[:, 0]).tolist() == [2, 4]
    assert np.sum(notices, axis=0)[1] == pytest.approx(env.unwrapped.problem.variation_budget)
    assert not env.reset()[0][-2:].any()


def test_the_size_of_a_change_is_its_rkhs_norm() -> None:
    """Of f = sum a_i k(x_i, .) the squared norm is a^T K a."""
    env: Any = ChangeNotification(single(MARKOV, horizon=4, points_per_dim=6), "how-much")
    env.reset(seed=4)
    problem = env.unwrapped.problem
    gram = problem.kernel(problem.domain, problem.domain)
    before = env.unwrapped.expected_rewards()
    env.step(0)
    for arm in (1, 2):
        now = env.unwrapped.expected_rewards()
        moved = np.linalg.solve(gram, now - before)
        told = env.step(arm)[0][-1]
        assert told == pytest.approx(np.sqrt(moved @ gram @ moved), rel=1e-5)
        before = now


@pytest.mark.parametrize(("level", "more"), [("none", 0), ("whether", 1), ("how-much", 2)])
def test_levels_in_a_batch(level: str, more: int) -> None:
    many = VectorChangeNotification(native(3), level)
    alone = [ChangeNotification(single(), level) for _ in range(3)]
    rows = many.reset(seed=5)[0]
    ones = [env.reset(seed=5 + i)[0] for i, env in enumerate(alone)]
    assert rows.shape == (3, 4 + more)
    for arm in ARMS:
        np.testing.assert_array_equal(rows, ones)
        assert many.observation_space.contains(rows)
        rows = many.step(np.full(3, arm))[0]
        ones = [env.step(arm)[0] for env in alone]
    assert not many.step(np.zeros(3, int))[0].any()  # the next episodes begin


def test_episodes_of_given_seeds() -> None:
    env, bare = SeededEpisodes(single(), [7, 3]), single()
    assert env.reset(seed=11)[1] == bare.reset(seed=11)[1]  # moves nothing
    for seed in (7, 3, 7):
        assert env.reset()[1] == bare.reset(seed=seed)[1]
    assert env.played == 3
    long = SeededEpisodes(single(), wgp_gym.seeds("train"))  # more than memory holds
    assert long.reset()[1] == bare.reset(seed=wgp_gym.seeds("train")[0])[1]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ChangeNotification(single(), "all"), "'level' parameter of ChangeNotification"),
        (
            lambda: ChangeNotification(gymnasium.make("CartPole-v1"), "none"),
            "'env' parameter of ChangeNotification must be an environment of wgp_gym",
        ),
        (lambda: OneHotHistory(single(continuous=True), 2), "OneHotHistory must be .* many arms"),
        (lambda: OneHotHistory(single(), 0), "'length' parameter of OneHotHistory"),
        (lambda: SeededEpisodes(single(), []), "'seeds' parameter of SeededEpisodes"),
        (lambda: SeededEpisodes(single(), 7), "'seeds' parameter of SeededEpisodes"),  # type: ignore[arg-type]
        (lambda: SeededEpisodes(single(), range(-1, 3)), "seed must be at least 0"),
        (lambda: SeededEpisodes(single(), [-1]), "seed must be at least 0"),
        (lambda: SeededEpisodes(single(), [None]), "seed must be an int"),  # type: ignore[list-item]
    ],
)
def test_refused(make: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()
    env = RegretReward(gymnasium.make("CartPole-v1"))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="RegretReward must be an environment of wgp_gym"):
        env.step(0)
