"""Long episodes, odd actions, copies and other processes: the numbers stay what they are."""

from __future__ import annotations

import copy
import hashlib
import itertools
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import as_arms, by_kind, tasks_of
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

import wgp_agents
from wgp_gym.envs import BanditEnv, BanditVectorEnv
from wgp_gym.registration import ENVIRONMENTS

Variant = tuple[str, dict[str, Any]]
Make = Callable[..., BanditEnv]
Step = tuple[Any, ...]

LONG, HORIZON, SEED = 10_000, 6, 40
SYNTHETIC = ["WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0", "WGPBandit-Stationary-v0"]


def actions_for(env: Any, steps: int, seed: int = 1) -> list[Any]:
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(steps)]


def play(env: Any, steps: int, seed: int = 1) -> list[Step]:
    return [env.step(action) for action in actions_for(env, steps, seed)]


def make_vector(name: str, batch: int, **parameters: Any) -> BanditVectorEnv:
    mode = "vector_entry_point"
    env = gymnasium.make_vec(name, batch, vectorization_mode=mode, **parameters)
    assert isinstance(env, BanditVectorEnv)
    return env


def check_long_episode(env: Any) -> NDArray[np.float64]:
    """Play `LONG` steps, check every observation, and return the rewards."""
    space = env.observation_space
    observation, _ = env.reset(seed=SEED)
    assert space.contains(observation)
    rewards, last = [], -1.0
    for t, action in enumerate(actions_for(env, LONG), start=1):
        observation, reward, _, truncated, info = env.step(action)
        assert observation.dtype == np.float32
        assert space.contains(observation)
        assert observation[..., 0].min() > last  # single precision still tells the steps apart
        last = observation[..., 0].max()
        shown = np.clip(reward, -1e12, 1e12).astype(np.float32)
        np.testing.assert_array_equal(observation[..., -1], shown)
        assert np.all(truncated) == np.any(truncated) == (t == LONG)
        rewards.append(reward)
    assert last == 1.0
    assert np.all(info["t"] == LONG)
    assert np.isfinite(info["cumulative_regret"]).all()
    return np.array(rewards, float)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "bound", "low", "high"),
    [(SYNTHETIC[0], None, 0.5, 30.0), (SYNTHETIC[1], 1e9, 1e7, 1.1e9)],
)
def test_ten_thousand_steps(
    name: str, bound: float | None, low: float, high: float, make_env: Make
) -> None:
    rewards = check_long_episode(make_env(name, horizon=LONG, norm_bound=bound))
    assert low < np.abs(rewards).max() < high


@pytest.mark.slow
def test_ten_thousand_steps_of_a_box(make_env: Make) -> None:
    check_long_episode(make_env("WGPBandit-Abrupt-v0", horizon=LONG, continuous=True, dim=2,
                                points_per_dim=6))  # fmt: skip


@pytest.mark.slow
def test_ten_thousand_steps_of_a_vector_environment() -> None:
    rewards = check_long_episode(make_vector("WGPBandit-Abrupt-v0", 2, horizon=LONG))
    assert rewards.shape == (LONG, 2)


