"""The native vector environment is its sub-environments made alone, number for number."""

import copy
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from wgp_gym import threads
from wgp_gym.envs import BanditEnv, BanditVectorEnv
from wgp_gym.registration import ENVIRONMENTS, SYNTHETIC

Variant = tuple[str, dict[str, Any]]
Make = Callable[..., BanditEnv]
Vector = gymnasium.vector.VectorEnv[Any, Any, Any]

HORIZON = 7  # an abrupt change falls on step 3, a bend of the slow path between 3 and 4
SEED = 40


def make_vector(name: str, batch: int, **parameters: Any) -> BanditVectorEnv:
    env = gymnasium.make_vec(
        name, num_envs=batch, vectorization_mode="vector_entry_point", **parameters
    )
    assert isinstance(env, BanditVectorEnv)
    return env


def random_actions(env: Vector, steps: int) -> list[Any]:
    env.action_space.seed(1)
    return [env.action_space.sample() for _ in range(steps)]


def play(env: Vector, actions: list[Any], seed: Any = SEED) -> list[tuple[Any, ...]]:
    return [env.reset(seed=seed), *(env.step(action) for action in actions)]


def test_episodes_are_the_same_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST", 1.0)  # a part for each thread
    monkeypatch.setattr(threads, "_given", {"threads": None})
    env = make_vector("WGPBandit-LinearContextual-v0", 7, horizon=HORIZON)
    actions = random_actions(env, HORIZON)
    threads.set_threads(1)
    alone = play(env, actions)
    for count in (2, 3):
        threads.set_threads(count)
        np.testing.assert_equal(play(env, actions), alone)


def row(info: dict[str, Any], i: int) -> dict[str, Any]:
    assert all(value.all() for key, value in info.items() if key.startswith("_"))
    return {key: value[i] for key, value in info.items() if not key.startswith("_")}


def check_row(found: tuple[Any, ...], i: int, expected: tuple[Any, ...]) -> None:
    """Compare sub-environment i of what reset or step returned with a single environment's."""
    *arrays, info = found
    *numbers, single_info = expected
    for array, number in zip(arrays, numbers, strict=True):
        np.testing.assert_array_equal(array[i], number)
    np.testing.assert_equal(row(info, i), single_info)


@pytest.mark.parametrize("batch", [1, 3, pytest.param(17, marks=pytest.mark.slow)])
def test_equals_single_environments(variant: Variant, make_env: Make, batch: int) -> None:
    name, parameters = variant
    vector = make_vector(name, batch, horizon=HORIZON, **parameters)
    looked_at = [i for i in range(batch) if i < 3 or i == batch - 1]
    singles = {i: make_env(name, horizon=HORIZON, **parameters) for i in looked_at}
    begun = vector.reset(seed=SEED)
    for i, single in singles.items():
        check_row(begun, i, single.reset(seed=SEED + i))
    episodes = 3 if batch < 17 else 1
    for step, action in enumerate(random_actions(vector, episodes * (HORIZON + 1)), start=1):
        result = vector.step(action)
        ends = step % (HORIZON + 1)
        for i, single in singles.items():
            if ends == 0:  # the step after the last begins the next episode and plays nothing
                observation, info = single.reset()
                check_row(result, i, (observation, 0.0, False, False, info))
            else:
                check_row(result, i, single.step(action[i]))
        rewards, best = vector.expected_rewards(), vector.optimal_action()
        assert len(rewards) == len(best) == batch
        for i, single in singles.items():
            np.testing.assert_array_equal(rewards[i], single.expected_rewards())
            np.testing.assert_array_equal(best[i], single.optimal_action())
        assert result[3].all() == result[3].any() == (ends == HORIZON)


def check_equal(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_equal(one, other)
        info, other_info = one[-1], other[-1]
        assert {key: info[key].dtype for key in info} == {
            key: other_info[key].dtype for key in other_info
        }


def test_equals_gymnasium_sync(variant: Variant) -> None:
    name, parameters = variant
    native = make_vector(name, 3, horizon=HORIZON, **parameters)
    sync = gymnasium.make_vec(
        name, num_envs=3, vectorization_mode="sync", horizon=HORIZON, **parameters
    )
    assert (native.action_space, native.observation_space) == (
        sync.action_space,
        sync.observation_space,
    )
    assert native.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert sync.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    actions = random_actions(native, 2 * HORIZON + 3)
    check_equal(play(native, actions), play(sync, actions))


SHORT = "WGPBandit-LinearContextual-v0"  # of these, its observations are the longest


@pytest.mark.parametrize(
    "env_id",
    [
        entry.id if entry.id == SHORT else pytest.param(entry.id, marks=pytest.mark.slow)
        for entry in ENVIRONMENTS
    ],
)
def test_equals_gymnasium_async(env_id: str) -> None:
    native = make_vector(env_id, 2, horizon=HORIZON)
    parallel = gymnasium.make_vec(
        env_id,
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"context": "spawn"},  # forking a process that has threads may hang
        horizon=HORIZON,
    )
    actions = random_actions(native, HORIZON + 3)
    check_equal(play(native, actions), play(parallel, actions))
    parallel.close()


