"""What every environment promises, whatever its task: spaces, observations, infos, errors."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import shortened
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from wgp_gym.envs import BanditEnv
from wgp_gym.kernels import CentredLinear

Variant = tuple[str, dict[str, Any]]
Make = Callable[..., BanditEnv]

INFO_TYPES = {
    "t": int,
    "expected_reward": float,
    "optimal_reward": float,
    "optimal_action": int,  # an array where actions are continuous
    "regret": float,
    "cumulative_regret": float,
    "variation": float,
    "sup_variation": float,
    "changed": bool,
}


ARMS = {"Stock": 29, "Table": 16, "Parking": 16, "Linear": 50, "Arms": 10}
ARMS |= {"Pricing": 50, "Beam": 64, "Sensors": 46, "News": 30}
NOISES = {"Linear": 1.0, "Pricing": 20.0}  # of the others 0.1


def kind(name: str) -> str:
    """Return which of `ARMS` an id is of, or the last part of its name."""
    word = name.split("-")[1]
    return next((kind for kind in ARMS if word.startswith(kind)), word)


def dimension(name: str, parameters: dict[str, Any]) -> int:
    default = {"Linear": 2, "Knobs": 3}.get(kind(name), 1)
    return 2 if "function" in parameters else int(parameters.get("dim", default))


def on_a_box(name: str, parameters: dict[str, Any]) -> bool:
    return bool(parameters.get("continuous", kind(name) == "Knobs"))


def number_of_arms(name: str, parameters: dict[str, Any]) -> int:
    grid = int(parameters.get("points_per_dim", 100)) ** dimension(name, parameters)
    return int(parameters.get("num_arms", ARMS.get(kind(name), grid)))


def place(env: BanditEnv, action: Any, shown: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return where an action stands in [0, 1]^d: a point of the box, or of a square grid.

    Arms that are drawn anew stand where the observation before showed them, `shown` `(n d,)`;
    linear arms that stay stand where the problem says.
    """
    if isinstance(env.action_space, spaces.Box):
        return np.asarray(action, float)
    assert isinstance(env.action_space, spaces.Discrete)
    arms, dim = int(env.action_space.n), env.problem.domain.shape[1]
    if env.problem.contextual:
        return np.asarray(shown.reshape(arms, dim)[action], float)
    if isinstance(env.problem.kernel, CentredLinear):
        return np.asarray(env.problem.domain[action], float)
    side = round(arms ** (1 / dim))
    lattice: NDArray[np.float64] = np.array(np.unravel_index(int(action), (side,) * dim), float)
    lattice /= side - 1
    return lattice


def check_info(info: dict[str, Any], env: BanditEnv) -> None:
    assert set(info) == set(INFO_TYPES) | ({"action_mask"} if env.task.masked else set())
    for key, value in info.items():
        if key == "action_mask":
            assert isinstance(value, np.ndarray)
            assert (value.dtype, value.shape) == (np.int8, env.available().shape)
            assert value.any()
        elif key == "optimal_action" and isinstance(env.action_space, spaces.Box):
            assert isinstance(value, np.ndarray)
            assert value.shape == env.action_space.shape
            assert env.action_space.contains(value.astype(np.float32))
            np.testing.assert_array_equal(value, value.astype(np.float32))  # can be played
        else:
            assert type(value) is INFO_TYPES[key], key
            assert math.isfinite(info[key]), key
    assert info["regret"] >= 0.0


