"""Every environment under Gymnasium's own wrappers, autoreset modes and habits."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as vector_wrappers
from numpy.typing import NDArray

from wgp_gym.envs import BanditEnv, BanditVectorEnv
from wgp_gym.registration import ENVIRONMENTS

Make = Callable[..., BanditEnv]
Env = gymnasium.Env[Any, Any]
Vector = gymnasium.vector.VectorEnv[Any, Any, Any]
Step = tuple[Any, ...]

HORIZON, SEED = 7, 40
HORIZONS = (3, 5)  # two sub-environments that do not end together, so that masks have gaps


def actions_for(env: Any, steps: int) -> list[Any]:
    env.action_space.seed(1)
    return [env.action_space.sample() for _ in range(steps)]


def episode(env: Env, actions: list[Any], seed: int | None = SEED) -> list[Step]:
    return [env.reset(seed=seed), *(env.step(action) for action in actions)]


def raw_episode(make_env: Make, name: str, **parameters: Any) -> tuple[list[Any], list[Step]]:
    """Return actions, and what they bring without any wrapper."""
    env = make_env(name, horizon=HORIZON, **parameters)
    actions = actions_for(env, HORIZON)
    return actions, episode(env, actions)


def check_but(found: list[Step], expected: list[Step], position: int) -> None:
    """Compare all that reset and steps returned but what stands at one position of the steps."""
    np.testing.assert_equal(found[0], expected[0])
    for one, other in zip(found[1:], expected[1:], strict=True):
        for i in set(range(5)) - {position}:
            np.testing.assert_equal(one[i], other[i])


def test_record_episode_statistics(environment_id: str, make_env: Make) -> None:
    env = wrappers.RecordEpisodeStatistics(make_env(environment_id, horizon=HORIZON))
    twin = make_env(environment_id, horizon=HORIZON)
    actions = actions_for(env, HORIZON)
    totals, optima = [], []
    for seed in (SEED, None):
        found, expected = episode(env, actions, seed), episode(twin, actions, seed)
        statistics = found[-1][4].pop("episode")
        np.testing.assert_equal(found, expected)  # no other step has an "episode"
        totals.append(sum(step[1] for step in expected[1:]))
        optima.append(expected[0][1]["optimal_reward"])
        assert (statistics["r"], statistics["l"]) == (totals[-1], HORIZON)
    assert list(env.return_queue) == totals
    assert list(env.length_queue) == [HORIZON, HORIZON]
    assert (totals[0], optima[0]) != (totals[1], optima[1])


@pytest.mark.parametrize("limit", [4, HORIZON, HORIZON + 5])
@pytest.mark.parametrize("inside", [True, False], ids=["by-make", "outside"])
def test_time_limit(environment_id: str, make_env: Make, limit: int, inside: bool) -> None:
    env: Env
    if inside:
        made = gymnasium.make(environment_id, max_episode_steps=limit, horizon=HORIZON)
        env = wrappers.RecordEpisodeStatistics(made)
    else:
        statistics = wrappers.RecordEpisodeStatistics(make_env(environment_id, horizon=HORIZON))
        env = wrappers.TimeLimit(statistics, limit)
    twin = make_env(environment_id, horizon=HORIZON)
    length = min(limit, HORIZON)
    actions = actions_for(env, length)
    for seed in (SEED, None):  # a limit that cuts an episode short does not move the next one
        found, expected = episode(env, actions, seed), episode(twin, actions, seed)
        assert [step[3] for step in found[1:]] == [False] * (length - 1) + [True]
        recorded = found[-1][4].pop("episode", None)
        assert (recorded is not None) == (inside or limit >= HORIZON)
        check_but(found, expected, 3)
    if limit >= HORIZON:
        with pytest.raises(ResetNeeded, match="call reset"):
            env.step(actions[0])


def test_normalize_reward(environment_id: str, make_env: Make) -> None:
    actions, expected = raw_episode(make_env, environment_id)
    env = wrappers.NormalizeReward(make_env(environment_id, horizon=HORIZON), gamma=0.9)
    found = episode(env, actions)
    check_but(found, expected, 1)
    returns: list[float] = []
    for step in expected[1:]:
        returns.append(0.9 * (returns[-1] if returns else 0.0) + step[1])
    # The running variance starts from a count of 1e-4 with mean 0 and variance 1.
    counted = (1e-4 * 1.0 + np.sum(np.square(returns))) / (HORIZON + 1e-4)
    variance = counted - (np.sum(returns) / (HORIZON + 1e-4)) ** 2
    wanted = expected[-1][1] / np.sqrt(variance + 1e-8)
    assert found[-1][1] == pytest.approx(wanted, rel=1e-6)


def test_normalize_observation(environment_id: str, make_env: Make) -> None:
    actions, expected = raw_episode(make_env, environment_id)
    env = wrappers.NormalizeObservation(make_env(environment_id, horizon=HORIZON))
    found = episode(env, actions)
    for one, other in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_equal(one[1:], other[1:])
        assert env.observation_space.contains(one[0])
        assert np.isfinite(one[0]).all()
    raw = np.array([step[0] for step in expected], float)
    wanted = (raw[-1] - raw.mean(axis=0)) / np.sqrt(raw.var(axis=0) + 1e-8)
    np.testing.assert_allclose(found[-1][0], wanted, rtol=1e-3, atol=1e-3)


def test_flatten_observation_changes_nothing(environment_id: str, make_env: Make) -> None:
    actions, expected = raw_episode(make_env, environment_id)
    bare = make_env(environment_id, horizon=HORIZON)
    env: Env = wrappers.FlattenObservation(bare)
    assert env.observation_space == bare.observation_space
    np.testing.assert_equal(episode(env, actions), expected)


def test_transform_reward(environment_id: str, make_env: Make) -> None:
    actions, expected = raw_episode(make_env, environment_id)
    bare = make_env(environment_id, horizon=HORIZON)
    found = episode(wrappers.TransformReward(bare, lambda reward: 3 * float(reward) - 1), actions)
    check_but(found, expected, 1)
    assert [step[1] for step in found[1:]] == [3 * step[1] - 1 for step in expected[1:]]


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("name", ["Abrupt", "Slow", "Stationary"])
def test_rescale_action_plays_the_rescaled_point(name: str, dim: int, make_env: Make) -> None:
    parameters = {"continuous": True, "dim": dim, "points_per_dim": 8, "horizon": 30}
    twin = make_env(f"WGPBandit-{name}-v0", **parameters)
    env: Env = wrappers.RescaleAction(
        make_env(f"WGPBandit-{name}-v0", **parameters), np.float32(-1.0), np.float32(1.0)
    )
    assert env.action_space == spaces.Box(-1.0, 1.0, (dim,), np.float32)
    ends = [np.full(dim, end, np.float32) for end in (-1.0, 1.0)]
    np.testing.assert_equal(env.reset(seed=SEED), twin.reset(seed=SEED))
    for action in [*ends, *actions_for(env, 28)]:
        result = env.step(action)
        point = (np.asarray(action, float) + 1) / 2
        np.testing.assert_allclose(result[0][2:-1], point, atol=1e-7)
        np.testing.assert_equal(result, twin.step(result[0][2:-1]))


def test_rescale_action_refuses_what_is_outside(make_env: Make) -> None:
    bare = make_env("WGPBandit-Abrupt-v0", continuous=True)
    env: Env = wrappers.RescaleAction(bare, np.float32(-1.0), np.float32(1.0))
    env.reset(seed=SEED)
    with pytest.raises(ValueError, match="The action must be in Box"):
        env.step(np.array([1.01], np.float32))


@pytest.mark.parametrize("name", ["Abrupt", "Slow", "Stationary"])
def test_clip_action_plays_the_nearest_point(name: str, make_env: Make) -> None:
    twin = make_env(f"WGPBandit-{name}-v0", continuous=True)
    env: Env = wrappers.ClipAction(make_env(f"WGPBandit-{name}-v0", continuous=True))
    np.testing.assert_equal(env.reset(seed=SEED), twin.reset(seed=SEED))
    for action, point in ((-3.0, 0.0), (7.5, 1.0), (np.inf, 1.0), (0.25, 0.25), (1.0, 1.0)):
        result = env.step(np.array([action], np.float32))
        np.testing.assert_equal(result, twin.step(np.array([point], np.float32)))
    with pytest.raises(ValueError, match="The action must be in Box"):
        env.step(np.array([np.nan], np.float32))


def test_the_wrappers_that_make_adds(environment_id: str) -> None:
    env = gymnasium.make(environment_id, horizon=HORIZON, render_mode="ansi")
    names = re.findall(r"(\w+)<", str(env))
    assert names[:3] == ["OrderEnforcing", "PassiveEnvChecker", "BanditEnv"]  # and no TimeLimit
    with pytest.raises(ResetNeeded):
        env.step(0)
    with pytest.raises(ResetNeeded):
        env.render()
    for seed in (SEED, None):  # what the checker warns of is an error here
        for step in episode(env, actions_for(env, HORIZON), seed):
            assert step[0].dtype == np.float32
            assert isinstance(env.render(), str)
    env.close()


def test_autoreset_is_the_vector_environment_of_one(environment_id: str, make_env: Make) -> None:
    env: Env = wrappers.Autoreset(make_env(environment_id, horizon=HORIZON))
    vector = native(environment_id, 1)
    actions = actions_for(env, 2 * HORIZON + 3)
    found = episode(env, actions)
    expected: list[Step] = [vector.reset(seed=SEED)]
    expected += [vector.step([action]) for action in actions]
    for (*numbers, info), (*arrays, infos) in zip(found, expected, strict=True):
        for value, values in zip(numbers, arrays, strict=True):
            np.testing.assert_array_equal(value, values[0])
        np.testing.assert_equal(info, {key: infos[key][0] for key in info})


def native(name: str, batch: int, **parameters: Any) -> BanditVectorEnv:
    mode = "vector_entry_point"
    made = gymnasium.make_vec(
        name, batch, vectorization_mode=mode, **({"horizon": HORIZON} | parameters)
    )
    assert isinstance(made, BanditVectorEnv)
    return made


def sync(name: str, batch: int) -> Vector:
    return gymnasium.make_vec(name, batch, vectorization_mode="sync", horizon=HORIZON)


def play(env: Vector, actions: list[Any]) -> list[Step]:
    return [env.reset(seed=SEED), *(env.step(action) for action in actions)]


@pytest.mark.parametrize("make", [native, sync])
def test_vector_episode_statistics(environment_id: str, make: Callable[..., Vector]) -> None:
    env = vector_wrappers.RecordEpisodeStatistics(make(environment_id, 3))
    actions = actions_for(env, 2 * HORIZON + 1)  # the step between two episodes plays nothing
    expected = play(native(environment_id, 3), actions)
    found = play(env, actions)
    for end, first in ((HORIZON, 1), (2 * HORIZON + 1, HORIZON + 2)):
        statistics = found[end][4].pop("episode")
        np.testing.assert_array_equal(found[end][4].pop("_episode"), [True] * 3)
        totals = np.sum([step[1] for step in expected[first : end + 1]], axis=0)
        np.testing.assert_allclose(statistics["r"], totals, rtol=1e-12)
        np.testing.assert_array_equal(statistics["l"], [HORIZON] * 3)
    np.testing.assert_equal(found, expected)
    assert env.episode_count == 6


def test_vector_normalize_reward(environment_id: str) -> None:
    env = vector_wrappers.NormalizeReward(native(environment_id, 3), gamma=0.0)
    actions = actions_for(env, 2 * HORIZON + 1)
    found, expected = play(env, actions), play(native(environment_id, 3), actions)
    check_but(found, expected, 1)
    # Without discount the returns are the rewards; those of the step between do not count, but in
    # Gymnasium 1.2 they did.
    counted = np.array([step[1] for step in expected[1:]])
    if not gymnasium.__version__.startswith("1.2."):
        counted = np.delete(counted, HORIZON, axis=0)
    wanted = expected[-1][1] / np.sqrt(counted.var() + 1e-8)
    np.testing.assert_allclose(found[-1][1], wanted, rtol=1e-4)
    assert not found[HORIZON + 1][1].any()


def test_vector_rescale_action() -> None:
    low, high = np.array([[-1.0], [1.0]], np.float32)
    bare = native("WGPBandit-Slow-v0", 2, continuous=True)
    env: Vector = vector_wrappers.RescaleAction(bare, low, high)
    env.reset(seed=SEED)
    observation = env.step(np.array([[-1.0], [0.5]], np.float32))[0]
    np.testing.assert_allclose(observation[:, 2], [0.0, 0.75], atol=1e-7)


class Alone:
    """Sub-environments played one by one, and the infos that each autoreset mode has of them."""

    def __init__(self, make_env: Make, name: str, mode: AutoresetMode) -> None:
        self.envs = [make_env(name, horizon=horizon) for horizon in HORIZONS]
        self.mode = mode
        self.over = [False, False]
        self.finals: list[tuple[Any, Any] | None] = [None, None]

    def reset(self) -> list[Step]:
        return [env.reset(seed=SEED + i) for i, env in enumerate(self.envs)]

    def step(self, actions: NDArray[Any]) -> list[Step]:
        return [self.step_one(i, actions[i]) for i in range(2)]

    def step_one(self, i: int, action: Any) -> Step:
        self.finals[i] = None
        if self.over[i] and self.mode == AutoresetMode.NEXT_STEP:
            self.over[i] = False
            observation, info = self.envs[i].reset()
            return observation, 0.0, False, False, info
        result = self.envs[i].step(action)
        self.over[i] = result[3]
        if result[3] and self.mode == AutoresetMode.SAME_STEP:
            self.finals[i] = (result[0], result[4])
            observation, info = self.envs[i].reset()
            return observation, result[1], False, True, info
        return result


def check_infos(found: dict[str, Any], infos: list[dict[str, Any] | None]) -> None:
    """Check arrays and masks against the infos that each sub-environment has, if it has one."""
    has = [info is not None for info in infos]
    keys = {key for info in infos if info is not None for key in info}
    assert set(found) == keys | {f"_{key}" for key in keys}
    for key in keys:
        np.testing.assert_array_equal(found[f"_{key}"], has)
        assert found[key].shape[0] == len(infos)
        assert found[key].dtype != object
        for i, info in enumerate(infos):
            if info is not None:
                np.testing.assert_array_equal(found[key][i], info[key])


def check_autoreset(env: Vector, alone: Alone, steps: int) -> None:
    mode = alone.mode
    assert env.metadata["autoreset_mode"] == mode
    observation, info = env.reset(seed=SEED)
    begun = alone.reset()
    np.testing.assert_array_equal(observation, [one[0] for one in begun])
    check_infos(info, [one[1] for one in begun])
    finals = 0
    for action in actions_for(env, steps):
        *arrays, info = env.step(action)
        expected = alone.step(action)
        for position, array in enumerate(arrays):
            np.testing.assert_array_equal(array, [one[position] for one in expected])
        ended = [final is not None for final in alone.finals]
        if any(ended):
            finals += 1
            np.testing.assert_array_equal(info["_final_obs"], ended)
            np.testing.assert_array_equal(info["_final_info"], ended)
            shown, masks = info.pop("final_obs"), (info.pop("_final_obs"), info.pop("_final_info"))
            assert [one is not None for one in shown] == ended == masks[0].tolist()
            for i, final in enumerate(alone.finals):
                np.testing.assert_array_equal(shown[i], None if final is None else final[0])
            of_finals = [None if final is None else final[1] for final in alone.finals]
            check_infos(info.pop("final_info"), of_finals)
        check_infos(info, [one[4] for one in expected])
        if mode == AutoresetMode.DISABLED and any(alone.over):
            mask = np.array(alone.over)
            observation, info = env.reset(options={"reset_mask": mask})
            begun = [
                one.reset() if mask[i] else (expected[i][0], None)
                for i, one in enumerate(alone.envs)
            ]
            np.testing.assert_array_equal(observation, [one[0] for one in begun])
            check_infos(info, [one[1] for one in begun])
    assert (finals > 0) == (mode == AutoresetMode.SAME_STEP)


every_mode = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)


@every_mode
def test_autoreset_sync(environment_id: str, make_env: Make, mode: AutoresetMode) -> None:
    makers = [functools.partial(make_env, environment_id, horizon=length) for length in HORIZONS]
    env = SyncVectorEnv(makers, autoreset_mode=mode)
    check_autoreset(env, Alone(make_env, environment_id, mode), 14)


@pytest.mark.slow
@every_mode
def test_autoreset_async(make_env: Make, mode: AutoresetMode) -> None:
    name = "wgp_gym:WGPBandit-Slow-v0"  # a spawned process has imported nothing yet
    makers = [functools.partial(gymnasium.make, name, horizon=length) for length in HORIZONS]
    env = AsyncVectorEnv(makers, context="spawn", autoreset_mode=mode)
    try:
        check_autoreset(env, Alone(make_env, name, mode), 14)
    finally:
        env.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_autoreset_modes_have_the_same_episodes(environment_id: str, mode: AutoresetMode) -> None:
    env = gymnasium.make_vec(
        environment_id,
        2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        horizon=HORIZON,
    )
    vector = native(environment_id, 2)
    env.reset(seed=SEED)
    vector.reset(seed=SEED)
    wait = mode == AutoresetMode.NEXT_STEP
    for action in actions_for(vector, 3 * HORIZON):
        result, other = env.step(action), vector.step(action)
        np.testing.assert_array_equal(result[1], other[1])
        if other[3].all():
            begun = vector.step(action)
            after = env.step(action) if wait else result
            np.testing.assert_array_equal(after[0], begun[0])
            assert after[4]["optimal_reward"].tolist() == begun[4]["optimal_reward"].tolist()


def run(program: str) -> str:
    """Run a program in a fresh interpreter and return what it printed."""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


def test_a_fresh_interpreter_needs_no_import(make_env: Make) -> None:
    found = run(
        "import gymnasium as gym\n"
        "env = gym.make('wgp_gym:WGPBandit-Abrupt-v0'); env.reset(seed=3)\n"
        "print(env.step(5)[1])\n"
        "envs = gym.make_vec('wgp_gym:WGPBandit-Abrupt-v0', 2, 'vector_entry_point')\n"
        "envs.reset(seed=3); print(envs.step([5, 5])[1][0])\n"
        "print(type(envs).__name__)\n"
    )
    env = make_env("WGPBandit-Abrupt-v0")
    env.reset(seed=3)
    reward = str(env.step(5)[1])
    assert found.split() == [reward, reward, "BanditVectorEnv"]


def test_the_registry_lists_every_id() -> None:
    listed = gymnasium.pprint_registry(disable_print=True)
    assert listed is not None
    for entry in ENVIRONMENTS:
        assert re.search(rf"(?<!\S){re.escape(entry.id)}(?!\S)", listed), entry.id
        assert gymnasium.spec(entry.id).id == entry.id
        assert gymnasium.spec(entry.id).max_episode_steps is None  # the horizon is the task's


def test_the_docstring_has_the_headings_of_gymnasium() -> None:
    headings = re.findall(r"^ *## (.+)$", BanditEnv.__doc__ or "", re.MULTILINE)
    assert [heading.split()[0] for heading in headings] == [
        "Description", "Action", "Observation", "Reward", "Starting", "Episode", "Info",
        "Arguments", "Version",
    ]  # fmt: skip
