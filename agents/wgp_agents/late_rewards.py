"""Telling an agent of rewards when they arrive, and not of those that never do."""

from __future__ import annotations

import numpy as np

from wgp_agents.base import Agent
from wgp_gym.types import Action, Actions, Array, Indices, Info, Mask, Reward

__all__ = ["LateRewards"]


class LateRewards:
    """What an agent's plays in one episode have paid, told when it is known.

    For environments in `wgp_gym.wrappers.DelayedRewards`, whose info says when rewards arrive; in
    any other the agent is told at once. Each step one step of time goes by for every learner,
    whether it is told of a reward, of several or of none; for agents that know no time but their
    plays (`Agent.takes_elapsed`) only what they are told of counts. A late reward counts as one of
    the step at which it arrives: an agent that forgets takes it for younger than it is, and
    one that weighs a reward by the chance of its play (Exp3) takes the chance at its arrival.

    Args:
        agent: The agent, reset for the episode.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        agent.told_on_arrival()
        # Plays, their rewards, and when these arrive.
        self._waiting: list[tuple[Actions, Array, Indices]] = []

    def observe(self, action: Action, reward: Reward, info: Info) -> None:
        """Take in a play, and tell the agent of all rewards that have arrived by its end.

        Args:
            action: What the environment was given.
            reward: What its step returned.
            info: The info that it returned.
        """
        told = info.get("final_info", info)  # where the step began the next episode, too
        if "arrives" not in told:
            self._agent.observe(action, reward)
            return
        own, arrives = np.atleast_1d(told["reward"]), np.atleast_1d(told["arrives"])
        t = int(np.ravel(told["t"])[0])
        self._waiting.append((np.copy(action), np.array(own, float), np.array(arrives)))
        silent = np.ones(self._agent.num_learners, bool)
        for play, paid, when in self._waiting:
            known = when == t
            if known.any():
                self._tell(play, paid, known, silent & known)
                silent &= ~known
        self._waiting = [one for one in self._waiting if (one[2] > t).any()]
        if silent.any() and self._agent.takes_elapsed:
            self._agent.elapse(1.0, active=silent)

    def _tell(self, play: Actions, paid: Array, known: Mask, first: Mask) -> None:
        """Tell the learners in `known` of a play; a step goes by for those in `first`."""
        agent = self._agent
        elapsed = np.where(first, 1.0, 0.0) if agent.takes_elapsed else 1.0
        arms = agent.arms if agent.problem.contextual else None
        if agent.batched:
            agent.observe(play, paid, arms=arms, active=known, elapsed=elapsed)
        else:
            one = play if agent.problem.continuous else int(play)
            agent.observe(one, float(paid[0]), arms=arms, elapsed=elapsed)
