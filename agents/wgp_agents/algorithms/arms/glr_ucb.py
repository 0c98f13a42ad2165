"""GLR-UCB: forgets once a likelihood ratio tells that the mean of an arm has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.index import exploration_level, force, forced_exploration
from wgp_agents.arms.statistics import MonitoredPlays
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.detectors.glr import GLR
from wgp_agents.kernels.kl_index import kl_indices
from wgp_gym.types import Array, Indices, Mask
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
        threshold: "simple" or "proven": see `GLR`.
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

    Source: [BKMS22] Besson, Kaufmann, Maillard, Seznec. Efficient Change-Point Detection for
    Tackling Piecewise-Stationary Bandits. JMLR 23, 2022, GLR-klUCB with local or global restarts.
    Its first version is Besson and Kaufmann, 2019.
    """

    _needs_noise = False
    learns_by_acting = False
    _constants = ("_indices",)  # room to work in
    statistics: MonitoredPlays

    def __init__(
        self,
        env: EnvLike,
        *,
        rewards: Literal["bernoulli", "gaussian"] | None = None,
        restart: Literal["local", "global"] = "local",
        delta: ArrayLike | None = None,
        threshold: Literal["simple", "proven"] = "simple",
        alpha: ArrayLike | None = None,
        exploration: Literal["rising", "constant"] = "rising",
        c: ArrayLike = 3.0,
        sigma: ArrayLike | None = None,
        resolution: int = 10,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        if rewards is None or (rewards == "gaussian" and sigma is None):
            self.problem.known_noise(type(self).__name__)
        owner, batch = type(self).__name__, self.num_learners
        if rewards is not None:
            check_choice("rewards", rewards, owner, ("bernoulli", "gaussian"))
        self.rewards = rewards
        self.restart = check_choice("restart", restart, owner, ("local", "global"))
        self.exploration = check_choice("exploration", exploration, owner, ("rising", "constant"))
        if alpha is None:  # T = 1 makes it 0, and forces nobody at its only step
            horizon = self._horizon("alpha", "delta")
            share = np.sqrt(self.num_arms * np.log(max(horizon, 2)) / horizon)
            alpha = np.minimum(share, 1.0)
        delta = 1 / np.sqrt(self._horizon("alpha", "delta")) if delta is None else delta
        self.delta = self._parameter("delta", delta, 0, 1, "right")
        self.alpha = self._parameter("alpha", alpha, 0, 1, "right")
        self.c = self._parameter("c", c, 0, closed="left")
        self._tunes_sigma = sigma is None
        self.sigma = self._parameter("sigma", 1.0 if sigma is None else sigma, 0, closed="neither")
        self.bernoulli = np.zeros(batch, bool)
        shape, delta = (batch, self.num_arms), self.delta[:, None]
        self.detector = GLR(shape, delta=delta, threshold=threshold, resolution=resolution)
        self.statistics = MonitoredPlays(self.detector, restart)
        self._indices = np.zeros(shape)

    def _clear(self, mask: Mask) -> None:
        noise = self._noise_scale() / self._width
        if self._tunes_sigma:
            self.sigma[mask] = np.maximum(noise, MIN_SIGMA)[mask]
        given = self.problem.reward_range is not None or self._given_range is not None
        bernoulli = np.isclose(noise, 0.5, rtol=1e-9, atol=0.0) & given
        if self.rewards is not None:
            bernoulli[:] = self.rewards == "bernoulli"
        self.bernoulli[mask] = bernoulli[mask]
        self.detector.sigma[mask] = self.sigma[mask, None]
        self.detector.bernoulli[mask] = bernoulli[mask, None]
        super()._clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        del uniform
        plays = self.statistics
        level = exploration_level(plays.age + 1, self.c[:, None])
        kl_indices(plays.counts, plays.sums, level, self.bernoulli, self.sigma, self._indices)
        episodes = plays.alarms + 1 if self.exploration == "rising" else 1
        rate = np.minimum(self.alpha * np.sqrt(episodes), 1.0)
        turn = forced_exploration(plays.steps + 1, rate, self.num_arms)
        return force(self._indices, turn, self.allowed)

    def _take(self, arms: Indices, rewards: Array, active: Mask) -> None:
        seen = np.where(self.bernoulli, np.clip(rewards, 0.0, 1.0), rewards)
        super()._take(arms, seen, active)
