"""DAL-GP-UCB: IGP-UCB with forced exploration of a few arms and change detectors on these."""

from __future__ import annotations

import math
from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.detectors.glr import GLR
from wgp_agents.gp.action_sets import FeatureSource, Plays, check_arms_stay
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.source import feature_source
from wgp_agents.gp.surrogates.base import Surrogate, forget_all
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.kernels import blas
from wgp_agents.parameters import LARGEST_COUNT, per_learner
from wgp_gym.features import exact_features
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Indices, Mask
from wgp_gym.validation import check_float, check_int

__all__ = ["DALGPUCB", "ChangeDetection", "covering_set"]

SAME = 1e-5  # points this close are one: a wrapper that rescales them rounds
MIN_SIGMA = 1e-3  # without noise every difference would be a change
SMALLEST_RATE = 1e-12  # keeps periods within int64
SMALLEST_ERROR = 1e-5  # of a covering set; below it the residual is a rounding error


class DALGPUCB(GPAgent):
    """Detection-augmented learning over IGP-UCB: restarts once a covering arm has changed.

    Of every ceil(N_e / alpha_k) steps since the k-th restart, N_e play the arms of a covering set
    in order, alpha_k = (k N_e log(T) / T)^{1/2}; the others are IGP-UCB's. The rewards of each
    covering arm go to a generalised likelihood ratio test of Gaussian laws of standard deviation R:
    after n of them there is an alarm where

        max over s of s (n - s) / (2 R^2 n) (mean of the first s - mean of the rest)^2

    reaches beta(n, delta_F) = 2 T(ln(3 n^{3/2} / delta_F) / 2) + 6 ln(1 + ln n), with T as in
    `wgp_agents.kernels.detectors`: see `ChangeDetection` and `GLR`. No number of changes and no
    budget is needed.

    The covering set is chosen by a pivoted Cholesky factorisation, until a change g that is 0 on
    all of its arms has |g(x)| <= covering_error ||g|| max_z k(z, z)^{1/2} at every x: see
    `covering_set`. The paper leaves that open for kernels; for a linear kernel the set is a basis,
    as there.

    Deviation: the paper has a larger threshold, 6 ln(1 + ln n) + 5/2 ln(4 n^{3/2} / delta_F) + 11
    (larger where delta_F <= 0.01); the one above is proven too. The tests see all plays of a
    covering arm, and IGP-UCB the forced ones, which only adds data. The play that raised the alarm
    is kept, since it met the new function.

    Source: Gerogiannis, Huang, Bose, Veeravalli. DAL: A Practical Prior-Free Black-Box Framework
    for Piecewise Stationary Bandits. PMLR 306, 2026 (arXiv 2501.19401).

    Args:
        env: The environment to play, or the `BanditProblem` alone. On a box the covering set is
            part of its grid, in single precision.
        covering_error: In (0, 1): see above.
        num_covering: The largest N_e, at least 1, whatever the error then is. Default: no limit.
        exploration: A factor > 0 of alpha_k, scalar or `(B,)`; 1 is theory's, which is much for
            a short horizon.
        alarm_delta: delta_F, the probability in (0, 1] of a false alarm of one test, scalar or
            `(B,)`. Default: 1 / T.
        threshold: "proven" or "simple": see `GLR`.
        resolution: M of the test's splits, see `GLR`.
        **common: See `GPAgent`.

    Attributes:
        covering: The covering set, `(N_e,)` rows of the domain.
        resets: The alarms of this episode, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.
    """

    takes_elapsed = False

    def __init__(
        self,
        env: EnvLike,
        *,
        covering_error: float = 0.5,
        num_covering: int | None = None,
        exploration: ArrayLike = 1.0,
        alarm_delta: ArrayLike | None = None,
        threshold: Literal["proven", "simple"] = "proven",
        resolution: int = 10,
        **common: Unpack[GPParameters],
    ) -> None:
        owner, problem = "DALGPUCB", problem_reader(env)()
        check_arms_stay(owner, problem)
        batch, horizon = problem.batch_size or 1, problem.known_horizon(owner)
        error = check_float("covering_error", covering_error, owner, 0.0, 1.0, closed="neither")
        if num_covering is not None:
            check_int("num_covering", num_covering, owner, 1, LARGEST_COUNT)
        factor = per_learner(owner, "exploration", exploration, batch, 0.0, np.inf, "neither")
        alarm_delta = 1 / horizon if alarm_delta is None else alarm_delta
        self.alarm_delta = per_learner(owner, "alarm_delta", alarm_delta, batch, 0.0, 1.0, "right")
        source = feature_source(common.get("features", "exact"), problem, owner)
        self.covering = covering_set(source, problem.domain, error, num_covering)
        detector = GLR(
            (batch, len(self.covering)),
            delta=self.alarm_delta[:, None],
            threshold=threshold,
            resolution=resolution,
        )
        covering: Actions = self.covering
        if problem.continuous:
            covering = problem.domain[covering].astype(np.float32)
        detection = ChangeDetection(covering, horizon, factor, detector)
        self.resets = detection.resets
        super().__init__(env, surrogate=RestartSurrogate, restart_rule=detection, **common)


