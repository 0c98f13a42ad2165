"""DAL-GP-UCB: IGP-UCB, with change detectors on a few arms that are played in turn."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from wgp_agents.algorithms.adaptive.augmented import ChangeDetection, covering_set
from wgp_agents.core.access import problem_reader
from wgp_agents.detectors.glr import GLR
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.grid import Grid
from wgp_agents.gp.source import feature_source
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.parameters import LARGEST_COUNT, per_learner
from wgp_gym.validation import check_float, check_int

__all__ = ["DALGPUCB"]


class DALGPUCB(GPAgent):
    """Detection-augmented learning over IGP-UCB: forgets all once a covering arm has changed.

    Of the steps since the k-th start, N_e in ceil(N_e / alpha_k) play the arms of a covering set
    in turn, alpha_k = (k N_e log(T) / T)^{1/2}; the others are IGP-UCB's. The rewards of each
    covering arm go to a generalised likelihood ratio test of Gaussian laws of standard deviation
    R: with n of them so far there is an alarm where

        max over s of s (n - s) / (2 R^2 n) (mean of the first s - mean of the rest)^2

    reaches beta(n, delta_F) = 2 T(ln(3 n^{3/2} / delta_F) / 2) + 6 ln(1 + ln n), with T as in
    `wgp_agents.detectors.threshold`: see `ChangeDetection` and `GLR`. No number of changes and no
    budget is needed.

    The covering set is one that no change can hide from, as far as the kernel goes: pivots of a
    pivoted Cholesky factorisation, until a change g that none of them sees has
    |g(x)| <= covering_error ||g|| max_z k(z, z)^{1/2} at every x; see `covering_set`. Its paper
    leaves that open for kernels; of a linear one it is a basis, as there.

    Deviation: the paper has a larger threshold, 6 ln(1 + ln n) + 5/2 ln(4 n^{3/2} / delta_F) + 11
    (larger where delta_F <= 0.01); that above is proven too. The tests see all plays of a covering
    arm, and IGP-UCB the forced ones, which only adds to what both know. The play that gave the
    alarm, which has met the new function, is kept.

    Source: Gerogiannis, Huang, Bose, Veeravalli. DAL: A Practical Prior-Free Black-Box Framework
    for Piecewise Stationary Bandits. PMLR 306, 2026 (arXiv 2501.19401).

    Args:
        env: The environment to play, or the `BanditProblem` alone. On a box the covering set is
            of its grid, in single precision.
        covering_error: In (0, 1): see above.
        num_covering: N_e >= 1 at most, whatever the error then is. Default: no limit.
        exploration: A factor > 0 of alpha_k, scalar or `(B,)`; 1 is theory's, which is much for
            a short horizon.
        alarm_delta: delta_F, the chance in (0, 1] of a false alarm of one test, scalar or `(B,)`.
            Default: 1 / T.
        threshold: "proven" or "simple": see `wgp_agents.detectors.threshold`.
        resolution: M of the test's splits, see `GLR`.
        **common: See `GPAgent`.

    Attributes:
        covering: The covering set, `(N_e,)` rows of the domain.
        resets: The alarms of this episode, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.
    """

    def __init__(
        self,
        env: Any,
        *,
        covering_error: float = 0.5,
        num_covering: int | None = None,
        exploration: Any = 1.0,
        alarm_delta: Any = None,
        threshold: str = "proven",
        resolution: int = 10,
        **common: Unpack[GPParameters],
    ) -> None:
        owner, problem = "DALGPUCB", problem_reader(env)()
        if problem.contextual:
            raise ValueError(f"{owner} asks for arms that stay. The task draws them at each step.")
        batch, horizon = problem.batch_size or 1, problem.horizon
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
        places = Grid(problem).played(self.covering)
        detection = ChangeDetection(places, horizon, factor, detector)
        self.resets = detection.resets
        super().__init__(env, surrogate=RestartSurrogate, restart_rule=detection, **common)
