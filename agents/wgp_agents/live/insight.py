"""What an agent can say of itself at a decision: its bounds, its memory, the changes it noticed."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.base import Agent
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.model import Posterior
from wgp_gym.types import Array, Mask

__all__ = ["Insight", "insight_of", "posterior_of", "runner_up"]


class Insight(NamedTuple):
    """What an agent says of itself, in its own unit of rewards.

    Attributes:
        memory: For how many steps an observation counts, may be infinite; None: not known.
        age: Steps since the model that is played was last restarted; None: not known.
        noise_std: The standard deviation of the noise; None: not learned.
        drift: By how much a value of the function moves in a step; None: not learned.
    """

    memory: float | None = None
    age: int | None = None
    noise_std: float | None = None
    drift: float | None = None


def insight_of(agent: Agent) -> Insight:
    """Return what a single agent says of itself."""
    if isinstance(agent, AdaptiveWGPUCB):
        belief = agent.belief()
        scale, drift = float(belief.scale), float(belief.drift)
        age = int(agent.bank.age[0])
        if not scale > 0.0:  # before two rewards differ
            return Insight(float(belief.memory), age)
        noise = scale * float(np.sqrt(belief.noise_ratio))
        return Insight(float(belief.memory), age, noise, scale * float(np.sqrt(drift)))
    if isinstance(agent, GPAgent):
        discount = float(agent.surrogate.ratios[0, -1])
        if discount < 1.0:
            return Insight(1.0 / (1.0 - discount))
    return Insight()


def runner_up(bounds: Array, chosen: int, allowed: Mask | None) -> int | None:
    """Return the arm with the largest bound of those that were not chosen; None: there is none."""
    others = bounds.copy() if allowed is None else np.where(allowed, bounds, -np.inf)
    others[chosen] = -np.inf
    best = int(others.argmax())
    return best if np.isfinite(others[best]) else None


def posterior_of(agent: Agent) -> Posterior | None:
    """Return mean and believable standard deviation of all arms; None where there are none."""
    find = getattr(agent, "bands", None) or getattr(agent, "posterior", None)
    return None if find is None else cast(Posterior, find())