class ChangeDetection(RestartRule):
    """Forced exploration of a covering set, with a test of each of its arms for a change.

    In the steps n = 1, 2, ... since the k-th start, arm j of N_e is forced where n - 1 = j - 1
    modulo ceil(N_e / alpha_k), with alpha_k = c (k N_e log(T) / T)^{1/2}, at most 1. An alarm of
    one arm's test restarts the surrogate, all tests, and n.

    Args:
        covering: Arms `(N_e,)`, or points of a box `(N_e, d)`.
        horizon: T.
        exploration: c > 0, `(B,)`.
        detector: Tests of `(B, N_e)` streams; its sigma is set to R.

    Attributes:
        resets: The alarms of this episode, `(B,)`.
    """

    learns_by_acting = False

    def __init__(self, covering: Actions, horizon: int, exploration: Array, detector: GLR) -> None:
        self._covering, self.detector = covering, detector
        per_arm = math.log(max(horizon, 2)) / horizon  # log(1) = 0 would force no arm
        self._rate = exploration * math.sqrt(len(covering) * per_arm)
        self._age = np.zeros(len(exploration), np.int64)
        self.resets = np.zeros(len(exploration), np.int64)

    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Array | None, noise_scale: Array
    ) -> None:
        """Restart the tests and the count of steps."""
        self.detector.sigma[mask] = np.maximum(noise_scale, MIN_SIGMA)[mask, None]
        self.detector.restart(mask[:, None])
        self._age[mask] = 0
        self.resets[mask] = 0

    def override_action(
        self, actions: Actions, allowed: Mask | None, uniform: UniformStreams
    ) -> Actions:
        """Force the arms of the covering set when due; one that is not allowed is skipped."""
        size = len(self._covering)
        rate = np.clip(self._rate * np.sqrt(self.resets + 1.0), SMALLEST_RATE, 1.0)
        # ceil(N_e / alpha_k), rounded first against rounding errors. Deviation: at least
        # N_e + 1, or IGP-UCB would never play.
        period = np.maximum(np.ceil(np.round(size / rate, 9)), size + 1).astype(np.int64)
        place = self._age % period
        forced = place < size
        if allowed is not None:
            rows = np.arange(len(place))
            forced &= allowed[rows, self._covering[np.minimum(place, size - 1)]]
        played = actions.copy()
        played[forced] = self._covering[place[forced]]
        return played

    def before_update(
        self, surrogate: Surrogate, plays: Plays, rewards: Array, active: Mask
    ) -> None:
        """Test the arm that was played, if it is in the covering set."""
        apart = np.abs(plays.actions[:, None] - self._covering)
        met = (apart if apart.ndim == 2 else apart.max(axis=2)) <= SAME
        shown = np.broadcast_to(rewards[:, None], met.shape)
        alarms = self.detector.update(shown, met & active[:, None]).sum(axis=1) > 0
        self._age += active
        if alarms.any():
            forget_all(surrogate, alarms)
            self.detector.restart(alarms[:, None])
            self._age[alarms] = 0
            self.resets[alarms] += 1


def covering_set(
    source: FeatureSource, points: Array, error: float, most: int | None = None
) -> Indices:
    """Return the indices of points that determine every function up to an error, `(N_e,)`.

    They are the pivots of a pivoted Cholesky factorisation, each the point x with the largest
    P(x)^2 = k(x, x) - k_S(x)^T K_S^{-1} k_S(x), S the points so far, until
    P(x) <= error max_z k(z, z)^{1/2} everywhere. A function g that is 0 on S has
    |g(x)| <= P(x) ||g||. For a linear kernel S is a basis.

    Args:
        source: The kernel, or the feature map in its place.
        points: The points to choose from, `(n, d)`.
        error: In [0, 1).
        most: The largest N_e.
    """
    with blas.single_thread():
        largest = float(exact_features(source, points, max_features=0).prior.max())
        tolerance = max(error, SMALLEST_ERROR) ** 2 * largest
        return exact_features(source, points, tolerance, most).pivots
