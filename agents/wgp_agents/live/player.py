"""An agent that goes through a log of decisions, and learns from its own plays or from all."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Protocol, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from wgp_agents.base import Agent
from wgp_agents.core.checkpoint import Checkpoint
from wgp_agents.core.observation import observation_of
from wgp_agents.live.decisions import Context, Decisions
from wgp_agents.live.learner import draws_of
from wgp_gym.types import Action, Array, Indices, Mask, Observation
from wgp_gym.validation import reject

__all__ = ["Ageing", "Learner", "Player", "along_the_log", "own_plays"]


class Learner(Protocol):
    """What is evaluated: any agent with the methods of `wgp_agents.Agent`.

    `allowed` and `arms` are given only where the log, or `features`, says so.
    """

    def reset(self, seed: int | None = None) -> object:
        """Begin anew."""

    def act(self, observation: Observation = None, *, allowed: ArrayLike | None = None) -> Action:
        """Return an arm's index."""

    def observe(self, action: Action, reward: float, *, arms: ArrayLike | None = None) -> None:
        """Learn from a play, its own or another's."""


class Ageing(Learner, Protocol):
    """One for whom time goes by between plays, too."""

    def elapse(self, steps: float) -> None:
        """Let so many steps of the world go by."""

    def observe(
        self,
        action: Action,
        reward: float,
        *,
        arms: ArrayLike | None = None,
        elapsed: float = 1.0,
    ) -> None:
        """Learn from a play, with which so many steps go by."""


class Player:
    """An agent that goes through the rows of a log."""

    def __init__(
        self,
        agent: Learner,
        rows: Decisions,
        features: Callable[[Context], ArrayLike] | None,
        seed: int,
        told_as: Callable[[float], float] = float,
    ) -> None:
        if features is not None and rows.contexts is None:
            reject("features", "replay", "left out: the log has no 'context...' columns", features)
        if rows.elapsed is not None and not hasattr(agent, "elapse"):
            name = type(agent).__name__
            reject("timescale", "replay", f"left out: {name} has no method 'elapse'", agent)
        self.agent = agent
        self.before: Learner | Checkpoint | None = None
        self._seed, self._told_as = seed, told_as
        self.rows, self.features = rows, features
        self.arms: Array | None = None
        agent.reset(seed)

    def choose(self, row: int) -> int:
        """Let the time up to a row go by, and return the agent's choice there.

        The agent is kept as it was, for `undo`.
        """
        rows = self.rows
        if rows.elapsed is not None and rows.elapsed[row] > 0:
            cast(Ageing, self.agent).elapse(float(rows.elapsed[row]))
        shown: Observation = None
        if self.features is not None and rows.contexts is not None:
            self.arms = np.asarray(self.features(rows.contexts[row]), float)
            shown = observation_of(self.arms)
        self.before = copied(self.agent)
        if rows.allowed is None:
            return int(self.agent.act(shown))
        return int(self.agent.act(shown, allowed=rows.allowed[row]))

    def undo(self) -> None:
        """Let the agent be as if it had not been asked: its choice was not played."""
        if isinstance(self.before, Checkpoint):
            self.before.restore()
        elif self.before is not None:
            self.agent = self.before

    def draw_anew(self, row: int) -> None:
        """Let the agent draw from other random streams, if it can, so that no draw comes twice."""
        if isinstance(self.agent, Agent):
            self.agent.reseed(draws_of(self._seed, row + 1))

    def learn(self, row: int) -> None:
        """Tell the agent of a row's play."""
        arm, reward = int(self.rows.arms[row]), self._told_as(float(self.rows.rewards[row]))
        if self.rows.elapsed is not None:
            cast(Ageing, self.agent).observe(arm, reward, arms=self.arms, elapsed=0.0)
        elif self.arms is not None:
            self.agent.observe(arm, reward, arms=self.arms)
        else:
            self.agent.observe(arm, reward)


def own_plays(player: Player, rows: Decisions, chances: Array, rng: Generator) -> Mask:
    """Return which rows the agent that learns from its own plays uses, `(n,)`.

    Args:
        player: The agent, and the log.
        rows: The log.
        chances: The probabilities of the log's choices, `(n,)`.
        rng: Draws the coins.

    Where choices are not equally likely, a row is accepted with probability min p / p_t, as
    [Dudik14] thins a history: every choice of the agent then has the same chance.
    """
    accepted = rng.random(len(rows)) * chances < chances.min()
    used = np.zeros(len(rows), bool)
    for row in range(len(rows)):
        used[row] = player.choose(row) == rows.arms[row] and accepted[row]
        if used[row]:
            player.learn(row)
        else:
            player.undo()
    return used


def along_the_log(player: Player, rows: Decisions) -> Indices:
    """Return the choices of the agent that learns from every row, after the rows before, `(n,)`."""
    choices = np.zeros(len(rows), np.int64)
    for row in range(len(rows)):
        choices[row] = player.choose(row)
        player.undo()
        player.draw_anew(row)
        player.learn(row)
    return choices


def copied(agent: Learner) -> Learner | Checkpoint | None:
    """Return what brings an agent back to what it is now; None: its choices change nothing."""
    if isinstance(agent, Agent):
        return Checkpoint(agent)
    acts = getattr(agent, "learns_by_acting", True)  # if nobody knows, it may
    return copy.deepcopy(agent) if acts else None
