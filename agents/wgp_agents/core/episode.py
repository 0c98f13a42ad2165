"""Which episode an agent plays: what it was told of it, and whether that is still so."""

from __future__ import annotations

import numpy as np

from wgp_gym.problem import QUANTITIES, SHARED, BanditProblem
from wgp_gym.types import Mask

__all__ = ["NotDrawn", "other_episodes", "other_task"]


class NotDrawn(RuntimeError):
    """An episode's bounds are to be read, and no episode was drawn yet."""


def other_episodes(now: BanditProblem, before: BanditProblem, learners: int) -> Mask:
    """Return whose episodes are told in other numbers now than before, `(B,)`."""
    if now.kernel != before.kernel:
        return np.ones(learners, bool)
    differs = np.zeros(learners, bool)
    for name in QUANTITIES:
        one, other = getattr(now, name), getattr(before, name)
        if one is None or other is None:
            differs |= one is not other
        else:
            differs |= np.asarray(one) != np.asarray(other)
    return differs


def other_task(now: BanditProblem, before: BanditProblem) -> str | None:
    """Return in what two tasks differ that an agent was made by; None: in nothing.

    B and B_T belong to an episode, and may differ.
    """
    if now.batch_size != before.batch_size:
        return "the number of episodes at once"
    for name in SHARED:
        if getattr(now, name) != getattr(before, name):
            return name
    if not np.array_equal(now.domain, before.domain):
        return "domain"
    if not np.array_equal(now.spread, before.spread):
        return "stand_ins"
    same_noise = np.array_equal(
        np.asarray(now.noise_scale, float), np.asarray(before.noise_scale, float), equal_nan=True
    )
    return None if same_noise else "noise_scale"
