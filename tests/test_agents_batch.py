"""A batch of B learners is B single learners, bit for bit, whatever B is."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import agent_class

ABRUPT = "WGPBandit-Abrupt-v0"
SEED, STEPS = 11, 40
FORGETTING: dict[str, dict[str, Any]] = {
    "wgp-ucb": {"discount": 0.9},
    "sw-gp-ucb": {"window": 9},
    "r-gp-ucb": {"restart_period": 13},
}
GAUSSIAN_PROCESSES = [name for name in wgp_agents.names() if issubclass(agent_class(name), GPAgent)]

every_agent = pytest.mark.parametrize("name", wgp_agents.names())


def play(name: str, env: Any, seed: Any, env_seed: Any, **parameters: Any) -> list[NDArray[Any]]:
    """Return the actions, rewards and, at the end, the posterior and the gain of a run."""
    env.reset(seed=env_seed)
    agent = wgp_agents.make(name, env, **parameters)
    agent.reset(seed)
    actions, rewards = [], []
    for _ in range(STEPS):
        actions.append(agent.act())
        rewards.append(env.step(actions[-1])[1])
        agent.observe(actions[-1], rewards[-1])
    result = [np.array(actions), np.array(rewards)]
    if isinstance(agent, GPAgent):
        result += [*agent.posterior(), np.array(agent.information_gain())]
    return result


@functools.cache
def single(name: str, env_id: str, i: int, options: tuple[tuple[str, Any], ...]) -> Any:
    """Return the run of the single learner reset(SEED + 100 + i) on episode SEED + i."""
    env = gymnasium.make(env_id, **dict(options))
    return play(name, env, SEED + 100 + i, SEED + i, **FORGETTING.get(name, {}))


def check_learner(i: int, batch: list[NDArray[Any]], alone: list[NDArray[Any]]) -> None:
    """Check that learner i of a batch did what the single one did, to the last bit."""
    columns = [batch[0][:, i], batch[1][:, i], *(array[i] for array in batch[2:])]
    for one, other in zip(columns, alone, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("env_id", "options", "batch"),
    [
        pytest.param(ABRUPT, (), 1, id="abrupt-1"),
        pytest.param(ABRUPT, (), 2, id="abrupt-2"),
        pytest.param(ABRUPT, (), 3, id="abrupt-3"),
        pytest.param(ABRUPT, (), 100, id="abrupt-100"),
        pytest.param("WGPBandit-Slow-v0", (("kernel", "matern"), ("nu", 0.5)), 3, id="matern-3"),
        pytest.param("WGPBandit-Stock-v0", (), 3, id="stock-3"),
        pytest.param("WGPBandit-Parking-v0", (), 3, id="parking-3"),
    ],
)
@every_agent
def test_learner_i_is_the_single_learner(
    name: str, env_id: str, options: tuple[tuple[str, Any], ...], batch: int
) -> None:
    env = gymnasium.make_vec(
        env_id, num_envs=batch, vectorization_mode="vector_entry_point", **dict(options)
    )
    run = play(name, env, SEED + 100, SEED, **FORGETTING.get(name, {}))
    for i in range(batch):
        check_learner(i, run, single(name, env_id, i, options))


PARAMETERS: list[tuple[str, str, list[Any]]] = [
    ("wgp-ucb", "discount", [0.5, 1.0, 0.95]),
    ("sw-gp-ucb", "window", [1, 7, np.inf]),
    ("r-gp-ucb", "restart_period", [1, 9, np.inf]),
    ("wgp-ucb", "variation_budget", [0.0, 100.0, 3.0]),
    ("sw-gp-ucb", "variation_budget", [0.0, 100.0, 30.0]),
    ("r-gp-ucb", "information_gain", [0.1, 1.0, 10.0]),
]
for agent_name in GAUSSIAN_PROCESSES:
    PARAMETERS += [
        (agent_name, "delta", [0.01, 0.1, 0.9]),
        (agent_name, "norm_bound", [0.0, 1.0, 30.0]),
        (agent_name, "confidence_width", [5.0, 0.0, 1.0]),
        (agent_name, "noise_scale", [0.01, 0.1, 1.0]),
        (agent_name, "regularization", [1e-6, 1.0, 100.0]),
    ]


@pytest.mark.parametrize(
    ("name", "parameter", "values"), PARAMETERS, ids=[f"{row[0]}-{row[1]}" for row in PARAMETERS]
)
def test_each_learner_has_its_own_parameters(name: str, parameter: str, values: list[Any]) -> None:
    env = gymnasium.make_vec(ABRUPT, num_envs=3, vectorization_mode="vector_entry_point")
    same: dict[str, Any] = {parameter: values[0]}
    runs = [play(name, env, 5, SEED, **{parameter: given}) for given in (values, np.array(values))]
    for i in range(3):
        own: dict[str, Any] = {parameter: values[i]}
        alone = play(name, gymnasium.make(ABRUPT), 5 + i, SEED + i, **own)
        check_learner(i, runs[0], alone)
        check_learner(i, runs[1], alone)
        if i:  # and the parameter matters
            other = play(name, gymnasium.make(ABRUPT), 5 + i, SEED + i, **same)
            assert not np.array_equal(alone[2], other[2])


def test_the_number_of_features_is_each_learners_own() -> None:
    # With this lengthscale the smallest lambda asks for 73 features, the others for 62; from 65
    # on another program does the work, and rounds in its own way.
    options: dict[str, Any] = {"lengthscale": 0.04}
    env = gymnasium.make_vec(ABRUPT, num_envs=3, vectorization_mode="vector_entry_point", **options)
    ridges = [1e-6, 1.0, 100.0]
    run = play("wgp-ucb", env, 5, SEED, regularization=ridges)
    for i, ridge in enumerate(ridges):
        single_env = gymnasium.make(ABRUPT, **options)
        check_learner(i, run, play("wgp-ucb", single_env, 5 + i, SEED + i, regularization=ridge))


@every_agent
def test_a_list_gives_each_learner_its_seed(name: str) -> None:
    env = gymnasium.make_vec(ABRUPT, num_envs=3, vectorization_mode="vector_entry_point")
    run = play(name, env, [8, 8, 2], [SEED, SEED, SEED + 1])
    for i, (seed, env_seed) in enumerate([(8, SEED), (8, SEED), (2, SEED + 1)]):
        check_learner(i, run, play(name, gymnasium.make(ABRUPT), seed, env_seed))


@every_agent
def test_there_is_a_seed_for_each_learner(name: str) -> None:
    env = gymnasium.make_vec(ABRUPT, num_envs=3, vectorization_mode="vector_entry_point")
    env.reset(seed=0)
    agent = wgp_agents.make(name, env)
    with pytest.raises(ValueError, match=r"There must be 3 seeds. Got 2 instead\."):
        agent.reset([1, 2])


@every_agent
def test_gymnasiums_own_vector_environments_serve_as_well(name: str) -> None:
    native = gymnasium.make_vec(ABRUPT, num_envs=3, vectorization_mode="vector_entry_point")
    sync = gymnasium.make_vec(ABRUPT, num_envs=3, vectorization_mode="sync")
    for one, other in zip(play(name, native, 5, SEED), play(name, sync, 5, SEED), strict=True):
        np.testing.assert_array_equal(one, other)


def test_environments_in_other_processes_serve_as_well() -> None:
    native = gymnasium.make_vec(ABRUPT, num_envs=2, vectorization_mode="vector_entry_point")
    far = gymnasium.make_vec(
        ABRUPT, num_envs=2, vectorization_mode="async", vector_kwargs={"context": "spawn"}
    )
    try:
        for name in ("oracle", "wgp-ucb"):
            options: dict[str, Any] = {"variation_budget": "known"} if name == "wgp-ucb" else {}
            here, there = (play(name, env, 5, SEED, **options) for env in (native, far))
            for one, other in zip(here, there, strict=True):
                np.testing.assert_array_equal(one, other)
    finally:
        far.close()
