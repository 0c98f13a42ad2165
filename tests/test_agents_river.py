"""Our agents as policies of river: they play there what they play in our own rollout."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import LEARNERS, by_kind, takers

import wgp_agents
from wgp_agents import WGPUCB
from wgp_agents.benchmark.river import KeepRegret, RiverPolicy
from wgp_agents.benchmark.rollout import Rollout, make_vector, rollout
from wgp_agents.core.units import RewardUnits
from wgp_agents.gp.agent import GPAgent
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem

ABRUPT = "WGPBandit-Abrupt-v0"


def river_seeds(seed: int, episodes: int) -> list[int]:
    """Return the seeds of river's episodes: between two of them it draws one for the arms."""
    draws = random.Random(seed)
    return [(draws.randint(0, 2**32), draws.randint(0, 2**32 - 1))[0] for _ in range(episodes)]


def ours(name: str, env: Any, seeds: list[int], agent_seed: int, **options: Any) -> list[Rollout]:
    """Return our own episodes, each with a learner that starts anew."""
    env.reset(seed=0)
    agent = wgp_agents.make(name, env, **options)
    return [rollout(agent, env, seed, agent_seed) for seed in seeds]


@pytest.mark.parametrize("name", by_kind(LEARNERS))
def test_every_agent_plays_in_river_as_in_rollout(name: str) -> None:
    bandit = pytest.importorskip("river.bandit")
    options = {"variation_budget": "known"} if name in takers("variation_budget") else {}
    bare = gymnasium.make(ABRUPT, horizon=25, norm_bound=5.0, variation_budget=4.0)
    env = KeepRegret(bare)
    policies = [RiverPolicy(name, env, seed, **options) for seed in (3, 4)]
    trace = list(bandit.evaluate(policies, env, n_episodes=3, seed=5))
    regrets = np.reshape(env.regrets, (3, 2))
    for i, seed in enumerate((3, 4)):
        played = ours(name, bare, river_seeds(seed=5, episodes=3), seed, **options)
        for episode, one in enumerate(played):
            rows = [s for s in trace if (s["episode"], s["policy_idx"]) == (episode, i)]
            assert [row["arm"] for row in rows] == one["action"][0].tolist()
            assert [row["reward"] for row in rows] == one["reward"][0].tolist()
            assert regrets[episode, i] == one["cumulative_regret"][0, -1]
    assert all(len(np.unique(column)) == 3 for column in regrets.T)  # in other episodes


def test_river_replays_a_log_whose_arms_have_names() -> None:
    bandit = pytest.importorskip("river.bandit")
    env = gymnasium.make(ABRUPT, points_per_dim=3, horizon=30, norm_bound=5.0)
    names, draws = ["left", "middle", "right"], random.Random(1)
    pays = dict(zip(names, (0.0, 2.0, 0.5), strict=True))
    log = [(names, None, name, pays[name]) for name in draws.choices(names, k=300)]
    policy = RiverPolicy("wgp-ucb", env, seed=1, discount=0.99)
    total, used = bandit.evaluate_offline(policy, log)
    alone = wgp_agents.make("wgp-ucb", policy.agent.problem, discount=0.99)
    alone.reset(1)
    taken = []
    for _, _, name, reward in log:  # the replay shows the learner the rows that it agrees with
        arm = alone.act()
        if names[arm] == name:
            alone.observe(arm, reward)
            taken.append(reward)
    assert used == len(taken)
    assert total.get() == pytest.approx(sum(taken))
    assert np.mean(taken) > 1.5


def test_a_clone_has_learned_nothing() -> None:
    env = gymnasium.make(ABRUPT, horizon=20, norm_bound=5.0)
    policy = RiverPolicy(WGPUCB, env, 2, discount=0.9)
    first = policy.pull(range(100))
    policy.update(first, 3.0)
    agent, fresh = policy.agent, policy.clone().agent
    assert isinstance(agent, WGPUCB)
    assert isinstance(fresh, WGPUCB)
    assert agent.posterior().mean[int(str(first))] > 1
    assert not fresh.posterior().mean.any()
    assert policy.clone().pull(range(100)) == first


@pytest.mark.parametrize("options", [{"continuous": True}, {"num_envs": 2}])
def test_what_river_cannot_play(options: dict[str, Any]) -> None:
    make: Any = make_vector if "num_envs" in options else gymnasium.make
    batch = [options.pop("num_envs")] if "num_envs" in options else []
    message = "The 'env' parameter of RiverPolicy must be a single environment of wgp_gym with arms"
    with pytest.raises(ValueError, match=message):
        RiverPolicy("random", make(ABRUPT, *batch, **options))


def test_other_errors() -> None:
    env = gymnasium.make(ABRUPT, horizon=20)
    env.reset(seed=0)  # this episode's B says nothing of those that river draws
    with pytest.raises(RuntimeError, match="give the agent a 'norm_bound'"):
        RiverPolicy("wgp-ucb", env)
    with pytest.raises(TypeError, match="An oracle needs an environment"):
        RiverPolicy("oracle", env)
    policy = RiverPolicy("wgp-ucb", env, norm_bound=5.0)
    arm = policy.pull(np.arange(100))
    policy.update(arm, 1.0)
    with pytest.raises(ValueError, match=r"'arm_id' parameter of RiverPolicy\.update must be one"):
        policy.update(100, 1.0)
    with pytest.raises(ValueError, match="must be different names of 100 arms"):
        policy.clone().pull(range(99))
    with pytest.raises(ValueError, match="must be different names of 100 arms"):
        policy.clone().pull([1] * 100)
    with pytest.raises(ValueError, match="must be the same arms as before"):
        policy.pull(range(1, 101))
    contextual = gymnasium.make("WGPBandit-LinearContextual-v0", horizon=20)
    with pytest.raises(ValueError, match="one whose arms stay the same"):
        RiverPolicy("lin-ucb", contextual, norm_bound=1.0)


def test_an_arm_keeps_its_name_whatever_the_order_in_which_it_is_offered() -> None:
    problem = BanditProblem(Empirical(np.eye(3)), np.linspace(0, 1, 3)[:, None], 50, 0.1, 1.0)
    policy = RiverPolicy("igp-ucb", problem, seed=1)
    policy.pull(["left", "middle", "right"])
    policy.update("right", 3.0)
    policy.pull(["right", "middle", "left"])
    policy.update("right", 3.0)  # late: it was offered in another order since
    assert isinstance(policy.agent, GPAgent)
    mean = policy.agent.posterior().mean
    assert mean[2] > 1
    assert mean[:2].tolist() == [0, 0]


def test_wrappers_are_read() -> None:
    env = gymnasium.make("WGPBandit-ArmsAbrupt-v0")
    with pytest.raises(ValueError, match=r"'env' parameter of RiverPolicy .*'StickyAction'"):
        RiverPolicy("ucb1", gymnasium.wrappers.StickyAction(env, 0.5))
    shifted = gymnasium.wrappers.TransformReward(env, lambda paid: float(paid) + 50.0)
    with pytest.warns(RewardUnits, match="TransformReward changes the rewards") as caught:
        RiverPolicy("ucb1", shifted).clone()
    assert [one.filename for one in caught] == [__file__]
