"""The same numbers again: seeds, copies, pickles and specs; and what the numbers depend on."""

import copy
import json
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import shortened
from gymnasium.envs.registration import EnvSpec

from wgp_gym.envs import BanditEnv
from wgp_gym.registration import ENVIRONMENTS

Variant = tuple[str, dict[str, Any]]
Make = Callable[..., BanditEnv]
Env = gymnasium.Env[Any, Any]
Record = list[tuple[Any, ...]]


def play(env: Env, steps: int, action_seed: int = 0) -> Record:
    """Play random actions from here on and return all that the steps returned."""
    env.action_space.seed(action_seed)
    return [env.step(env.action_space.sample()) for _ in range(steps)]


def episode(env: Env, seed: int | None, steps: int = 6) -> Record:
    return [env.reset(seed=seed), *play(env, steps)]


def rewards(record: Record) -> list[tuple[float, float]]:
    """Return rewards and optima: where rewards are 0 or 1, they alone may well be the same."""
    return [(step[1], step[4]["optimal_reward"]) for step in record if len(step) == 5]


def unpickle_and_play(pickled: list[bytes]) -> list[Record]:
    return [play(pickle.loads(data), 5, action_seed=9) for data in pickled]


def test_same_seed_same_episode(variant: Variant) -> None:
    name, parameters = variant
    one, other = gymnasium.make(name, **parameters), gymnasium.make(name, **parameters)
    np.testing.assert_equal(episode(one, 5), episode(other, 5))
    np.testing.assert_equal(episode(one, 11), episode(other, 11))
    assert rewards(episode(one, 5)) != rewards(episode(other, 6))


def test_reset_without_seed_goes_on(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    one, other = make_env(name, **parameters), make_env(name, **parameters)
    first = episode(one, 5, steps=3)
    episode(other, 5, steps=40)
    second = episode(one, None)
    np.testing.assert_equal(second, episode(other, None))  # however much was played before
    assert rewards(second)[:3] != rewards(first)
    np.testing.assert_equal(episode(one, 5, steps=3), first)


def test_only_reset_draws(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    env, twin = make_env(name, **parameters), make_env(name, **parameters)
    env.reset(seed=1)
    twin.reset(seed=1)
    state = env.np_random.bit_generator.state
    assert state == twin.np_random.bit_generator.state
    play(env, 5)
    assert env.np_random.bit_generator.state == state
    env.reset()
    assert env.np_random.bit_generator.state != state


def test_no_global_generator(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    env = make_env(name, **parameters)
    np.random.seed(0)  # noqa: NPY002  (the one that must not be read)
    expected = episode(env, 4)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002
    np.testing.assert_equal(episode(env, 4), expected)
    np.testing.assert_equal(np.random.get_state(), before)  # noqa: NPY002


def test_unseeded_environments_differ(environment_id: str) -> None:
    one, other = gymnasium.make(environment_id), gymnasium.make(environment_id)
    assert rewards(episode(one, None)) != rewards(episode(other, None))


def test_truth_and_noise_do_not_depend_on_the_actions(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    parameters = shortened(name, parameters)
    one, other = make_env(name, **parameters), make_env(name, **parameters)
    binary = one.problem.reward_range == (0, 1) and parameters.get("reward") != "gaussian"
    one.action_space.seed(1)
    other.action_space.seed(2)
    one.reset(seed=8)
    other.reset(seed=8)
    differ = False
    for _ in range(one.problem.known_horizon("a test")):
        np.testing.assert_array_equal(one.expected_rewards(), other.expected_rewards())
        (_, y, _, _, a), (_, z, _, _, b) = (
            env.step(env.action_space.sample()) for env in (one, other)
        )
        assert a["optimal_reward"] == b["optimal_reward"]
        differ |= a["expected_reward"] != b["expected_reward"]
        if binary:  # one uniform for both: the arm with the larger mean pays where the other does
            assert (y - z) * (a["expected_reward"] - b["expected_reward"]) >= 0
            continue
        scale = max(1.0, abs(y), abs(z))
        noise, same = y - a["expected_reward"], z - b["expected_reward"]
        assert noise == pytest.approx(same, abs=2e-7 * scale)  # rewards have single precision
    assert differ


def test_deep_copy_in_mid_episode_goes_on(variant: Variant) -> None:
    name, parameters = variant
    env = gymnasium.make(name, **parameters)
    episode(env, 5)
    twin = copy.deepcopy(env)
    expected = [*play(env, 10, action_seed=4), *episode(env, None)]
    np.testing.assert_equal([*play(twin, 10, action_seed=4), *episode(twin, None)], expected)


@pytest.mark.slow
def test_pickles_go_on_in_a_spawned_process() -> None:
    envs: list[Env] = [gymnasium.make(entry.id) for entry in ENVIRONMENTS]
    envs.append(gymnasium.make("WGPBandit-Slow-v0", continuous=True, horizon=30))
    for env in envs:
        episode(env, 5)
    pickled = [pickle.dumps(env) for env in envs]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(unpickle_and_play, pickled).result(timeout=60)
    np.testing.assert_equal(found, [play(env, 5, action_seed=9) for env in envs])


@pytest.mark.parametrize("extra", [{}, {"horizon": 40, "norm_bound": 0.5}], ids=["bare", "more"])
def test_json_round_trip_of_the_spec(variant: Variant, extra: dict[str, Any]) -> None:
    name, parameters = variant
    env = gymnasium.make(name, **parameters, **extra)
    assert env.spec is not None
    text = env.spec.to_json()
    assert json.loads(text)["kwargs"].items() >= {**parameters, **extra}.items()
    again = gymnasium.make(EnvSpec.from_json(text))
    np.testing.assert_equal(episode(again, 5), episode(env, 5))


def test_json_round_trip_of_a_list() -> None:
    env = gymnasium.make("WGPBandit-Abrupt-v0", change_points=[3, 5], horizon=8)
    assert env.spec is not None
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    record = episode(again, 5, steps=8)
    np.testing.assert_equal(record, episode(env, 5, steps=8))
    assert [step[4]["t"] for step in record[1:] if step[4]["changed"]] == [3, 5]
