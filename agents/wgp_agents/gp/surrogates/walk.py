"""The memory of a function that walks at random, as a Gaussian process whose variance grows.

[BRT22] multiplies the kernel k by that of a Wiener process, k(x, x') (1 + sigma_w^2 min(t, t'))
with t = 0 at the first play: f_{t+1} = f_t + sigma_w g_{t+1}, the g independent draws from the
Gaussian process of k. Nothing draws f back to 0, as the drift of
`wgp_agents.gp.surrogates.drift` does.

References:
    [BRT22] Brunzema, von Rohr, Trimpe. On Controller Tuning with Time-Varying Bayesian
        Optimization. CDC 2022.
"""

from __future__ import annotations

import numpy as np

from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.surrogates.drift import filter_predictor, one_filter
from wgp_agents.gp.surrogates.state import Plays, Predictor
from wgp_agents.gp.surrogates.weighted import Surrogate
from wgp_agents.kernels.arrays import DriftArrays
from wgp_agents.kernels.drift import drift_deviations, drift_update
from wgp_gym.types import Array, Mask

__all__ = ["WalkSurrogate"]


class WalkSurrogate(Surrogate):
    """Keeps the exact posterior of a function that walks at random: O(m^2 + m n) a step.

    With v_t = 1 + t sigma_w^2, f_t / v_t^{1/2} has the prior variance k(x, x) at all t and drifts
    as the model of `DriftSurrogate` does, with eps_t = sigma_w^2 / v_{t+1}: so its Kalman step
    serves, with rewards over v_t^{1/2} and the noise variance lambda / v_t. The gain is
    1/2 log det(I + K / lambda), K `(t, t)` the covariance of the plays.

    On a box, what the features leave out is added to the noise of a play. Deviation: between the
    candidates it is added to the variance as it was at the first play, without v_t.

    Args:
        action_set: The arms, or the box.
        injection: sigma_w^2 >= 0 of every learner, `(B,)`.

    Attributes:
        arrays: The filter of f_t.
    """

    nothing_forgotten = 0.0

    def __init__(self, action_set: ActionSet, *, injection: Array) -> None:
        basis = action_set.basis
        batch, (m, n) = len(basis.regularization), basis.phi.shape
        self.basis, self._embed, self._injection = basis, action_set.embed, injection
        arrays, self._level = one_filter(batch, m, n), one_filter(batch, m, n)
        super().__init__(arrays, arrays.variance)
        self.kept: DriftArrays = arrays
        self._size = np.ones(batch)  # v_t

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all, and start with t = 0; the injection stays that of the constructor."""
        del forgetting
        for kept in (self._level, self.kept):
            for array in (kept.weights, kept.score, kept.gains, kept.age, kept.mean, kept.gain):
                array[mask] = 0
            kept.covariance[mask] = np.eye(len(self.basis.phi))
            kept.variance[mask] = self.basis.prior
        self._size[mask] = 1.0
        self.held[mask] = 0

    def update(self, plays: Plays, rewards: Array, active: Mask) -> None:
        """Take in one observation, and let the function walk to the next step."""
        features, share = self._embed(plays)
        regularization, now, level = self.basis.regularization, self._size, self._level
        left = 0.0 if share is None else regularization / share - regularization
        then = now + self._injection
        level.eps[:, 0] = self._injection / then
        scaled, noise = rewards / np.sqrt(now), regularization / now + left
        drift_update(features, scaled, noise, active, self.basis, level)
        self._size = np.where(active, then, now)
        self.held += active
        self._scale()

    def _scale(self) -> None:
        """Turn the filter of f_t / v_t^{1/2} into that of f_t."""
        level, kept, size = self._level, self.kept, self._size
        root = np.sqrt(size)
        np.multiply(level.covariance, size[:, None, None, None], out=kept.covariance)
        np.multiply(level.weights, root[:, None, None], out=kept.weights)
        np.multiply(level.mean, root[:, None], out=kept.mean)
        np.multiply(level.variance, size[:, None], out=kept.variance)
        kept.gain[:] = level.gain

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features `(m, q)`: see `Predictor`."""
        return filter_predictor(i, self.basis.rank, self.kept)

    def deviations(self, normals: Array) -> Array:
        """Return weights drawn around the posterior mean, from standard normals `(B, m)`."""
        drawn = np.zeros_like(normals)
        drift_deviations(normals, self.basis.rank, self.kept, drawn)
        return drawn
