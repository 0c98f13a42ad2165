"""An event trigger: an observation that the posterior holds for impossible empties the surrogate.

References:
    [BRST25] Brunzema, von Rohr, Solowjow, Trimpe. Event-Triggered Time-Varying Bayesian
        Optimization. TMLR 2025.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.restart_rule import RestartRule, forget_all
from wgp_agents.gp.surrogates.weighted import Surrogate
from wgp_agents.kernels import gram as compiled
from wgp_agents.kernels.arrays import DiscountArrays
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

__all__ = ["EventTrigger", "predicted"]


class EventTrigger(RestartRule):
    """Empties a memory where |y - mean(x)| > rho_t^{1/2} std(x) + w_t: the trigger of [BRST25].

    rho_t = 2 log(2 pi_t / delta), w_t^2 = 2 lambda log(2 pi_t / delta), pi_t = pi^2 t^2 / 6; mean
    and std are those before the play, t is 1 at the first test after the memory was emptied.

    False alarms: where the function is a draw from the prior that does not change, and the noise
    Gaussian of variance lambda, |f - mean| > rho_t^{1/2} std and |noise| > w_t happen each with a
    probability of at most exp(-rho_t / 2) = delta / (2 pi_t), a Gaussian tail; over both and all t
    that is delta, since the sum of 1 / pi_t is 1.

    Args:
        delta: The chance of a false alarm, in (0, 1), `(B,)`.

    Attributes:
        clock: t, `(B,)`.
        resets: How often each memory was emptied in this episode, `(B,)`.
    """

    def __init__(self, delta: Array) -> None:
        self._delta = delta
        self.clock = np.ones(len(delta), np.int64)
        self.resets = np.zeros(len(delta), np.int64)

    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Any, noise_scale: Array
    ) -> None:
        """Put the clock to its start."""
        del problem, norm_bound, noise_scale
        self.clock[mask] = 1
        self.resets[mask] = 0

    def before(self, surrogate: Surrogate, uniform: UniformStreams) -> None:
        """Nothing happens before a choice."""

    def chosen(self, plays: NDArray[Any]) -> NDArray[Any]:
        """Return the plays as they are."""
        return plays

    def observe(
        self,
        action_set: ActionSet,
        surrogate: Surrogate,
        plays: NDArray[Any],
        rewards: Array,
        active: Mask,
    ) -> None:
        """Test the reward; where it does not fit, the memory holds nothing but it."""
        mean, variance = predicted(action_set, surrogate, plays)
        rho = 2 * np.log(math.pi**2 * self.clock.astype(float) ** 2 / (3 * self._delta))
        bound = np.sqrt(rho) * (np.sqrt(variance) + np.sqrt(action_set.basis.regularization))
        fired = active & (np.abs(rewards - mean) > bound)
        if fired.any():
            forget_all(surrogate, fired)
        self.clock[active] += 1
        self.clock[fired] = 1
        self.resets[fired] += 1


def predicted(
    action_set: ActionSet, surrogate: Surrogate, plays: NDArray[Any]
) -> tuple[Array, Array]:
    """Return posterior mean and variance of the function where each learner played, `(B,)` each.

    Args:
        action_set: The set that was chosen from.
        surrogate: One of equal weights.
        plays: Arms `(B,)`, or places `(B, d)`.
    """
    batch = len(plays)
    if not action_set.play_shape:
        rows = np.arange(batch)
        return surrogate.mean[rows, plays], surrogate.variance[rows, plays]
    features, share = action_set.embed(plays)
    arrays, regularization = surrogate.arrays, action_set.basis.regularization
    assert isinstance(arrays, DiscountArrays)  # as places ask for: see `unweighted_state`
    mean, variance, tight = np.empty((batch, 1)), np.empty((batch, 1)), np.empty((batch, 0))
    compiled.context_posteriors(
        np.ascontiguousarray(features)[:, :, None], action_set.basis, arrays, mean, variance, tight
    )
    left = (
        0.0 if share is None else regularization / share - regularization
    )  # of k(x, x), without features
    return mean[:, 0], variance[:, 0] + left
