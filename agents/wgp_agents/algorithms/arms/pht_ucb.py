"""PHT-UCB: forgets an arm once a Page-Hinkley test tells that its mean has changed."""

from __future__ import annotations

from typing import Unpack

from wgp_agents.arms.change_detection import ChangeDetectionParameters, ChangeDetectionUCB
from wgp_agents.arms.statistics import MonitoredPlays
from wgp_agents.core.access import EnvLike
from wgp_agents.detectors.page_hinkley import PageHinkley

__all__ = ["PHTUCB"]


class PHTUCB(ChangeDetectionUCB):
    """UCB on the plays of each arm since its last alarm, with a Page-Hinkley test of each arm.

    See `ChangeDetectionUCB`. The test compares a reward with the mean of all of its arm since its
    last alarm, not of the first M as `CUSUMUCB` does. See `PageHinkley`, also for the changes that
    it cannot see. Deviation: [Liu18] tunes h for CUSUM; this is the same.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        **common: See `ChangeDetectionUCB`.

    Raises:
        ValueError: If a parameter is out of its range, or the task does not fit: see `ArmsAgent`.

    Source: [Liu18] Liu, Lee, Shroff. A Change-Detection Based Framework for Piecewise-Stationary
    Multi-Armed Bandit Problem. AAAI 2018, CD-UCB with the Page-Hinkley test.
    """

    detector: PageHinkley

    def __init__(self, env: EnvLike, **common: Unpack[ChangeDetectionParameters]) -> None:
        super().__init__(env, **common)
        shape = self.num_learners, self.num_arms
        drift, threshold = self.epsilon[:, None], self.threshold[:, None]
        self.detector = PageHinkley(shape, drift=drift, threshold=threshold)
        self.statistics = MonitoredPlays(self.detector)
