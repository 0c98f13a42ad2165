"""An agent plays the episode that is on, whichever of the two was reset first, or it says so."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import tasks_of
from stable_baselines3.common.vec_env import DummyVecEnv

import wgp_agents
from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.core.checkpoint import Checkpoint
from wgp_agents.core.units import RewardUnits
from wgp_gym.wrappers import HistoryObservation

TASK, STEPS = "WGPBandit-Abrupt-v0", 15
AGENTS: dict[str, dict[str, Any]] = {  # of each way to read an episode's bounds, or the truth
    "wgp-ucb": {"variation_budget": "known"},
    "rexp3": {},
    "adaptive-wgp-ucb": {},
    "oracle": {},
    "oracle-restart": {},
    "oracle-discount": {"discounts": (0.9, 1.0)},
}
every_agent = pytest.mark.parametrize("name", AGENTS)


def single(**parameters: Any) -> Any:
    return gymnasium.make(TASK, **({"horizon": STEPS} | parameters))


def plays(agent: Any, env: Any, observation: Any, steps: int = STEPS) -> Any:
    found = []
    for _ in range(steps):
        found.append(agent.act(observation))
        observation, reward, *_ = env.step(found[-1])
        agent.observe(found[-1], reward)
    return np.array(found)


def by_the_book(name: str, seed: int, agent_seed: int) -> Any:
    env = single()
    observation, _ = env.reset(seed=seed)
    agent = wgp_agents.make(name, env, **AGENTS[name])
    agent.reset(agent_seed)
    return plays(agent, env, observation)


@every_agent
@pytest.mark.parametrize("earlier", [False, True])
def test_the_agent_may_be_reset_first(name: str, earlier: bool) -> None:
    env = single()
    if earlier:  # with other bounds, which it must not go by
        env.reset(seed=3)
    agent: Any = wgp_agents.make(name, env, **AGENTS[name])
    agent.reset(5)
    observation, _ = env.reset(seed=7)
    np.testing.assert_array_equal(plays(agent, env, observation), by_the_book(name, 7, 5))
    assert agent.problem.norm_bound == env.unwrapped.problem.norm_bound
    agent.reset(5)
    observation, _ = env.reset(seed=8)
    np.testing.assert_array_equal(plays(agent, env, observation), by_the_book(name, 8, 5))


@pytest.mark.parametrize("form", ["native", "dummy"])
def test_in_batches(form: str) -> None:
    env: Any = (
        make_vector(TASK, 2, horizon=STEPS) if form == "native" else DummyVecEnv([single] * 2)
    )
    agent = wgp_agents.make("wgp-ucb", env, variation_budget="known")
    agent.reset([5, 6])
    if form == "native":
        env.reset(seed=[7, 8])
    else:
        env.seed(7)
        env.reset()
    for step in range(STEPS):
        action = agent.act()
        reward = env.step(action)[1]
        agent.observe(action, np.asarray(reward, float))
        expected = [by_the_book("wgp-ucb", 7, 5)[step], by_the_book("wgp-ucb", 8, 6)[step]]
        if form == "native" or step < 2:  # stable-baselines3 rounds rewards to single precision
            np.testing.assert_array_equal(action, expected)


def test_only_who_was_reset_begins_anew() -> None:
    """Learner 1 goes on; of learner 0 the state is that of a new one."""
    env: Any = make_vector(TASK, 2, horizon=STEPS)
    env.reset(seed=1)
    agent: Any = wgp_agents.make("wgp-ucb", env)
    agent.reset(1)
    plays(agent, env, None, 3)
    learned = agent.posterior().std[1]
    agent.reset(9, learners=[True, False])
    env.reset(seed=2)
    agent.act()
    std = agent.posterior().std
    np.testing.assert_array_equal(std[1], learned)
    assert std[0].min() == std[0].max() == 1.0


def test_predict_keeps_the_seed_of_an_early_reset() -> None:
    found = []
    for early in (False, True):
        env = single()
        agent: Any = wgp_agents.make("random", env)
        if early:
            agent.reset(4)
        observation, _ = env.reset(seed=7)
        if not early:
            agent.reset(4)
        found.append([int(agent.predict(observation)[0]) for _ in range(8)])
    assert found[0] == found[1]
    env = single()
    agent = wgp_agents.make("wgp-ucb", env)
    agent.reset(4)
    observation, _ = env.reset(seed=7)
    assert agent.predict(observation)[0] == by_the_book("wgp-ucb", 7, 4)[0]


def test_what_was_loaded_is_not_begun_anew() -> None:
    env = single()
    env.reset(seed=1)
    taught: Any = wgp_agents.make("wgp-ucb", env)
    taught.reset(1)
    plays(taught, env, None, 5)
    other: Any = wgp_agents.make("wgp-ucb", env)
    other.reset(2)
    other.load_state_dict(taught.state_dict())
    checkpoint = Checkpoint(taught)
    taught.reset(3)
    checkpoint.restore()
    env.reset(seed=2)  # other bounds
    for agent in (other, taught):
        agent.act()
        np.testing.assert_array_equal(agent.posterior().mean, taught.posterior().mean)
        assert np.ptp(agent.posterior().std) > 0


@every_agent
def test_another_environment_of_the_same_task(name: str) -> None:
    """Without `bind` the first one's bounds are used: an observation cannot tell."""
    first, second = single(), HistoryObservation(single(), 3)
    first.reset(seed=1)
    agent: Any = wgp_agents.make(name, first, **AGENTS[name])
    agent.reset(1)
    plays(agent, first, None, 2)
    agent.bind(second)
    observation, _ = second.reset(seed=7)
    agent.reset(5)
    np.testing.assert_array_equal(plays(agent, second, observation), by_the_book(name, 7, 5))
    observation, _ = second.reset(seed=7)
    agent.reset(5)
    assert int(agent.predict(observation)[0]) == by_the_book(name, 7, 5)[0]  # in its wrappers


