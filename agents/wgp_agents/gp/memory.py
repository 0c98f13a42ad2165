"""The memories: what B learners keep of the past, and the posterior that follows from it.

Notation, for one learner, phi(x) `(m,)` being the features of a point:

| symbol | code | meaning |
|---|---|---|
| w_s / w_t | `discount ** (t - s)` | the weight of step s at time t |
| A, b | `gram`, `target` | sum of w phi phi^T `(m, m)`, sum of w y phi `(m,)` |
| V | | A + lambda I |
| mu~, sigma~^2 | `mean`, `variance` | phi^T V^{-1} b, lambda phi^T V^{-1} phi: Eq. (3), (4) |
| A2 | `double_gram` | sum of w^2 phi phi^T |
| gamma-bar | `gain` | 1/2 log det(I + A2 / lambda), the realised double-weighted gain |

Deviation: [Deng22] has weights eta^{-t} and a regulariser lambda eta^{-t}. Dividing both by
eta^{-t} changes nothing in Eq. (3)-(4), and nothing overflows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from wgp_agents.gp import blas, compiled
from wgp_agents.gp.arrays import DiscountArrays, RankOneArrays
from wgp_agents.gp.basis import Basis
from wgp_gym.kernels import Array

__all__ = ["DiscountMemory", "Memory", "RestartMemory", "WindowMemory"]

Mask = NDArray[np.bool_]
Arms = NDArray[np.int64]

MANY_FEATURES = 64  # above it, BLAS per learner
LONGEST = 2.0**53


class Memory(ABC):
    """What B learners keep of their plays.

    Attributes:
        nothing_forgotten: The parameter's value with which everything is kept for good.
        mean: Posterior means of all arms, `(B, n)`.
        variance: Posterior variances of all arms, `(B, n)`.
        gain: Realised (double-weighted) information gains, `(B,)`.
    """

    nothing_forgotten: float = math.inf
    mean: Array
    variance: Array
    gain: Array

    @abstractmethod
    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all that the learners in `mask` know.

        Args:
            mask: Who starts again, `(B,)`.
            forgetting: The memory's own parameter, `(B,)`: window, period or discount.
        """

    @abstractmethod
    def update(self, arms: Arms, rewards: Array, active: Mask) -> None:
        """Take in one observation of every learner in `active`.

        Args:
            arms: Arms played, `(B,)`.
            rewards: Rewards paid, `(B,)`.
            active: Who learns, `(B,)`.
        """


class RankOneState:
    """The posterior of unweighted data, changed by one observation at a time in O(m^2 + m n).

    Args:
        basis: The features of the arms.
    """

    def __init__(self, basis: Basis) -> None:
        batch, (m, n) = len(basis.ridge), basis.phi.shape
        self._basis = basis
        self.arrays = RankOneArrays(
            inverse=np.zeros((batch, m, m)),
            mean=np.zeros((batch, n)),
            variance=np.zeros((batch, n)),
            gain=np.zeros(batch),
            counts=np.zeros((batch, n), np.int64),
            sums=np.zeros((batch, n)),
            lost=np.zeros((batch, n)),
            age=np.zeros(batch, np.int64),
        )

    def clear(self, mask: Mask) -> None:
        """Put the learners in `mask` back to the prior."""
        for array in self.arrays:
            array[mask] = 0
        identity = np.eye(len(self._basis.phi))
        self.arrays.inverse[mask] = identity / self._basis.ridge[mask, None, None]
        self.arrays.variance[mask] = self._basis.prior

    def change(self, sign: float, arms: Arms, rewards: Array, active: Mask) -> None:
        """Add (sign 1) or remove (sign -1) one observation of every learner in `active`."""
        compiled.rank_one_update(sign, arms, rewards, active, self._basis, self.arrays)


