"""Learners on many time scales at once: the blocks, tests and instances of MASTER.

Notation, for one learner in a block of 2^n steps that began at step t_n:

| symbol | code | meaning |
|---|---|---|
| n | `order` | the order of the block |
| t - t_n | `step` | steps of the block that are over |
| m | column | the order of an instance, which lives for 2^m steps; 0 <= m <= n |
| rho(t) | `rate / sqrt(t)` | the regret per step over t steps of an instance that plays alone |
| rho-hat(t) | `level / sqrt(t)` | the same where instances take turns |
| g~_t | `optimistic` | the optimistic value of the instance that plays at t |
| U_t | `least` | the smallest g~ of the block so far |

References:
    [WL21] Wei, Luo. Non-stationary Reinforcement Learning without Prior Knowledge: An Optimal
        Black-box Approach. COLT 2021.
"""

from __future__ import annotations

import numpy as np

from wgp_agents.core.state import check_counts
from wgp_agents.gp.action_sets import ActionSet, Plays, Points
from wgp_agents.gp.surrogates.base import Prediction, Surrogate
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.gp.width import deng_width
from wgp_gym.types import Array, Indices, Mask

__all__ = ["ActiveInstances", "Blocks", "StationarityTests", "interleaved_level", "regret_rate"]

LONGEST = 2**62  # steps of a block that an int64 can count
EXCESS, GAP = 9.0, 3.0  # how many rho-hat Test 1 and Test 2 of [WL21] allow


def regret_rate(
    norm_bound: Array, noise_scale: Array, regularization: Array, delta: Array, gain: Array
) -> Array:
    """Return c of rho(t) = c t^{-1/2}, in units of reward, for IGP-UCB on a function that stays.

    Where its confidence bounds hold, and with probability 1 - delta for the noise,
        sum over s <= t of (f~_s - R_s) <= 2 beta sum of sigma_{s-1}(x_s) + R (2 t log(1 / d))^{1/2}
                                        <= c t^{1/2},
        c = 2 beta (2 gamma / log(1 + 1 / lambda))^{1/2} + R (2 log(1 / d))^{1/2},
    d being delta and beta that of gain gamma: by Cauchy-Schwarz and
    sigma^2 <= log(1 + sigma^2 / lambda) / log(1 + 1 / lambda) for sigma <= 1, as in
    `wgp_agents.theory.regret`. Arguments as in `deng_width`, gamma being the gain of T plays.
    """
    width = deng_width(norm_bound, noise_scale, regularization, delta, gain)
    deviations = np.sqrt(2 * gain / np.log1p(1 / regularization))
    rate: Array = 2 * width * deviations + noise_scale * np.sqrt(-2 * np.log(delta))
    return rate


def interleaved_level(rate: Array, delta: Array, horizon: int) -> Array:
    """Return the factor of t^{-1/2} in rho-hat(t), Lemma 3 of [WL21]."""
    level: Array = 6 * (np.log2(horizon) + 1) * (np.log(horizon) - np.log(delta)) * rate
    return level


class Blocks:
    """The blocks of B learners and their instances: Procedure 1 and Algorithm 2 of [WL21].

    An instance of order m begins at multiples of 2^m from the block's first step, with probability
    rho(2^n) / rho(2^m) = 2^{-(n - m) / 2}; that of order n always does. The paper draws them at the
    block's start; here each is drawn at its own start.

    Args:
        batch: B.
        horizon: T; no block is longer.

    Attributes:
        lengths: 2^m, `(K,)`.
        order: n, `(B,)`.
        step: Steps of the block that are over, `(B,)`.
        alive: Whether there is an instance of order m at this step, `(B, K)`.
    """

    _constants = ("_orders", "lengths", "_chances")

    def __init__(self, batch: int, horizon: int) -> None:
        self._orders = np.arange(min(horizon, LONGEST).bit_length())
        self.lengths = 2**self._orders
        self._chances = 2.0 ** (-0.5 * self._orders)
        self.order, self.step = np.zeros((2, batch), np.int64)
        self.alive = np.zeros((batch, len(self.lengths)), bool)

    def _check_state(self) -> None:
        check_counts(self, "order", self.order, len(self.lengths) - 1)

    def restart(self, mask: Mask) -> None:
        """Begin a block of order 0 for the learners in `mask`."""
        self.order[mask] = self.step[mask] = 0

    def schedule(self, mask: Mask, draws: Array) -> Mask:
        """Draw which instances begin at this step, `(B, K)`.

        Args:
            mask: Whose step it is, `(B,)`.
            draws: Uniform numbers from [0, 1), one for each order, `(B, K)`.
        """
        due = mask[:, None] & (self.step[:, None] % self.lengths == 0)
        above = self.order[:, None] - self._orders
        new: Mask = due & (above >= 0) & (draws < self._chances[np.maximum(above, 0)])
        new |= due & (above == 0)
        self.alive[due] = new[due]
        return new

    def playing(self) -> Indices:
        """Return the order of the shortest instance, which plays and learns, `(B,)`."""
        shortest: Indices = self.alive.argmax(axis=1)
        return shortest

    def ending(self) -> Mask:
        """Return the instances whose last step this is, `(B, K)`."""
        ends: Mask = self.alive & ((self.step[:, None] + 1) % self.lengths == 0)
        return ends

    def advance(self, mask: Mask) -> None:
        """Go on by a step; a block at its end is followed by one twice as long, if T allows."""
        self.step += mask
        over = self.step == self.lengths[self.order]
        self.order[over] = np.minimum(self.order[over] + 1, self._orders[-1])
        self.step[over] = 0