@pytest.mark.slow
@pytest.mark.parametrize("huge", [-1e9, 1e14])
def test_ten_thousand_rows_with_a_huge_one(huge: float, make_env: Make, tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((LONG, 3))
    values[LONG // 2] = huge
    rows = [",".join(map(str, [t, *row])) for t, row in enumerate(values.tolist())]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["time,a,b,c", *rows]) + "\n", encoding="utf-8")
    env = make_env("WGPBandit-Table-v0", table=str(path), kernel="se", noise_std=0.0)
    assert env.problem.horizon == LONG
    rewards = check_long_episode(env)
    assert rewards[LONG // 2] == pytest.approx(huge, rel=1e-6)
    rest = np.delete(rewards, LONG // 2)
    assert rest.min() > -1e-6
    assert rest.max() < 1.0 + 1e-6


def zero_dimensional(arm: int) -> NDArray[Any]:
    return np.array(arm, np.int64)


@pytest.mark.parametrize("form", [int, np.int32, np.int64, np.uint8, zero_dimensional])
def test_every_form_of_an_arm_gives_the_same(
    environment_id: str, make_env: Make, form: Callable[[int], Any]
) -> None:
    env, twin = (make_env(environment_id, **as_arms(environment_id)) for _ in range(2))
    np.testing.assert_equal(env.reset(seed=SEED), twin.reset(seed=SEED))
    for arm in (3, 0, 9):
        found, expected = env.step(form(arm)), twin.step(arm)
        np.testing.assert_equal(found, expected)
        assert found[0].shape == expected[0].shape
        assert [type(one) for one in found] == [type(one) for one in expected]
        for key, value in found[4].items():
            assert type(value) is type(expected[4][key]), key


@pytest.mark.parametrize("form", [list, tuple, np.int32, np.uint8])
def test_every_form_of_the_arms_of_a_batch_gives_the_same(environment_id: str, form: Any) -> None:
    env, twin = (make_vector(environment_id, 2, **as_arms(environment_id)) for _ in range(2))
    env.reset(seed=SEED)
    twin.reset(seed=SEED)
    for arms in ([3, 0], [9, 7]):
        given = form(arms) if form in (list, tuple) else np.array(arms, form)
        np.testing.assert_equal(env.step(given), twin.step(np.array(arms)))


@pytest.mark.parametrize("form", [list, tuple, np.float64, np.float32])
@pytest.mark.parametrize("name", SYNTHETIC)
def test_every_form_of_a_point_gives_the_same(name: str, make_env: Make, form: Any) -> None:
    env, twin = make_env(name, continuous=True), make_env(name, continuous=True)
    env.reset(seed=SEED)
    twin.reset(seed=SEED)
    for x in (0.1, 1 / 3, 1.0):
        given = form([x]) if form in (list, tuple) else np.array([x], form)
        np.testing.assert_equal(env.step(given), twin.step(np.array([x], np.float32)))


BAD_ARMS: tuple[Any, ...] = (
    [3],
    3.0,
    np.float64(3.0),
    1.5,
    np.nan,
    -1,
    True,
    np.True_,
    None,
    "3",
    3j,
    [],
    {},
)
BAD_POINTS = [0.5, [[0.5]], [0.5, 0.5], [-0.1], [1.1], [np.nan], [np.inf], None, ["x"], []]


def check_twin(env: BanditEnv, twin: BanditEnv, bad: list[Any], match: str) -> None:
    """Check that refused actions change nothing, at the start, midway and at the end."""
    np.testing.assert_equal(env.reset(seed=SEED), twin.reset(seed=SEED))
    actions = actions_for(twin, HORIZON)
    for action in actions:
        for wrong in bad:
            with pytest.raises(ValueError, match=match):
                env.step(wrong)
        assert env.render() == twin.render()
        np.testing.assert_array_equal(env.expected_rewards(), twin.expected_rewards())
        np.testing.assert_equal(env.step(action), twin.step(action))
    with pytest.raises(ResetNeeded):
        env.step(actions[0])
    np.testing.assert_equal(env.reset(), twin.reset())
    np.testing.assert_equal(env.step(actions[0]), twin.step(actions[0]))


def test_a_refused_arm_changes_nothing(environment_id: str, make_env: Make) -> None:
    kind = {"horizon": HORIZON, "render_mode": "ansi", **as_arms(environment_id)}
    env, twin = (make_env(environment_id, **kind) for _ in range(2))
    n = int(env.action_space.n)  # type: ignore[attr-defined]
    bad = [*BAD_ARMS, n, np.array(n), np.array([3])]
    check_twin(env, twin, bad, "The action must be in Discrete")


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_refused_point_changes_nothing(name: str, make_env: Make) -> None:
    env, twin = (
        make_env(name, horizon=HORIZON, continuous=True, render_mode="ansi") for _ in range(2)
    )
    check_twin(env, twin, BAD_POINTS, "The action must be in Box")


def test_refused_arms_of_a_batch_change_nothing(environment_id: str) -> None:
    kind = {"horizon": HORIZON, **as_arms(environment_id)}
    env, twin = (make_vector(environment_id, 2, **kind) for _ in range(2))
    env.reset(seed=SEED)
    twin.reset(seed=SEED)
    for step, action in enumerate(actions_for(twin, 2 * HORIZON + 2), start=1):
        if step % (HORIZON + 1):  # the step between two episodes ignores its actions
            for wrong in (0, [0], [0, -1], [0, 10**6], [0.0, 1.0], [True, False], None, [[0, 0]]):
                with pytest.raises(ValueError, match="The action must be in MultiDiscrete"):
                    env.step(wrong)
        np.testing.assert_equal(env.step(action), twin.step(action))


def drawn_numbers(steps: list[Step]) -> list[tuple[float, float]]:
    """Return rewards and optima: where rewards are 0 or 1, they alone may well be the same."""
    return [(step[1], step[4]["optimal_reward"]) for step in steps]


def test_reset_without_a_seed_never_seeds_anew(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    env = make_env(name, horizon=HORIZON, **parameters)
    env.reset(seed=SEED)
    generator = env.np_random
    begun = []
    for _ in range(4):
        env.reset(seed=None)
        assert env.np_random is generator
        assert env.np_random_seed == SEED
        begun.append(drawn_numbers(play(env, 2)))
    assert all(one != other for one, other in itertools.combinations(begun, 2))


@pytest.mark.parametrize("played", [0, HORIZON])
def test_the_second_episode_knows_the_first_seed_only(
    variant: Variant, make_env: Make, played: int
) -> None:
    name, parameters = variant
    env, twin = (make_env(name, horizon=HORIZON, **parameters) for _ in range(2))
    other = make_env(name, horizon=HORIZON, **parameters)
    for one in (env, twin, other):
        one.reset(seed=SEED + (one is other))
    play(env, played, seed=2)
    play(twin, 3, seed=3)
    env.observation_space.sample()
    env.action_space.seed(9)
    second = [env.reset(), *play(env, HORIZON)]
    np.testing.assert_equal(second, [twin.reset(), *play(twin, HORIZON)])
    other.reset()
    assert drawn_numbers(play(other, HORIZON)) != drawn_numbers(second[1:])


@pytest.mark.parametrize("played", [0, 1, HORIZON])
def test_the_second_episodes_of_a_batch_know_the_first_seed_only(
    environment_id: str, played: int
) -> None:
    env, twin = (make_vector(environment_id, 2, horizon=HORIZON) for _ in range(2))
    env.reset(seed=SEED)
    twin.reset(seed=SEED)
    play(env, played, seed=2)
    begun = play(twin, HORIZON + 1, seed=3)[-1]  # the last of these steps is a reset by itself
    np.testing.assert_equal(env.reset(), (begun[0], begun[4]))
    np.testing.assert_equal(play(env, HORIZON + 3), play(twin, HORIZON + 3))


def made_in_two_ways(name: str, parameters: dict[str, Any]) -> Iterator[Any]:
    yield gymnasium.make(name, horizon=HORIZON, render_mode="ansi", **parameters)
    yield make_vector(name, 2, horizon=HORIZON, render_mode="ansi", **parameters)


def through_pickle(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))


def go_on(env: Any) -> list[Step]:
    return [*play(env, 2, seed=5), env.reset(), *play(env, 1)]


@pytest.mark.parametrize("copied", [copy.deepcopy, through_pickle])
def test_a_copy_goes_on_and_apart(variant: Variant, copied: Callable[[Any], Any]) -> None:
    pairs = zip(made_in_two_ways(*variant), made_in_two_ways(*variant), strict=True)
    for original, reference in pairs:
        for env in (original, reference):
            env.reset(seed=SEED)
            play(env, 2)
        early = copied(original)
        played = go_on(early)  # what a copy plays does not move the original
        late = copied(original)
        assert original.render() == reference.render() == late.render() != early.render()
        expected = go_on(reference)
        for found in (played, go_on(original), go_on(late)):
            np.testing.assert_equal(found, expected)


def unpickle_and_go_on(pickled: list[bytes]) -> list[list[Step]]:
    return [go_on(pickle.loads(data)) for data in pickled]


@pytest.mark.slow
def test_vector_environments_and_boxes_go_on_in_a_spawned_process() -> None:
    envs: list[Any] = [make_vector(entry.id, 2, horizon=HORIZON) for entry in ENVIRONMENTS]
    for name in SYNTHETIC:
        envs += made_in_two_ways(name, {"continuous": True})
    for env in envs:
        env.reset(seed=SEED)
        play(env, 2)
    pickled = [pickle.dumps(env) for env in envs]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(unpickle_and_go_on, pickled).result(timeout=60)
    np.testing.assert_equal(found, [go_on(env) for env in envs])


def global_states() -> tuple[Any, ...]:
    import torch

    legacy = np.random.get_state()  # noqa: NPY002  (the one that must not be touched)
    return random.getstate(), legacy, torch.get_rng_state().numpy()


@pytest.fixture
def untouched() -> Iterator[None]:
    """Fail a test that moves a global generator."""
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = global_states()
    yield
    np.testing.assert_equal(global_states(), before)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("seed", [SEED, None])
def test_environments_touch_no_global_generator(variant: Variant, seed: int | None) -> None:
    for env in made_in_two_ways(*variant):
        env.reset(seed=seed)
        play(env, HORIZON)
        env.render()
        env.reset()


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", by_kind(wgp_agents.names()))
def test_agents_touch_no_global_generator(name: str) -> None:
    for env in (env for env_id in tasks_of(name) for env in made_in_two_ways(env_id, {})):
        observation, _ = env.reset()
        agent = wgp_agents.make(name, env)
        for seed in (SEED, None):
            agent.reset(seed)
            for _ in range(2):
                action = agent.act(observation)
                observation, reward, *_ = env.step(action)
                agent.observe(action, reward)
            agent.predict(observation)


def digest_of_everything() -> str:
    """Return a digest of what environments pay agents: each of both occurs."""
    found = hashlib.sha256()
    pairs = [("WGPBandit-Abrupt-v0", name) for name in wgp_agents.names()]
    for env_id, name in [*pairs, *((entry.id, "wgp-ucb") for entry in ENVIRONMENTS)]:
        env = gymnasium.make(env_id, horizon=HORIZON)
        observation, _ = env.reset(seed=SEED)
        agent = wgp_agents.make(name, env)
        agent.reset(SEED)
        for _ in range(HORIZON):
            action = agent.act(observation)
            observation, reward, _, _, info = env.step(action)
            agent.observe(action, reward)
            found.update(repr([np.asarray(action).tolist(), reward, list(info.items())]).encode())
    return found.hexdigest()


@pytest.mark.slow
def test_the_hash_seed_does_not_matter() -> None:
    program = "import test_gym_robust as t; print(hash('a'), t.digest_of_everything())"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    expected = digest_of_everything()
    (one, first), (two, second) = (run.communicate(timeout=120)[0].split() for run in runs)
    assert one != two
    assert first == second == expected


def test_a_point_is_no_text_and_no_bool() -> None:
    env: Any = gymnasium.make("WGPBandit-Abrupt-v0", continuous=True).unwrapped
    env.reset(seed=0)
    for wrong in ([True], ["0.5"], [1e300]):
        with pytest.raises(ValueError, match="The action must be in Box"):
            env.step(wrong)


@pytest.mark.parametrize("name", ["norm_bound", "noise_std", "variation_budget"])
def test_rewards_stay_within_single_precision(name: str) -> None:
    largest: dict[str, Any] = {name: 1e30}
    env: Any = gymnasium.make("WGPBandit-Abrupt-v0", **largest)
    env.reset(seed=0)
    assert np.isfinite(env.step(0)[1])
    with pytest.raises(ValueError, match=rf"'{name}' .* must be a float in \[0, 1e\+30\]"):
        gymnasium.make("WGPBandit-Abrupt-v0", **{name: 10 * largest[name]})
