"""GLR-UCB: forgets once a likelihood ratio tells that the mean of an arm has changed.

References:
    [BKMS22] Besson, Kaufmann, Maillard, Seznec. Efficient Change-Point Detection for Tackling
    Piecewise-Stationary Bandits. JMLR 23, 2022. Its first version is Besson and Kaufmann, 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.forced import force, forced_exploration
from wgp_agents.arms.kl_index import exploration_level, kl_indices
from wgp_agents.arms.watched import WatchedPlays
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.detectors.glr import GLR
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array, Mask
from wgp_gym.validation import check_choice

__all__ = ["GLRUCB"]

MIN_SIGMA = 1e-3  # rewards without noise would make every difference a change


class GLRUCB(IndexAgent):
    """GLR-klUCB and GLR-UCB: kl-UCB on the plays since the last alarm, a GLR test of each arm.

    At step t: arm k if t mod floor(K / alpha_e) = k in {1, ..., K}; else the one of the largest
    q with N_k d(mean, q) <= f(t - tau_k), N_k its plays and tau_k the time of its last restart;
    f(t) = log(t) + c log log t. alpha_e = alpha e^{1/2} after e - 1 alarms. See `GLR` for the test
    and `forced_exploration` for the period. With the number U of changes known:
    exploration="constant" and alpha = (U K log(T) / T)^{1/2}.

    Deviation: an arm without plays goes first, where kl-UCB gives it the index 1.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        rewards: What d and the test are of: "bernoulli", kl, for rewards in the range (those
            beyond are cut off there); "gaussian", (x - y)^2 / (2 sigma^2). Default: "bernoulli"
            for learners with a `reward_range` and noise of half its width, as of rewards that
            are one of its ends; else "gaussian".
        restart: What an alarm of an arm makes forget: "local", that arm; "global", all.
        delta: Of the test, in (0, 1]. Default T^{-1/2}.
        threshold: "simple" or "proven": see `wgp_agents.detectors.threshold`.
        alpha: The share of forced plays at first, in (0, 1]. Default: (K log(T) / T)^{1/2}, at
            most 1.
        exploration: "rising", as above, or "constant": alpha_e = alpha.
        c: Of f, >= 0: 3 in the analysis; the authors' own experiments leave the term out.
        sigma: The sub-Gaussian constant of the noise, > 0, in units of the range. Default: R /
            width, at least 0.001.
        resolution: M of the test's splits, see `GLR`.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range, or the task does not fit: see `ArmsAgent`.

    Source: [BKMS22], GLR-klUCB with local or global restarts.
    """

    def __init__(
        self,
        env: Any,
        *,
        rewards: str | None = None,
        restart: str = "local",
        delta: Any = None,
        threshold: str = "simple",
        alpha: Any = None,
        exploration: str = "rising",
        c: Any = 3.0,
        sigma: Any = None,
        resolution: int = 10,
        reward_range: Any = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        owner, batch, horizon = type(self).__name__, self.num_learners, self.problem.horizon
        if rewards is not None:
            check_choice("rewards", rewards, owner, ("bernoulli", "gaussian"))
        self.rewards = rewards
        self.restart = check_choice("restart", restart, owner, ("local", "global"))
        self.exploration = check_choice("exploration", exploration, owner, ("rising", "constant"))
        delta = 1 / np.sqrt(horizon) if delta is None else delta
        if alpha is None:  # T = 1 makes it 0, and forces nobody at its only step
            share = np.sqrt(self.num_arms * np.log(max(horizon, 2)) / horizon)
            alpha = np.minimum(share, 1.0)
        self.delta = per_learner(owner, "delta", delta, batch, 0, 1, "right")
        self.alpha = per_learner(owner, "alpha", alpha, batch, 0, 1, "right")
        self.c = per_learner(owner, "c", c, batch, 0, np.inf, "left")
        self._given_sigma = sigma
        if sigma is not None:
            self._given_sigma = per_learner(owner, "sigma", sigma, batch, 0, np.inf, "neither")
        self.sigma, self.bernoulli = np.ones(batch), np.zeros(batch, bool)
        shape = batch, self.num_arms
        self.detector = GLR(
            shape, delta=self.delta[:, None], threshold=threshold, resolution=resolution
        )
        self.watched = WatchedPlays(self.detector)
        self._age, self.alarms = np.zeros(shape, np.int64), np.zeros(batch, np.int64)
        self._indices = np.zeros(shape)

    def _clear(self, mask: Mask) -> None:
        noise = self._noise_scale() / self._width
        sigma = np.maximum(noise, MIN_SIGMA) if self._given_sigma is None else self._given_sigma
        given = self.problem.reward_range is not None or self._given_range is not None
        bernoulli = np.isclose(noise, 0.5, rtol=1e-9, atol=0.0) & given
        if self.rewards is not None:
            bernoulli[:] = self.rewards == "bernoulli"
        self.sigma[mask], self.bernoulli[mask] = sigma[mask], bernoulli[mask]
        self.detector.sigma[mask] = sigma[mask, None]
        self.detector.bernoulli[mask] = bernoulli[mask, None]
        self._age[mask] = 0
        self.alarms[mask] = 0
        self.watched.clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        del uniform
        level = exploration_level(self._age + 1, self.c[:, None])
        statistics, family = self.watched.statistics, (self.bernoulli, self.sigma)
        kl_indices(statistics.counts, statistics.sums, level, *family, self._indices)
        episodes = self.alarms + 1 if self.exploration == "rising" else 1
        rate = np.minimum(self.alpha * np.sqrt(episodes), 1.0)
        return force(self._indices, forced_exploration(statistics.steps + 1, rate, self.num_arms))

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        seen = np.where(self.bernoulli, np.clip(rewards, 0.0, 1.0), rewards)
        alarms = self.watched.add(arms, seen, active)
        raised = alarms.sum(axis=1) > 0
        if self.restart == "global":
            alarms = np.broadcast_to(raised[:, None], alarms.shape)
        self._age[active] += 1
        self._age[alarms] = 0
        self.alarms += raised
        self.watched.forget(alarms)
