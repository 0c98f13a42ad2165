"""Histories: what a policy without memory is shown."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import wgp_gym  # noqa: F401 (registers the environments)
from wgp_gym.wrappers import History, HistoryObservation, VectorHistoryObservation

TASK = "WGPBandit-Abrupt-v0"


def test_the_newest_play_stands_first() -> None:
    env: Any = HistoryObservation(gymnasium.make(TASK, horizon=10), 3, reward_scale=2.0)
    observation, _ = env.reset(seed=0)
    np.testing.assert_array_equal(observation, np.zeros(10))
    rewards = []
    for arm in (0, 99, 50, 20):
        observation, reward, *_ = env.step(arm)
        rewards.append(np.float32(reward) / 2)
    newest_first = [(20 / 99, rewards[3]), (50 / 99, rewards[2]), (1.0, rewards[1])]
    expected = [0.4, *(x for place, r in newest_first for x in (1.0, place, r))]
    np.testing.assert_allclose(observation, np.array(expected, float), rtol=1e-6)


def test_a_new_episode_begins_with_nothing() -> None:
    env: Any = HistoryObservation(gymnasium.make(TASK, horizon=3), 5)
    for _ in range(2):
        observation, _ = env.reset(seed=1)
        assert not observation.any()
        observation = env.step(7)[0]
        assert np.count_nonzero(observation[1::3]) == 1


@pytest.mark.parametrize("kwargs", [{}, {"dim": 2, "points_per_dim": 5, "continuous": True}])
def test_the_batch_is_the_single_ones(kwargs: dict[str, Any]) -> None:
    mode = "vector_entry_point"
    many: Any = gymnasium.make_vec(TASK, 3, vectorization_mode=mode, horizon=6, **kwargs)
    many = VectorHistoryObservation(many, 4, reward_scale=3.0)
    singles: list[Any] = [
        HistoryObservation(gymnasium.make(TASK, horizon=6, **kwargs), 4, reward_scale=3.0)
        for _ in range(3)
    ]
    rows, _ = many.reset(seed=5)
    alone = [env.reset(seed=5 + i)[0] for i, env in enumerate(singles)]
    rng = np.random.default_rng(0)
    for _ in range(6):
        np.testing.assert_array_equal(rows, alone)
        assert many.observation_space.contains(rows)
        shape = (3, 2) if kwargs else (3,)
        actions = rng.random(shape, np.float32) if kwargs else rng.integers(100, size=shape)
        rows = many.step(actions)[0]
        alone = [env.step(action)[0] for env, action in zip(singles, actions, strict=True)]
    over = many.step(actions)[0]  # the next episodes begin, their actions ignored
    assert not over.any()


def test_gymnasium_accepts_it() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is different from the unwrapped version")  # it is
        check_env(HistoryObservation(gymnasium.make(TASK, horizon=8), 4), skip_render_check=True)


def test_only_those_at_an_episodes_start_are_cleared() -> None:
    history = History(2, 1, 2)
    shown = np.array([[0.1, 1, 0.5, 7.0], [0.1, 1, 0.25, 8.0]], np.float32)
    history.push(shown)
    shown[1] = 0.0
    rows = history.push(shown)
    np.testing.assert_allclose(rows[0].tolist(), [0.1, 1, 0.5, 7, 1, 0.5, 7], rtol=1e-6)
    assert not rows[1].any()


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"length": 0}, "'length' parameter of HistoryObservation must be an int of at least 1"),
        ({"length": 2, "reward_scale": 0.5}, r"'reward_scale' .* must be a float in \[1"),
    ],
)
def test_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        HistoryObservation(gymnasium.make(TASK), **given)
    with pytest.raises(ValueError, match="'env' parameter of HistoryObservation must be an env"):
        HistoryObservation(gymnasium.make("CartPole-v1"), 3)
