"""What an agent can say of itself at a decision: its bounds, its memory, the changes it noticed."""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np

from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.base import Agent
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.model import Posterior
from wgp_agents.gp.surrogates.kernel_features import LEVEL
from wgp_gym.types import Array, Mask

__all__ = ["Insight", "insight_of", "posterior_of", "runner_up"]


class Insight(NamedTuple):
    """What an agent says of itself, in its own unit of rewards.

    Attributes:
        memory: For how many steps an observation counts, may be infinite; None: not known.
        age: Steps since the model that is played was last restarted; None: not known.
        noise_std: The standard deviation of the noise; None: not learned.
        drift: The standard deviation of the change of an expected reward in a step; None: not
            learned.
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
        # Before the first reward all models are of age 0; later those alone that begin anew.
        memory = float(belief.memory) if agent.bank.kept.age.any() else None
        if not scale > 0.0:  # before two rewards differ
            return Insight(memory, age)
        noise = scale * float(np.sqrt(belief.noise_ratio))
        return Insight(memory, age, noise, scale * change_std(drift))
    if isinstance(agent, GPAgent):
        discount = float(agent.surrogate.ratios[0, -1])
        if discount < 1.0:
            return Insight(1.0 / (1.0 - discount))
    return Insight()


def change_std(eps: float) -> float:
    """Return the standard deviation of g_{t+1}(x) - g_t(x), where k(x, x) = 1 (docs/adaptive.md).

    With g_{t+1} = (1 - eps)^{1/2} g_t + eps^{1/2} h_t, both of variance k(x, x) + 0.3 (the level
    drifts with the rest), it is (1.3 (2 - 2 (1 - eps)^{1/2}))^{1/2}: nearly (1.3 eps)^{1/2}.
    """
    return math.sqrt((1.0 + LEVEL) * 2.0 * (1.0 - math.sqrt(1.0 - eps)))


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