@pytest.mark.parametrize(
    ("other", "match"),
    [
        ({"horizon": 20}, "'env' .* of WGPUCB.bind .* with 'horizon' 15. Got 20"),
        ({"lengthscale": 0.1}, "'kernel' .* when WGPUCB was made"),
        ({"points_per_dim": 30}, "'env' .* of WGPUCB.bind .* with 'domain'"),
        ({"noise_std": 0.5}, "'noise_scale' .* when WGPUCB was made"),
        ({"continuous": True}, "'env' .* of WGPUCB.bind .* with 'continuous' False. Got True"),
    ],
)
def test_another_task_is_refused(other: dict[str, Any], match: str) -> None:
    env = single()
    env.reset(seed=1)
    agent = wgp_agents.make("wgp-ucb", env)
    with pytest.raises(ValueError, match=match):
        agent.bind(single(**other))
    with pytest.raises(ValueError, match=r"with 'batch_size' None. Got 1"):
        agent.bind(make_vector(TASK, 1, horizon=STEPS))
    with pytest.raises(TypeError, match="oracle needs an environment"):
        wgp_agents.make("oracle", env).bind(agent.problem)
    agent.reset(1)
    agent.act()


def test_who_was_reset_before_begins_on_the_other_one() -> None:
    first, second = single(norm_bound=50.0), single()
    first.reset(seed=1)
    agent: Any = wgp_agents.make("wgp-ucb", first, variation_budget="known")
    agent.reset(5)
    agent.bind(second)
    second.reset(seed=7)
    np.testing.assert_array_equal(plays(agent, second, None), by_the_book("wgp-ucb", 7, 5))


def test_the_remedies_of_what_was_not_drawn() -> None:
    env = single(told="law")
    env.reset(seed=1)
    agent = wgp_agents.make("rexp3", env)
    agent.reset(1)
    with pytest.raises(RuntimeError, match=r'told="drawn", state it in the problem, or give'):
        agent.act()


def test_wrappers_are_read_anew() -> None:
    env = single()
    env.reset(seed=1)
    agent: Any = wgp_agents.make("wgp-ucb", env)
    agent.bind(gymnasium.wrappers.TransformReward(single(), lambda paid: 2 * float(paid)))
    agent.reset(1)
    agent.bind(env)
    agent.reset(1)
    agent.observe(1, 0.1)
    agent.bind(gymnasium.wrappers.TransformReward(env, lambda paid: 2 * float(paid)))
    agent.reset(1)
    with pytest.warns(RewardUnits, match="TransformReward changes the rewards"):
        agent.observe(1, 0.1)


def test_every_agent_may_be_reset_first() -> None:
    """With the bounds of another episode before, or of none, it plays as by the book."""
    for name in wgp_agents.names():
        task = tasks_of(name)[0]
        found = []
        for order in ("book", "early", "late"):
            env = gymnasium.make(task, horizon=6)
            agent = wgp_agents.make(name, env)
            if order == "late":
                env.reset(seed=3)
            if order != "book":
                agent.reset(5)
            observation, _ = env.reset(seed=7)
            if order == "book":
                agent.reset(5)
            found.append(plays(agent, env, observation, 6).tolist())
        assert found[0] == found[1] == found[2], name