class StationarityTests:
    """Test 1 and Test 2 of MASTER, Algorithm 3 of [WL21], for B learners.

    Test 1 fails at the end of an instance in which rewards were too high, whoever played: their
    mean is at least U_t + 9 rho-hat(2^m). Test 2 fails where the block's rewards fall short of the
    optimistic values: the mean of g~ - R is at least 3 rho-hat(t - t_n + 1).

    Args:
        blocks: The blocks.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._paid = np.zeros(blocks.alive.shape)  # since the instance of each order began
        self._least, self._gap = np.zeros((2, len(blocks.step)))

    def begin(self, mask: Mask, new: Mask) -> None:
        """Reset the sums of blocks and instances that have just begun: see `Blocks.schedule`."""
        first = mask & (self._blocks.step == 0)
        self._least[first], self._gap[first] = np.inf, 0.0
        self._paid[new] = 0.0

    def take(
        self, optimistic: Array, rewards: Array, active: Mask, level: Array
    ) -> tuple[Mask, Mask]:
        """Take in a step, before `Blocks.advance`; return who fails Test 1 and Test 2, `(B,)` each.

        Args:
            optimistic: g~_t, `(B,)`.
            rewards: R_t, `(B,)`.
            active: Whose step it is, `(B,)`.
            level: The factor of t^{-1/2} in rho-hat, `(B,)`.
        """
        # U_t, the sum of g~ - R over the block, and that of R over each instance
        self._least[active] = np.minimum(self._least, optimistic)[active]
        self._gap[active] += (optimistic - rewards)[active]
        self._paid[active] += rewards[active, None]
        lengths, steps = self._blocks.lengths, self._blocks.step + 1.0
        # Test 1: mean R >= U_t + 9 rho-hat(2^m); Test 2: mean of g~ - R >= 3 rho-hat(t - t_n + 1)
        bars = self._least[:, None] + EXCESS * level[:, None] / np.sqrt(lengths)
        first = (self._blocks.ending() & (self._paid / lengths >= bars)).any(axis=1)
        second = self._gap / steps >= GAP * level / np.sqrt(steps)
        return active & first, active & second


class ActiveInstances(Surrogate):
    """The instance of each learner that plays and learns at this step, as one surrogate.

    `instances` are the surrogates by order; `follow` names the order of each learner.
    """

    def __init__(self, action_set: ActionSet, instances: list[RestartSurrogate]) -> None:
        super().__init__(action_set)
        self._instances, self._order = instances, np.zeros(len(self.held), np.int64)
        self._parts: list[tuple[RestartSurrogate, Mask]] = []
        self._known: tuple[Points, Prediction] | None = None  # since the last observation
        self._room = np.empty((2, 0, 0))

    def __getstate__(self) -> dict[str, object]:
        """Return all but what is at hand."""
        return {**vars(self), "_known": None, "_room": np.empty((2, 0, 0))}

    def follow(self, order: Indices) -> None:
        """Let the instances of these orders, `(B,)`, play and learn."""
        self._order, self._known = order, None
        self._parts = [(self._instances[m], order == m) for m in set(order.tolist())]
        for surrogate, mine in self._parts:
            self.gain[mine] = surrogate.gain[mine]

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Restart these instances."""
        self._known = None
        for surrogate, mine in self._parts:
            surrogate.restart(mask & mine, forgetting)

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Let these instances learn from one play of every learner in `active`."""
        self._known = None
        for surrogate, mine in self._parts:
            if (active & mine).any():
                surrogate.update(plays, rewards, active & mine, elapsed)

    def predict(self, points: Points, learners: Indices | None = None) -> Prediction:
        """Return the posterior of these instances at points."""
        if learners is not None and len(learners) == 1:
            return self._instances[int(self._order[learners[0]])].predict(points, learners)
        if self._known is None or self._known[0] is not points:
            mean, variance = self._room_for(points)
            for surrogate, mine in self._parts:
                part = surrogate.predict(points)  # its bound is of the posterior's own variance
                mean[mine], variance[mine] = part.mean[mine], part.variance[mine]
            self._known = points, Prediction(mean, variance, variance)
        if learners is None:
            return self._known[1]
        return Prediction(*(array[learners] for array in self._known[1]))

    def _room_for(self, points: Points) -> Array:
        """Return the room that predictions are written into, `(2, B, q)`."""
        shape = 2, len(self.held), points.features.shape[2]
        if self._room.shape != shape:
            self._room = np.empty(shape)
        return self._room