def test_gymnasium_checker(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    check_env(make_env(name, **parameters))  # a warning is an error here


def test_stable_baselines3_checker(variant: Variant) -> None:
    from stable_baselines3.common.env_checker import check_env as check_for_sb3

    name, parameters = variant
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if on_a_box(name, parameters):  # D is [0, 1]^d: its advice is another range
            advice = "We recommend you to use a symmetric and normalized Box action space"
            warnings.filterwarnings("ignore", message=advice)
        check_for_sb3(gymnasium.make(name, **parameters))


def test_spaces(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    env = make_env(name, **parameters)
    dim, arms = dimension(name, parameters), number_of_arms(name, parameters)
    expected: spaces.Space[Any] = spaces.Discrete(arms)
    if on_a_box(name, parameters):
        expected = spaces.Box(0.0, 1.0, (dim,), np.float32)
    assert env.action_space == expected
    appended = arms * dim if env.problem.contextual else 0
    low = [0.0] * (2 + dim) + [-1e12] + [0.0] * appended
    high = [1.0] * (2 + dim) + [1e12] + [1.0] * appended
    observed = spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)
    assert env.observation_space == observed


def test_a_whole_episode(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    env = make_env(name, **shortened(name, parameters))
    env.action_space.seed(1)
    size = 3 + env.problem.domain.shape[1]  # without arms that are drawn anew
    horizon = env.problem.known_horizon("a test")
    observation, info = env.reset(seed=3)
    assert env.observation_space.contains(observation)
    assert not observation[:size].any()
    check_info(info, env)
    zero = {key: info[key] for key in INFO_TYPES if not key.startswith("optimal")}
    assert not any(zero.values())
    assert info["optimal_reward"] >= env.expected_rewards().max() - 1e-12
    total, spent = 0.0, 0.0
    for t in range(1, horizon + 1):
        action, shown = env.action_space.sample(), observation[size:]
        observation, reward, terminated, truncated, info = env.step(action)
        assert type(reward) is float
        assert reward == float(np.float32(reward))
        assert (terminated, truncated) == (False, t == horizon)
        expected = [t / horizon, 1.0, *place(env, action, shown), reward]
        np.testing.assert_array_equal(observation[:size], np.array(expected, np.float32))
        assert env.observation_space.contains(observation)
        check_info(info, env)
        total += info["regret"]
        assert info["t"] == t
        assert info["cumulative_regret"] == pytest.approx(total, rel=1e-12)
        assert info["changed"] == (info["variation"] > spent)
        spent = info["variation"]
        if t == horizon:
            np.testing.assert_array_equal(observation[size:], shown)  # the last arms again
    if parameters.get("told") != "law":
        assert info["variation"] == env.problem.variation_budget


@pytest.mark.parametrize("episodes", [0, 1], ids=["before-reset", "after-the-end"])
def test_a_step_without_reset(variant: Variant, make_env: Make, episodes: int) -> None:
    name, parameters = variant
    env = make_env(name, horizon=2, **parameters)
    action = env.action_space.sample()
    if episodes:
        env.reset(seed=0)
        env.step(action)
        env.step(action)
    for _ in range(2):
        with pytest.raises(ResetNeeded, match="call reset"):
            env.step(action)
    env.reset(seed=0)
    assert env.step(action)[4]["t"] == 1


@pytest.mark.parametrize(
    "method", ["expected_rewards", "optimal_action", "render", "function_changes", "fork"]
)
def test_the_truth_before_reset(make_env: Make, method: str) -> None:
    env = make_env("WGPBandit-Abrupt-v0", render_mode="ansi")
    with pytest.raises(ResetNeeded, match="reset"):
        getattr(env, method)()


def test_problem_before_reset(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    env = make_env(name, **parameters)
    task = env.problem
    assert (task.norm_bound, task.variation_budget) == (None, None)
    env.reset(seed=0)
    binary = task.reward_range == (0, 1) and parameters.get("reward") != "gaussian"
    usual = NOISES.get(kind(name), 0.1)
    assert task.horizon == env.problem.horizon
    drawn, told = "noise_std" in parameters, parameters.get("told") != "law"
    assert task.noise_scale == (None if drawn else 0.5 if binary else usual)
    assert drawn or env.problem.noise_scale == task.noise_scale
    assert type(env.problem.noise_scale) is (float if told or not drawn else type(None))
    assert type(env.problem.norm_bound) is (float if told else type(None))
    assert type(env.problem.variation_budget) is (float if told else type(None))


@pytest.mark.parametrize("action", [100, -1, 3.0, "3", None, [3], np.array([3]), True])
def test_an_arm_that_is_none(make_env: Make, action: Any) -> None:
    env = make_env("WGPBandit-Abrupt-v0")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"The action must be in Discrete\(100\)\. Got"):
        env.step(action)
    assert env.step(0)[4]["t"] == 1  # nothing was played


@pytest.mark.parametrize("integer", [np.int8, np.uint8, np.int32, np.int64, np.array])
def test_any_integer_names_an_arm(make_env: Make, integer: Callable[[int], Any]) -> None:
    env, same = make_env("WGPBandit-Abrupt-v0"), make_env("WGPBandit-Abrupt-v0")
    env.reset(seed=0)
    same.reset(seed=0)
    assert env.step(integer(42))[1] == same.step(42)[1]


def test_huge_rewards_are_clipped_in_the_observation_only(make_env: Make) -> None:
    env = make_env("WGPBandit-Stationary-v0", norm_bound=1e15)
    env.reset(seed=0)
    rewards = env.expected_rewards()
    for arm, bound in ((int(rewards.argmax()), 1e12), (int(rewards.argmin()), -1e12)):
        observation, reward, *_ = env.step(arm)
        assert abs(reward) > 1e13
        assert reward == pytest.approx(rewards[arm], rel=1e-6)
        assert observation[-1] == np.float32(bound)
        assert env.observation_space.contains(observation)


def test_nothing_is_shared_with_the_caller(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    env, twin = make_env(name, **parameters), make_env(name, **parameters)
    env.action_space.seed(0)

    def spoil(observation: NDArray[np.float32], info: dict[str, Any]) -> None:
        for array in (observation, info["optimal_action"], env.expected_rewards()):
            if isinstance(array, np.ndarray):
                array[:] = -7
        info.clear()

    spoil(*env.reset(seed=2))
    twin.reset(seed=2)
    for _ in range(4):
        action = env.action_space.sample()
        assert env.function_changes() == twin.function_changes()
        observation, reward, _, _, info = env.step(np.array(action))
        expected, expected_reward, _, _, expected_info = twin.step(action)
        np.testing.assert_array_equal(observation, expected)
        assert reward == expected_reward
        np.testing.assert_equal(info, expected_info)
        spoil(observation, info)
