"""A trial of an agent: what it is made of, its runs, and the error of a broken contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv, VectorEnv
from numpy.typing import ArrayLike

import wgp_gym  # noqa: F401  (registers its ids)
from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike
from wgp_gym.types import Action, Mask, Observation
from wgp_gym.validation import reject, shown

__all__ = [
    "AGENT_SEED",
    "HORIZON",
    "OTHER_SEED",
    "SEED",
    "STEPS",
    "B",
    "BrokenContract",
    "Run",
    "Trial",
]

STEPS = 12  # of each part of a check
HORIZON = 4 * STEPS
SEED, AGENT_SEED, OTHER_SEED = 7, 40, 90
B = 3  # learners of a batch

Playable = gymnasium.Env[Observation, Action] | VectorEnv[Observation, Action, Action]


class BrokenContract(AssertionError):
    """An agent does otherwise than every agent must."""


@dataclass
class Run:
    """An agent in its environment: the last observation, and the actions so far."""

    env: (
        gymnasium.Env[Observation, Action] | gymnasium.vector.VectorEnv[Observation, Action, Action]
    )
    agent: Agent
    observation: Observation
    actions: list[Action] = field(default_factory=list)

    def step(
        self,
        active: Mask | None = None,
        allowed: Mask | None = None,
        learns: bool = True,
        elapsed: ArrayLike = 1.0,
    ) -> Action:
        """Play one step; return the action."""
        action = self.agent.act(self.observation, allowed=allowed)
        self.observation, reward, *_ = self.env.step(action)
        self.actions.append(action)
        if learns:
            arms = self.agent.arms if self.agent.problem.contextual else None
            self.agent.observe(action, reward, arms=arms, active=active, elapsed=elapsed)
        return action

    def play(self, steps: int = STEPS) -> Run:
        """Play some steps; return this run."""
        for _ in range(steps):
            self.step()
        return self


@dataclass(frozen=True)
class Trial:
    """What is checked: what makes the agent, and on which task, an id and what it is made with."""

    name: str
    made: Callable[[EnvLike], Agent]
    task: str
    kwargs: Mapping[str, object]

    def start(self, batch: int | None = None, i: int = 0) -> Run:
        """Return a run at its beginning: of a batch, or of the single learner that is its i-th."""
        env = self.environment(batch)
        observation, _ = env.reset(seed=SEED + i)
        agent = self.made(env)
        self.require(
            isinstance(agent, Agent),
            f"What is made is a {type(agent).__name__}.",
            "an agent is a subclass of wgp_agents.Agent, made from an environment",
        )
        horizon = agent.problem.known_horizon("check_agent")
        if horizon < HORIZON:
            rule = f"such that an episode has at least {HORIZON} steps"
            reject("kwargs", "check_agent", rule, horizon)
        agent.reset(AGENT_SEED + i)
        return Run(env, agent, observation)

    def environment(self, batch: int | None) -> Playable:
        """Return the environment, single or of a batch."""
        one: Callable[..., Playable] = gymnasium.make
        many: Callable[..., Playable] = gymnasium.make_vec
        if batch is None:
            return one(self.task, **self.kwargs)
        if gymnasium.spec(self.task).vector_entry_point:
            mode = "vector_entry_point"
            return many(self.task, num_envs=batch, vectorization_mode=mode, **self.kwargs)
        # Unlike those of `make_vec`, these can be pickled.
        return SyncVectorEnv([partial(gymnasium.make, self.task, **self.kwargs)] * batch)  # type: ignore[arg-type]

    def singles(self) -> list[Run]:
        """Return the single learners of a batch of B at their beginning."""
        return [self.start(None, i) for i in range(B)]

    def require(self, holds: bool, fault: str, rule: str) -> None:
        """Raise the error of a broken contract unless something holds."""
        if not holds:
            raise BrokenContract(f"{self.name}: {fault} The contract: {rule}.")

    def alike(self, one: list[Action], other: list[Action], what: str, rule: str) -> None:
        """Check that two lists of actions are the same, but for their types."""
        for t, (mine, expected) in enumerate(zip(one, other, strict=True), start=1):
            found = shown(np.asarray(mine).tolist()), shown(np.asarray(expected).tolist())
            fault = f"{what}: {found[0]} instead of {found[1]} at step {t}."
            self.require(np.array_equal(mine, expected), fault, rule)