def test_problem_is_that_of_the_single_ones(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    vector = make_vector(name, 3, horizon=HORIZON, **parameters)
    assert (vector.problem.norm_bound, vector.problem.variation_budget) == (None, None)
    vector.reset(seed=SEED)
    problem = vector.problem
    assert (problem.batch_size, problem.horizon) == (3, HORIZON)
    for i in range(3):
        single = make_env(name, horizon=HORIZON, **parameters)
        single.reset(seed=SEED + i)
        for field in ("noise_scale", "norm_bound", "variation_budget"):
            told = getattr(single.problem, field)
            assert told is getattr(problem, field) is None or getattr(problem, field)[i] == told


@pytest.mark.parametrize("kind", [list, tuple, np.array], ids=["list", "tuple", "array"])
def test_a_seed_for_each(kind: Callable[[list[int]], Any]) -> None:
    vector = make_vector("WGPBandit-Abrupt-v0", 3)
    actions = random_actions(vector, 4)
    expected = play(vector, actions)
    np.testing.assert_equal(play(vector, actions, kind([SEED, SEED + 1, SEED + 2])), expected)
    np.testing.assert_equal(play(vector, actions, np.int64(SEED)), expected)
    swapped = play(vector, actions, kind([SEED + 1, SEED, SEED + 2]))
    assert (swapped[1][1] != expected[1][1]).tolist() == [True, True, False]


def test_a_seed_of_none_goes_on(make_env: Make) -> None:
    vector, single = make_vector("WGPBandit-Abrupt-v0", 2), make_env("WGPBandit-Abrupt-v0")
    vector.reset(seed=SEED)
    single.reset(seed=SEED)
    mixed = vector.reset(seed=[None, 7])
    check_row(mixed, 0, single.reset())
    check_row(mixed, 1, make_env("WGPBandit-Abrupt-v0").reset(seed=7))
    check_row(vector.reset(), 0, single.reset())


@pytest.mark.parametrize("seed", [[1, 2], [1, 2, 3, 4], []])
def test_wrong_number_of_seeds(seed: list[int]) -> None:
    with pytest.raises(ValueError, match=f"There must be 3 seeds. Got {len(seed)} instead"):
        make_vector("WGPBandit-Abrupt-v0", 3).reset(seed=seed)


@pytest.mark.parametrize("batch", [0, -1, 2.0, True, "2"])
def test_wrong_number_of_environments(batch: Any) -> None:
    with pytest.raises(ValueError, match="'num_envs' parameter of BanditVectorEnv must be an int"):
        BanditVectorEnv(batch, task=SYNTHETIC, schedule="abrupt")


@pytest.mark.parametrize(
    "actions",
    [[0, 0, 100], [0, -1, 0], [0, 0], 0, [[0], [0], [0]], [0.0, 0.0, 0.0], [True] * 3, None],
    ids=str,
)
def test_wrong_arms(actions: Any) -> None:
    vector = make_vector("WGPBandit-Abrupt-v0", 3)
    vector.reset(seed=0)
    with pytest.raises(ValueError, match="The action must be in MultiDiscrete"):
        vector.step(actions)
    assert vector.step([0, 99, 5])[4]["t"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "actions",
    [[[0.5], [1.1]], [[-1e-3], [0.5]], [[np.nan], [0.5]], [[0.5]], [0.5, 0.5], [["x"], ["y"]]],
    ids=str,
)
def test_wrong_points(actions: Any) -> None:
    vector = make_vector("WGPBandit-Abrupt-v0", 2, continuous=True)
    vector.reset(seed=0)
    with pytest.raises(ValueError, match=r"The action must be in Box\(0.0, 1.0, \(2, 1\)"):
        vector.step(actions)


def test_points_in_double_precision_are_rounded_as_alone(make_env: Make) -> None:
    vector = make_vector("WGPBandit-Abrupt-v0", 2, continuous=True)
    single = make_env("WGPBandit-Abrupt-v0", continuous=True)
    vector.reset(seed=SEED)
    single.reset(seed=SEED)
    for x in (0.1, 1 / 3, 1 + 1e-9):  # the last is 1 in single precision
        check_row(vector.step(np.array([[x], [x]])), 0, single.step(np.array([x])))


def test_step_before_reset() -> None:
    with pytest.raises(ResetNeeded, match="call reset"):
        make_vector("WGPBandit-Abrupt-v0", 2).step([0, 0])


def test_nothing_is_shared_with_the_caller(variant: Variant) -> None:
    name, parameters = variant
    vector = make_vector(name, 2, horizon=HORIZON, **parameters)
    actions = random_actions(vector, HORIZON + 3)
    expected = copy.deepcopy(play(vector, actions))

    def spoil(result: tuple[Any, ...]) -> None:
        arrays: list[NDArray[Any]] = [*result[:-1], *result[-1].values(), vector.optimal_action()]
        for array in arrays:
            array[:] = 1

    begun = vector.reset(seed=SEED)
    np.testing.assert_equal(begun, expected[0])
    spoil(begun)
    for action, wanted in zip(actions, expected[1:], strict=True):
        mine = action.copy()
        result = vector.step(mine)
        np.testing.assert_equal(result, wanted)
        spoil((*result[:-1], mine, result[-1]))
