"""AdSwitch: eliminates arms, samples them again at random, starts anew where anything changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.agent import ArmsAgent
from wgp_agents.core.access import EnvLike
from wgp_agents.core.argmax import argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import fill_uniform, seeds_of
from wgp_agents.core.state import check_counts, check_rooms
from wgp_agents.kernels.adswitch import SwitchNumbers, SwitchState, begin_all, oblige, switch
from wgp_gym.types import Array, Indices, Mask
from wgp_gym.validation import check_choice, check_int

__all__ = ["AdSwitch"]

ROOM = 64  # buckets that there is room for at first
CONSTANTS = {
    "theory": {"eviction": 16.1, "detection": 2.0, "gap_divisor": 16.0},
    "practical": {"eviction": 2.0, "detection": 0.5, "gap_divisor": 1.0},
}
LATER = 2.0**40  # further back than any step: arms that need not be played


class AdSwitch(ArmsAgent):
    """Successive elimination that knows neither the changes nor how many there are.

    All arms are good at first. It plays, in turn, the good arms and those with a check: of these
    the one that was not played for longest. With m_I(k) the mean of an arm's n_I(k) rewards in an
    interval I of the episode, and r_I(k) = (c log(T) / n_I(k))^{1/2}, after the play at t it

    - begins a new episode, all arms good, if |m_[s1, s2](k) - m_[s, t](k)| > r_[s1, s2](k) +
      r_[s, t](k) for a good arm, or |m_[s, t](k) - mu(k)| > Delta(k) / 4 + r_[s, t](k) for a bad
      one;
    - else makes each good arm bad that has max over good k' of m_[s, t](k') - m_[s, t](k) =:
      Delta(k) > (C_1 log(T) / (n_[s, t](k) - 1))^{1/2} for an s, and mu(k) := m_[s, t](k).

    In the l-th episode a check of a bad arm, of d = 1/2 and of each d = 2^-i >= Delta(k) / g, g
    being `gap_divisor`, begins at each step with probability d (l / (K T log T))^{1/2}. It takes
    floor(c log(T) / d^2) plays of the arm.

    Deviation: [AGO19] tests all intervals, at a cost of t^3 and more. Here (see
    `wgp_agents.kernels.adswitch`) those that begin where two buckets of steps meet; there are
    O(M log(t / M)) of them, and of the distances t - s one is tried within a factor 1 + 1 / M below
    each. It never finds more than all intervals would. A `resolution` M >= T tries them all, at a
    cost of K t.
    Deviation: of the intervals that evict an arm the longest gives mu and Delta; where no good arm
    is left, an episode begins.
    Deviation: where arms were not played in turn, as with a mask, the smaller one of n(k) - 1 and
    n(k') counts; where none of those to be played is there, the one of the others that was not
    played for longest.
    Deviation: where the noise is larger than that of rewards in [0, 1], `scale` times, C_1 and c
    are `scale`^2 times as large. log(T) is at least 1.
    Deviation: with the constants of theory an arm is bad after 16 log(T) / Delta^2 plays at the
    earliest, and then checked nearly all the time: at T = 10,000 this is hardly better than
    random play. So "practical" ones are the default, C_1 = 2, c = 1/2 and g = 1. With them r is
    Hoeffding's for a failure of each test with probability 1 / T on either side, an arm is bad
    where twice r parts it from the best, and a check looks for changes as large as the gap. The
    check of 1/2 belongs to them: [AGO19] has g = 16, and gaps of at most 1.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        constants: "practical", as above, or "theory": C_1 = 16.1, c = 2, g = 16.
        eviction: C_1 > 0. Default: as `constants` says. [AGO19]'s proof asks for more than 16.
        detection: c > 0. Default: as `constants` says.
        gap_divisor: g > 0: checks look for changes down to the gap over g. Default: as `constants`
            says.
        resolution: M >= 1.
        reward_range: See `ArmsAgent`.

    Attributes:
        state: What the learners keep of the episode at hand.

    Raises:
        ValueError: If a parameter is out of its range, or the task does not fit: see `ArmsAgent`.

    Source: [AGO19] Auer, Gajane, Ortner. Adaptively Tracking the Best Bandit Arm with an Unknown
    Number of Distribution Changes. COLT 2019, Algorithm 1. Its text could not be read: the tests
    and constants are those of public code (SMPyBandits, AdSwitchNew).
    """

    _stores = ("state",)

    def __init__(
        self,
        env: EnvLike,
        *,
        constants: Literal["practical", "theory"] = "practical",
        eviction: ArrayLike | None = None,
        detection: ArrayLike | None = None,
        gap_divisor: ArrayLike | None = None,
        resolution: int = 10,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        self._horizon()
        check_choice("constants", constants, type(self).__name__, tuple(CONSTANTS))
        defaults = CONSTANTS[constants]

        def _of(name: str, value: ArrayLike | None) -> Array:
            chosen = defaults[name] if value is None else value
            return self._parameter(name, chosen, 0, closed="neither")

        self.eviction, self.detection = _of("eviction", eviction), _of("detection", detection)
        self.gap_divisor = _of("gap_divisor", gap_divisor)
        self.resolution = check_int("resolution", resolution, type(self).__name__, 1, 2**31)
        batch, num_arms = self.num_learners, self.num_arms
        self.steps, self._last = np.zeros(batch, np.int64), np.zeros((batch, num_arms), np.int64)
        self._checked = np.zeros(batch, np.int64)  # the step that checks were last drawn for
        self.numbers = SwitchNumbers(*np.ones((4, batch)))
        self.state = empty_state(batch, num_arms)

    def _check_state(self) -> None:
        state = self.state
        check_rooms(self, state.steps, state.counts, state.sums)
        by_arm = (state.good, state.plays, state.target, state.mean, state.gap)
        check_rooms(self, self._last, *by_arm, state.lower, state.upper)
        check_counts(self, "size", state.size, state.steps.shape[1])

    def _clear(self, mask: Mask) -> None:
        horizon = self._horizon()
        logarithm = max(math.log(horizon), 1.0)
        level, numbers = logarithm * self.scale**2, self.numbers
        numbers.eviction[mask] = (self.eviction * level)[mask]
        numbers.detection[mask] = (self.detection * level)[mask]
        numbers.gap_divisor[mask] = self.gap_divisor[mask]
        numbers.chance[mask] = 1 / math.sqrt(self.num_arms * horizon * logarithm)
        self.state.episode[mask] = 1
        begin_all(mask, self.state)
        self.steps[mask] = self._checked[mask] = 0
        self._last[mask] = 0

    def _choose(self, uniform: UniformStreams) -> Indices:
        draws = np.empty((self.num_learners, self.num_arms))
        fill_uniform(seeds_of(uniform), draws)
        step = self.steps + 1
        oblige(draws, self._checked < step, self.numbers, self.state)
        self._checked = step
        return argmax(self.index(), uniform.draw(), self.allowed)

    def index(self) -> Array:
        """Return the steps since every arm's last play, `(B, K)`; less 2^40 if it may wait."""
        age = (self.steps[:, None] + 1 - self._last).astype(float)
        wanted = self.state.good | (self.state.plays < self.state.target)
        return np.where(wanted, age, age - LATER)

    def _take(self, arms: Indices, rewards: Array, active: Mask) -> None:
        self._make_room()
        switch(arms, rewards, active, self.numbers, self.resolution, self.state)
        self.steps += active
        self._last[active, arms[active]] = self.steps[active]

    def _hallucinate(self, actions: Indices, active: Mask) -> None:
        self._last[active, actions[active]] = self.steps[active] + 1  # others have their turn

    def _make_room(self) -> None:
        """Double the room for buckets where it may be too small for one more."""
        state, room = self.state, self.state.steps.shape[1]
        if state.size.max() == room:
            flat, deep = ((0, 0), (0, room)), ((0, 0), (0, room), (0, 0))
            self.state = state._replace(
                steps=np.pad(state.steps, flat),
                counts=np.pad(state.counts, deep),
                sums=np.pad(state.sums, deep),
            )


def empty_state(batch: int, num_arms: int) -> SwitchState:
    """Return the state of B learners at the beginning of their first episode."""
    shape, deep = (batch, num_arms), (batch, ROOM, num_arms)
    return SwitchState(
        size=np.zeros(batch, np.int64),
        steps=np.zeros((batch, ROOM), np.int64),
        counts=np.zeros(deep, np.int64),
        sums=np.zeros(deep),
        good=np.ones(shape, bool),
        plays=np.zeros(shape, np.int64),
        target=np.zeros(shape),
        mean=np.zeros(shape),
        gap=np.zeros(shape),
        lower=np.full(shape, -np.inf),
        upper=np.full(shape, np.inf),
        episode=np.ones(batch, np.int64),
    )
