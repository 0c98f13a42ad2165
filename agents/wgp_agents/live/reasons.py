"""Why an arm was chosen: what the log keeps of a decision beside the arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wgp_agents.live.insight import insight_of, runner_up
from wgp_agents.live.learner import Learner
from wgp_agents.live.rewards import Rewards, Unit
from wgp_gym.types import Array, Json, Mask

__all__ = ["why"]


def why(
    learner: Learner,
    rewards: Rewards,
    action: int,
    allowed: Mask | None,
    label: Callable[[int], Json],
) -> dict[str, Json]:
    """Return what the log says of why an arm was chosen, in the user's unit."""
    agent, unit, found = learner.agent, learner.unit, dict[str, Json]()
    chances, seen = agent.propensities(), insight_of(agent)
    if chances is not None:
        found["propensity"] = float(chances[action])
    if seen.memory is not None:
        found["memory"] = seen.memory if np.isfinite(seen.memory) else "inf"
    if seen.age is not None:
        found["age"] = seen.age
    if not learner.has_rewards:
        return found  # nothing is known of rewards yet
    bounds = agent.bounds()
    rival = None if bounds is None else runner_up(bounds, action, allowed)
    actions = [action] if rival is None else [action, rival]
    beliefs = learner.beliefs(actions)
    rows = [described(rewards, unit, beliefs[k : k + 1], bounds, a) for k, a in enumerate(actions)]
    found |= rows[0]
    if rival is not None:
        found["runner_up"] = {"arm": label(rival), **rows[1]}
    if seen.noise_std is not None:
        found |= around(rewards, unit, *beliefs[0], seen.noise_std)
    return found


def around(
    rewards: Rewards, unit: Unit, mean: float, std: float, noise_std: float
) -> dict[str, Json]:
    """Return the noise around what is expected, and where the unit is bent the band of rewards."""
    found: dict[str, Json] = {"noise": float(rewards.spread(mean, noise_std, unit))}
    if not rewards.is_straight:
        low, high = rewards.band(mean, np.hypot(std, noise_std), unit)
        if np.isfinite(high - low):
            found["band"] = [float(low), float(high)]
    return found


def described(
    rewards: Rewards,
    unit: Unit,
    belief: Sequence[tuple[float, float]],
    bounds: Array | None,
    action: int,
) -> dict[str, Json]:
    """Return what is expected of an arm, in the user's unit."""
    found: dict[str, Json] = {}
    for mean, std in belief:
        found["mean"] = float(rewards.written(mean, unit))
        if np.isfinite(std):  # no unit is known before two rewards differ
            found["std"] = float(rewards.spread(mean, std, unit))
    if bounds is not None:
        found["bound"] = float(rewards.written(bounds[action], unit))
    return found