class RestartMemory(Memory):
    """Keeps everything since the last restart, and restarts after every `period` observations.

    Period infinity keeps everything.

    Args:
        basis: The features of the arms.
    """

    def __init__(self, basis: Basis) -> None:
        self._state = RankOneState(basis)
        arrays = self._state.arrays
        self.mean, self.variance, self.gain = arrays.mean, arrays.variance, arrays.gain
        self._clock = np.zeros(len(basis.ridge))
        self._period = np.full(len(basis.ridge), math.inf)

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is the restart period, in steps or infinity."""
        self._period[mask] = forgetting[mask]
        self._clock[mask] = 0
        self._state.clear(mask)

    def update(self, arms: Arms, rewards: Array, active: Mask) -> None:
        """Take in one observation, and restart those whose period is full."""
        self._state.change(1.0, arms, rewards, active)
        self._clock += active
        full = self._clock >= self._period
        if full.any():
            self._clock[full] = 0
            self._state.clear(full)


class WindowMemory(Memory):
    """Keeps the last `window` observations. A window of infinity keeps everything.

    Args:
        basis: The features of the arms.
    """

    def __init__(self, basis: Basis) -> None:
        batch = len(basis.ridge)
        self._state = RankOneState(basis)
        arrays = self._state.arrays
        self.mean, self.variance, self.gain = arrays.mean, arrays.variance, arrays.gain
        self._rows = np.arange(batch)
        self._window = np.full(batch, math.inf)
        self._seen = np.zeros(batch, np.int64)
        self._arms = np.zeros((batch, 1), np.int64)
        self._rewards = np.zeros((batch, 1))

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is the window, in steps or infinity."""
        # What no int64 can count to will never be full.
        self._window[mask] = np.where(forgetting < LONGEST, forgetting, math.inf)[mask]
        self._seen[mask] = 0
        self._state.clear(mask)

    def _make_room(self, size: int) -> None:
        """Double the store until it holds `size` observations, and no more than were seen."""
        held = self._arms.shape[1]
        if size > held:
            missing = max(size, 2 * held) - held
            self._arms = np.pad(self._arms, ((0, 0), (0, missing)))
            self._rewards = np.pad(self._rewards, ((0, 0), (0, missing)))

    def update(self, arms: Arms, rewards: Array, active: Mask) -> None:
        """Take in one observation, and drop the oldest where the window is full."""
        bounded = np.isfinite(self._window)
        place = self._seen % np.where(bounded, self._window, 1).astype(np.int64)
        self._make_room(int(place.max()) + 1)
        full = active & (self._seen >= self._window)
        if full.any():
            old_arms, old_rewards = self._arms[self._rows, place], self._rewards[self._rows, place]
            self._state.change(-1.0, old_arms, old_rewards, full)
        self._state.change(1.0, arms, rewards, active)
        kept = active & bounded
        self._arms[kept, place[kept]] = arms[kept]
        self._rewards[kept, place[kept]] = rewards[kept]
        self._seen += active


class DiscountMemory(Memory):
    """Keeps everything, with weights that fade by the discount eta at every step.

    V_t = eta V_{t-1} + phi phi^T + lambda (1 - eta) I changes in full rank, so it is factorised
    at each step: O(m^3 + m^2 n), whatever t is.

    Args:
        basis: The features of the arms.
    """

    nothing_forgotten = 1.0

    def __init__(self, basis: Basis) -> None:
        batch, (m, n) = len(basis.ridge), basis.phi.shape
        self._basis = basis
        self._discount = np.ones(batch)
        self._arrays = DiscountArrays(
            gram=np.zeros((batch, m, m)),
            target=np.zeros((batch, m)),
            double_gram=np.zeros((batch, m, m)),
            mean=np.zeros((batch, n)),
            variance=np.zeros((batch, n)),
            gain=np.zeros(batch),
        )
        self.mean, self.variance = self._arrays.mean, self._arrays.variance
        self.gain = self._arrays.gain
        self._many = basis.rank > MANY_FEATURES

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is the discount eta in (0, 1]."""
        self._discount[mask] = forgetting[mask]
        for array in self._arrays:
            array[mask] = 0.0
        self.variance[mask] = self._basis.prior

    def update(self, arms: Arms, rewards: Array, active: Mask) -> None:
        """Fade the past and take in one observation."""
        compiled.discount_update(arms, rewards, active, self._discount, self._basis, self._arrays)
        compiled.posteriors(active & ~self._many, self._basis, self._arrays)
        if self._many.any():
            blas.posteriors(active & self._many, self._basis, self._arrays)
