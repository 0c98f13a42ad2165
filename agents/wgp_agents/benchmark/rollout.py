"""Playing an agent in an environment, and keeping what a scorer wants to know."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from wgp_agents.base import Agent
from wgp_agents.benchmark.accepted import environment_spec
from wgp_agents.core.access import truth_reader
from wgp_agents.evaluation import act, all_over
from wgp_agents.late_rewards import LateRewards
from wgp_gym.types import Array
from wgp_gym.validation import reject, seed_list

__all__ = ["RECORDED", "Rollout", "make_vector", "rollout"]

RECORDED = (
    "expected_reward",
    "optimal_reward",
    "optimal_action",
    "regret",
    "cumulative_regret",
    "variation",
    "sup_variation",
    "changed",
)
"""What is kept of each step's info, beside action and reward."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """One whole episode of each of B learners, in arrays labelled by run and step.

    Attributes:
        agent: The agent's class.
        environment: The environment's id.
        seeds: The environment's seed of each run, B of them; None where it was not given.
        norm_bounds: B of each run's episode, `(B,)`.
        variation_budgets: B_T of each run's episode, `(B,)`.
        steps: "action", "reward" and the names in `RECORDED`, each `(B, T)` (actions of a box
            `(B, T, d)`): the value at run i and step t stands at [i, t - 1]. Fewer than T
            columns where a wrapper, as `TimeLimit`, has ended the episode earlier.
    """

    agent: str
    environment: str
    seeds: list[int | None]
    norm_bounds: Array
    variation_budgets: Array
    steps: dict[str, NDArray[Any]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.steps[name]


def make_vector(environment: str, batch: int, **kwargs: Any) -> Any:
    """Return a vector environment of B sub-environments, made with `kwargs`.

    Args:
        environment: An id, or "module:id". Of one that has no vector environment of its own, B
            single ones are stepped one by one.
        batch: B.
        **kwargs: What the sub-environments are made with.
    """
    mode = "vector_entry_point" if environment_spec(environment).vector_entry_point else "sync"
    return gymnasium.make_vec(environment, num_envs=batch, vectorization_mode=mode, **kwargs)


def rollout(
    agent: Agent,
    env: Any,
    seed: int | Sequence[int] | None = None,
    agent_seed: int | Sequence[int] | None = None,
) -> Rollout:
    """Play one episode from its start to its end, that of the task or, if earlier, of a wrapper.

    Where arms come and go, an agent that takes a mask keeps to those that are there.
    Of rewards that come late (`wgp_gym.wrappers.DelayedRewards`) the agent is told when they
    arrive; the "reward" of a step in what is returned is that of its play all the same.

    Args:
        agent: The agent, made for `env`.
        env: An environment of `wgp_gym`, or a vector environment, whose episodes end together.
        seed: The environment's seed; with a vector environment s stands for s, s + 1, ..., and
            a sequence gives each sub-environment its own.
        agent_seed: The agent's seed, likewise; default: the environment's.

    Returns:
        The episode, of as many steps as were played. Its arrays have a first axis of length 1
        with a single environment. Actions are those that `env` was given.

    Raises:
        ValueError: If sub-environments end at different steps, the episode goes on beyond the
            problem's T, or an info lacks what is recorded.
    """
    observation, info = env.reset(seed=seed)
    agent.reset(seed if agent_seed is None else agent_seed)
    horizon, played = agent.problem.known_horizon("rollout"), 0
    steps: dict[str, NDArray[Any]] = {}
    over, rewards = False, LateRewards(agent)
    while not over and played < horizon:
        action = act(agent, observation, info)
        observation, reward, terminated, truncated, info = env.step(action)
        rewards.observe(action, reward, info)
        # Where the step that ends an episode begins the next one, it keeps the old one's info.
        shown = {"action": action, "reward": reward} | info.get("final_info", info)
        if not played:
            if not shown.keys() >= set(RECORDED):
                reject("info", "rollout", f"a dict with {', '.join(RECORDED)}", sorted(shown))
            steps = {name: room(shown[name], horizon) for name in ("action", "reward", *RECORDED)}
        for name, values in steps.items():
            values[played] = shown[name]
        played += 1
        over = all_over(terminated, truncated)
    if not over:
        rule = f"one whose episodes end by the {horizon} steps that its problem tells"
        reject("env", "rollout", rule, env)
    steps = {name: values[:played] for name, values in steps.items()}
    return Rollout(
        agent=type(agent).__name__,
        environment=env.spec.id if env.spec else type(env.unwrapped).__name__,
        seeds=seed_list(seed, agent.num_learners),
        norm_bounds=amounts("norm_bound", agent, env),
        variation_budgets=amounts("variation_budget", agent, env),
        steps={
            name: np.swapaxes(values, 0, 1) if agent.batched else values[None]
            for name, values in steps.items()
        },
    )


def amounts(name: str, agent: Agent, env: Any) -> Array:
    """Return B or B_T of each run, `(B,)`, also where the environment does not tell learners.

    NaN where nobody says.
    """
    told = getattr(agent.problem, name)
    if told is None:
        with contextlib.suppress(AttributeError):  # an environment that is not ours
            told = truth_reader(env, f"drawn_{name}")()
    return np.broadcast_to(np.ravel(np.asarray(told, float)), agent.num_learners).copy()


def room(value: Any, horizon: int) -> NDArray[Any]:
    """Return an array with room for one such value at every step, step first."""
    first = np.asarray(value)
    return np.empty((horizon, *first.shape), first.dtype)
