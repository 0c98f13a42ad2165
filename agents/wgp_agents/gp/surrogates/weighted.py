"""The surrogates: what B learners keep of the past, and the posterior that follows from it.

Notation, for one learner, phi(x) `(m,)` being the features of a point:

| symbol | code | meaning |
|---|---|---|
| w_s / w_t | `discount ** (t - s)` | the weight of step s at time t |
| A, b | `gram`, `target` | sum of w phi phi^T `(m, m)`, sum of w y phi `(m,)` |
| V | | A + lambda I |
| mu~, sigma~^2 | `mean`, `variance` | phi^T V^{-1} b, lambda phi^T V^{-1} phi: Eq. (3), (4) |
| A2 | `double_gram` | sum of w^2 phi phi^T |
| gamma-bar | `gain` | 1/2 log det(I + A2 / lambda), the realised double-weighted gain |
| sigma-acute^2 | `arrays.tight` | lambda phi^T V^{-1} (A2 + lambda I) V^{-1} phi: Theorem 2 |

Deviation: [Deng22] has weights eta^{-t} and a regulariser lambda eta^{-t}. Dividing both by
eta^{-t} changes nothing in Eq. (3)-(4), and nothing overflows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.surrogates.state import GramState, Plays, Predictor, unweighted_state
from wgp_agents.kernels.arrays import PosteriorArrays
from wgp_gym.types import Array, Mask

__all__ = ["DiscountSurrogate", "RestartSurrogate", "Surrogate", "WindowSurrogate"]

LONGEST = 2.0**53


class Surrogate(ABC):
    """What B learners keep of their plays.

    Attributes:
        nothing_forgotten: The parameter's value with which everything is kept for good.
        mean: Posterior means of all arms, or candidates of a box, `(B, n)`.
        variance: Their posterior variances, `(B, n)`.
        bound_variance: The variances that the confidence bound uses, `(B, n)`.
        gain: Realised (double-weighted) information gains, `(B,)`.
        held: How many observations each learner holds, `(B,)`.
        ratios: The discount w_{t-1} / w_t of each step, at index t - 1, `(B, L)`; the last one
            goes on.
        arrays: What is kept.
    """

    nothing_forgotten: float = math.inf
    held: NDArray[np.int64]

    def __init__(self, arrays: PosteriorArrays, bound_variance: Array) -> None:
        self.arrays = arrays
        self.mean, self.variance, self.gain = arrays.mean, arrays.variance, arrays.gain
        self.bound_variance = bound_variance
        self.held = np.zeros(len(arrays.gain), np.int64)
        self.ratios = np.ones((len(arrays.gain), 1))

    @abstractmethod
    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all that the learners in `mask` know.

        Args:
            mask: Who starts again, `(B,)`.
            forgetting: The memory's own parameter, `(B,)`: window, period or discount.
        """

    @abstractmethod
    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features `(m, q)`: see `Predictor`."""

    @abstractmethod
    def deviations(self, normals: Array) -> Array:
        """Return weights of features drawn around the posterior mean, `(B, m)`.

        Args:
            normals: Standard normal draws, `(B, m)`.
        """

    @abstractmethod
    def update(self, plays: Plays, rewards: Array, active: Mask) -> None:
        """Take in one observation of every learner in `active`.

        Args:
            plays: Arms played, `(B,)`, or points `(B, d)`.
            rewards: Rewards paid, `(B,)`.
            active: Who learns, `(B,)`.
        """


class RestartSurrogate(Surrogate):
    """Keeps everything since the last restart, and restarts after every `period` observations.

    Period infinity keeps everything.

    Args:
        action_set: The arms, or the box.
    """

    def __init__(self, action_set: ActionSet) -> None:
        self._state = unweighted_state(action_set)
        super().__init__(self._state.arrays, self._state.arrays.variance)
        self.period = np.full(len(self.gain), math.inf)

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features."""
        return self._state.predictor(i)

    def deviations(self, normals: Array) -> Array:
        """Return weights of features drawn around the posterior mean, `(B, m)`."""
        return self._state.deviations(normals)

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is the restart period, in steps or infinity."""
        self.period[mask] = forgetting[mask]
        self.held[mask] = 0
        self._state.clear(mask)

    def update(self, plays: Plays, rewards: Array, active: Mask) -> None:
        """Take in one observation, and restart those whose period is full."""
        self._state.change(1.0, plays, rewards, active)
        self.held += active
        full = self.held >= self.period
        if full.any():
            self.held[full] = 0
            self._state.clear(full)


class WindowSurrogate(Surrogate):
    """Keeps the last `window` observations. A window of infinity keeps everything.

    Args:
        action_set: The arms, or the box.
    """

    def __init__(self, action_set: ActionSet) -> None:
        self._state = unweighted_state(action_set)
        super().__init__(self._state.arrays, self._state.arrays.variance)
        batch, shape = len(self.gain), action_set.play_shape
        self._rows = np.arange(batch)
        self._window = np.full(batch, math.inf)
        self._seen = np.zeros(batch, np.int64)
        self._plays = np.zeros((batch, 1, *shape), np.float64 if shape else np.int64)
        self._rewards = np.zeros((batch, 1))

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features."""
        return self._state.predictor(i)

    def deviations(self, normals: Array) -> Array:
        """Return weights of features drawn around the posterior mean, `(B, m)`."""
        return self._state.deviations(normals)

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is the window, in steps or infinity."""
        # What no int64 can count to will never be full.
        self._window[mask] = np.where(forgetting < LONGEST, forgetting, math.inf)[mask]
        self._seen[mask] = self.held[mask] = 0
        self._state.clear(mask)

    def _make_room(self, size: int) -> None:
        """Double the store until it holds `size` observations, and no more than were seen."""
        held = self._plays.shape[1]
        if size > held:
            missing = (0, max(size, 2 * held) - held)
            flat = [(0, 0)] * (self._plays.ndim - 2)
            self._plays = np.pad(self._plays, ((0, 0), missing, *flat))
            self._rewards = np.pad(self._rewards, ((0, 0), missing))

    def update(self, plays: Plays, rewards: Array, active: Mask) -> None:
        """Take in one observation, and drop the oldest where the window is full."""
        bounded = np.isfinite(self._window)
        place = self._seen % np.where(bounded, self._window, 1).astype(np.int64)
        self._make_room(int(place.max()) + 1)
        full = active & (self._seen >= self._window)
        if full.any():
            old_plays, old_rewards = (
                self._plays[self._rows, place],
                self._rewards[self._rows, place],
            )
            self._state.change(-1.0, old_plays, old_rewards, full)
        self._state.change(1.0, plays, rewards, active)
        kept = active & bounded
        self._plays[kept, place[kept]] = plays[kept]
        self._rewards[kept, place[kept]] = rewards[kept]
        self._seen += active
        self.held += active & ~full


class DiscountSurrogate(Surrogate):
    """Keeps everything, with weights that fade by the discount eta at every step.

    V_t = eta V_{t-1} + phi phi^T + lambda (1 - eta) I changes in full rank, so it is factorised
    at each step: O(m^3 + m^2 n), whatever t is.

    Args:
        action_set: The arms, or the box.
        ratios: A discount for each step in place of one for all, `(L,)`.
        tight: Whether the bound uses sigma-acute of [Deng22] Theorem 2, not sigma~.
    """

    nothing_forgotten = 1.0

    def __init__(
        self, action_set: ActionSet, *, ratios: Array | None = None, tight: bool = False
    ) -> None:
        self._state = GramState(action_set, tight=tight)
        arrays = self._state.arrays
        super().__init__(arrays, arrays.tight if tight else arrays.variance)
        self._rows = np.arange(len(self.gain))
        self._given = ratios is not None
        if ratios is not None:
            self.ratios = np.tile(ratios, (len(self.gain), 1))

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features."""
        return self._state.predictor(i)

    def deviations(self, normals: Array) -> Array:
        """Return weights of features drawn around the posterior mean, `(B, m)`."""
        return self._state.deviations(normals)

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is the discount eta in (0, 1], if no ratios are given."""
        if not self._given:
            self.ratios[mask, 0] = forgetting[mask]
        self.held[mask] = 0
        self._state.clear(mask)

    def update(self, plays: Plays, rewards: Array, active: Mask) -> None:
        """Fade the past and take in one observation."""
        discount = self.ratios[:, 0]
        if self._given:
            discount = self.ratios[self._rows, np.minimum(self.held, self.ratios.shape[1] - 1)]
        self._state.change(1.0, plays, rewards, active, discount)
        self.held += active
