"""PHT-UCB: forgets an arm once a Page-Hinkley test tells that its mean has changed."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from wgp_agents.arms.change_detection import ChangeDetectionUCB
from wgp_agents.arms.statistics import MonitoredPlays
from wgp_agents.core.access import EnvLike
from wgp_agents.detectors.page_hinkley import PageHinkley

__all__ = ["PHTUCB"]


class PHTUCB(ChangeDetectionUCB):
    """CUSUM-UCB with a Page-Hinkley test of each arm in the place of CUSUM: see `CUSUMUCB`.

    The test compares a reward with the mean of all of its arm since its last alarm, not of the
    first M. See `PageHinkley`, also for the changes that it cannot see.

    Deviation: where the noise is larger than that of rewards in [0, 1], `scale` times, the
    padding is `scale` times as large and h, given or not, `scale`^2 times.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        epsilon: The drift of the two walks, > 0, in units of the range. Default 0.1, as there.
        threshold: h > 0. Default: log(T / num_changes), at least 1. Deviation: [Liu18] tunes h for
            CUSUM; this is the same.
        alpha: The share of random plays, in [0, 1]. Default: (num_changes log(T / num_changes) /
            T)^{1/2}.
        xi: Of the padding, > 0.
        num_changes: How many changes theory is to expect, whole numbers in [0, T], scalar or
            `(B,)`. Deviation: 0 counts as 1, or h would be infinite.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range, or the task does not fit: see `ArmsAgent`.

    Source: [Liu18] Liu, Lee, Shroff. A Change-Detection Based Framework for Piecewise-Stationary
    Multi-Armed Bandit Problem. AAAI 2018, CD-UCB with the Page-Hinkley test.
    """

    detector: PageHinkley

    def __init__(
        self,
        env: EnvLike,
        *,
        epsilon: ArrayLike = 0.1,
        threshold: ArrayLike | None = None,
        alpha: ArrayLike | None = None,
        xi: ArrayLike = 1.0,
        num_changes: ArrayLike = 1,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(
            env,
            epsilon=epsilon,
            threshold=threshold,
            alpha=alpha,
            xi=xi,
            num_changes=num_changes,
            reward_range=reward_range,
        )
        shape = self.num_learners, self.num_arms
        drift, threshold = self.epsilon[:, None], self.threshold[:, None]
        self.detector = PageHinkley(shape, drift=drift, threshold=threshold)
        self.statistics = MonitoredPlays(self.detector)
