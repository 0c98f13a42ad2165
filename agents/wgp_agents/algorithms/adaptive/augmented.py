"""Detection-augmented learning: change detectors on a few arms that are played in turn.

References:
    [GHBV26] Gerogiannis, Huang, Bose, Veeravalli. DAL: A Practical Prior-Free Black-Box Framework
        for Piecewise Stationary Bandits. PMLR 306, 2026.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.core.randomness import UniformStreams
from wgp_agents.detectors.glr import GLR
from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.restart_rule import RestartRule, forget_all
from wgp_agents.gp.surrogates.weighted import Surrogate
from wgp_gym.features import FeatureMap, exact_features
from wgp_gym.kernels import Kernel
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

__all__ = ["ChangeDetection", "covering_set"]

MIN_SIGMA = 1e-3  # rewards without noise would make every difference a change
SMALLEST_RATE = 1e-12  # or a period might be more than can be counted to
SMALLEST_ERROR = 1e-5  # of a covering set: what is left then is rounding


class ChangeDetection(RestartRule):
    """Plays the arms of a covering set in turn now and then, and tests each for a change.

    In the steps n = 1, 2, ... since the k-th start, arm j of N_e is forced where
    n - 1 = j - 1 modulo ceil(N_e / alpha_k), with alpha_k = c (k N_e log(T) / T)^{1/2}, at most 1.
    An alarm of one arm's test empties the surrogate, restarts all tests, and makes n = 0.

    Args:
        covering: Arms `(N_e,)`, or points of a box `(N_e, d)`.
        horizon: T.
        exploration: c > 0, `(B,)`.
        detector: Tests of `(B, N_e)` streams; its sigma is set to R.

    Attributes:
        resets: The alarms of this episode, `(B,)`.
    """

    def __init__(
        self, covering: NDArray[Any], horizon: int, exploration: Array, detector: GLR
    ) -> None:
        self._covering, self.detector = covering, detector
        per_arm = math.log(max(horizon, 2)) / horizon  # T = 1 would force nobody at its only step
        self._rate = exploration * math.sqrt(len(covering) * per_arm)
        self._age = np.zeros(len(exploration), np.int64)
        self.resets = np.zeros(len(exploration), np.int64)

    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Any, noise_scale: Array
    ) -> None:
        """Begin the first turn."""
        del problem, norm_bound
        self.detector.sigma[mask] = np.maximum(noise_scale, MIN_SIGMA)[mask, None]
        self.detector.restart(mask[:, None])
        self._age[mask] = 0
        self.resets[mask] = 0

    def before(self, surrogate: Surrogate, uniform: UniformStreams) -> None:
        """Nothing happens before a choice."""

    def chosen(self, plays: NDArray[Any]) -> NDArray[Any]:
        """Put the covering set's arms in the place of the plays where it is their turn."""
        size = len(self._covering)
        rate = np.clip(self._rate * np.sqrt(self.resets + 1.0), SMALLEST_RATE, 1.0)
        # Rounded first, that no period is a step longer for a last bit. Deviation: at least
        # N_e + 1, or the learner would never have its turn.
        period = np.maximum(np.ceil(np.round(size / rate, 9)), size + 1).astype(np.int64)
        place = self._age % period
        forced = place < size
        played = plays.copy()
        played[forced] = self._covering[place[forced]]
        return played

    def observe(
        self,
        action_set: ActionSet,
        surrogate: Surrogate,
        plays: NDArray[Any],
        rewards: Array,
        active: Mask,
    ) -> None:
        """Test the arm that was played, if it is one of the set."""
        del action_set
        met = plays[:, None] == self._covering
        if met.ndim == 3:
            met = met.all(axis=2)
        shown = np.broadcast_to(rewards[:, None], met.shape)
        alarms = self.detector.update(shown, met & active[:, None]).sum(axis=1) > 0
        self._age += active
        if alarms.any():
            forget_all(surrogate, alarms)
            self.detector.restart(alarms[:, None])
            self._age[alarms] = 0
            self.resets[alarms] += 1


def covering_set(
    source: Kernel | FeatureMap, points: Array, error: float, most: int | None = None
) -> NDArray[np.intp]:
    """Return points such that no function of the RKHS can hide from them, `(N_e,)`.

    They are the pivots of a pivoted Cholesky factorisation: one after the other the point x with
    the largest P(x)^2 = k(x, x) - k_S(x)^T K_S^{-1} k_S(x), S the points so far, until
    P(x) <= error max_z k(z, z)^{1/2} everywhere. A function g that is 0 on S has
    |g(x)| <= P(x) ||g||; of a linear kernel S is a basis.

    Args:
        source: The kernel, or the feature map in its place.
        points: The points to choose from, `(n, d)`.
        error: At least 0 and below 1.
        most: Stop at this many points in any case.
    """
    largest = float(exact_features(source, points, max_features=0).prior.max())
    tolerance = max(error, SMALLEST_ERROR) ** 2 * largest
    return exact_features(source, points, tolerance, most).pivots
