"""The unit of the rewards: a warning where it cannot be that of an agent's parameters."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np

from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

__all__ = ["RewardBounds", "RewardUnits", "Units", "bounds_by_norm"]

FALSE_ALARM = 1e-9  # the probability with which honest rewards of a whole run are warned of
LONGEST_RUN = 10**9  # steps
ROUNDING = 1e-6  # of rewards that are shown in single precision
REMEDY = "or take 'adaptive-wgp-ucb', which learns their unit."
SYMBOLS = {"noise_scale": "R", "norm_bound": "B", "variation_budget": "B_T"}


class RewardUnits(UserWarning):
    """Rewards in another unit than the numbers that an agent rests on; late ones, or the truth."""


class RewardBounds(NamedTuple):
    """What learners take for granted of the rewards.

    Attributes:
        low: The least expected reward, `(B,)`.
        high: The largest.
        noise: The sub-Gaussian scale R of the noise, `(B,)`.
        parameters: The agent's parameters that say so, for the warning.
    """

    low: Array
    high: Array
    noise: Array
    parameters: str


def bounds_by_norm(
    problem: BanditProblem, norm_bound: Array | None, noise_scale: Array, longest: float
) -> RewardBounds | None:
    """Return what B and R say of rewards: |f(x)| <= B k(x, x)^{1/2}. None where B is unknown.

    Args:
        problem: The problem at hand.
        norm_bound: B of every learner, `(B,)`. None: that of the problem, which an agent that does
            not rest on it takes from there, too, for the unit of the rewards.
        noise_scale: R, `(B,)`.
        longest: The largest k(x, x) of the arms. Those of which each step brings others, in the
            unit ball as a rule, may be as long as any point of the box.
    """
    bound, whose = norm_bound, "its"
    if bound is None:
        if problem.norm_bound is None:
            return None
        bound, whose = np.broadcast_to(problem.norm_bound, len(noise_scale)), "the problem's"
    if problem.contextual:
        longest = max(longest, problem.domain.shape[1])
    top = bound * math.sqrt(max(longest, 1.0))
    if problem.link == "logistic":  # B is that of the function, the rewards are in [0, 1]
        top = np.maximum(top, 1.0)
    return RewardBounds(-top, top, noise_scale, f"{whose} 'norm_bound' B and 'noise_scale' R")


class Units:
    """Warns once of rewards in another unit than an agent's parameters.

    It does so once in an agent's life, whatever the number of its learners and episodes.

    Args:
        owner: The agent's name.
        learners: B.
    """

    def __init__(self, owner: str, learners: int) -> None:
        self._owner, self._warned = owner, False
        self._bounds: RewardBounds | None = None
        self._low, self._high = np.zeros((2, learners))

    def _make_part(self, name: str) -> RewardBounds | None:
        """Return a part that a state may have: see `wgp_agents.core.state`."""
        return RewardBounds(self._low, self._low, self._low, "") if name == "_bounds" else None

    def expect(self, bounds: RewardBounds | None, horizon: int | None) -> None:
        """Take note of what the learners take for granted; None: of nothing.

        A reward deviates by more than c R with probability 2 exp(-c^2 / 2) at most, so none of T
        does with probability `FALSE_ALARM`, c^2 = 2 log(2 T / `FALSE_ALARM`). Where T is unknown it
        counts as `LONGEST_RUN`: c is then 9.2, and 7.5 for T = 1,000.
        """
        self._bounds = bounds
        if bounds is None:
            return
        factor = math.sqrt(2 * math.log(2 * (horizon or LONGEST_RUN) / FALSE_ALARM))
        with np.errstate(over="ignore"):
            slack = ROUNDING * np.maximum(abs(bounds.low), abs(bounds.high)) + factor * bounds.noise
            self._low, self._high = bounds.low - slack, bounds.high + slack

    def watch(self, rewards: Array, active: Mask, stacklevel: int = 5) -> None:
        """Look at rewards `(B,)`, of the learners in `active` `(B,)`, before they are learned.

        The user's call is `stacklevel` frames up; default: from `Agent.observe`.
        """
        if self._bounds is None or self._warned:
            return
        # Of one learner, numbers: arrays would take ten times as long.
        if len(rewards) == 1 and self._low.item() <= rewards.item() <= self._high.item():
            return
        outside = active & ((rewards < self._low) | (rewards > self._high))
        if outside.any():
            self._tell(rewards, outside, self._bounds, stacklevel)

    def _tell(self, rewards: Array, outside: Mask, bounds: RewardBounds, stacklevel: int) -> None:
        i, many = int(outside.argmax()), len(outside)
        who = self._owner
        if many > 1:
            who = f"{outside.sum()} of the {many} learners of {who} (the first: learner {i})"
        self._warn(
            f"{who} met a reward of {rewards[i]:g}, beyond what {bounds.parameters} allow: "
            f"expected rewards in [{bounds.low[i]:g}, {bounds.high[i]:g}], noise of scale "
            f"{bounds.noise[i]:g}. Give it those of these rewards, {REMEDY}",
            stacklevel,
        )

    def changed(self, wrapper: str, problem: BanditProblem, stacklevel: int = 4) -> None:
        """Warn of a wrapper, by its name, that changes the rewards.

        The user's call is `stacklevel` frames up; default: from `Agent.observe`.
        """
        if self._warned:
            return
        names = [f"{name} ({symbol})" for name, symbol in SYMBOLS.items()]
        names += [] if problem.reward_range is None else ["reward_range"]
        self._warn(
            f"{wrapper} changes the rewards: of the problem's numbers {', '.join(names)} no longer "
            f"hold. Take it off, give {self._owner} numbers in the unit of these rewards, {REMEDY}",
            stacklevel,
        )

    def late(self, wrapper: str, stacklevel: int = 4) -> None:
        """Warn of a wrapper, by its name, that pays the rewards of earlier plays."""
        if not self._warned:
            self._warn(
                f"{wrapper} pays what has arrived, which need not be the reward of this play. Tell "
                f"{self._owner} by wgp_agents.late_rewards.LateRewards, play by `predict`, or call "
                "told_on_arrival() of an agent that is told each play's own reward.",
                stacklevel,
            )

    def told_truth(self, wrapper: str, stacklevel: int = 4) -> None:
        """Warn of a wrapper, by its name, whose rewards are the regret."""
        if not self._warned:
            self._warn(
                f"{wrapper} hands on minus the regret, which is the truth without noise: "
                f"{self._owner} is told more than its task tells. Take it off.",
                stacklevel,
            )

    def _warn(self, text: str, stacklevel: int) -> None:
        self._warned = True
        warnings.warn(text, RewardUnits, stacklevel)
