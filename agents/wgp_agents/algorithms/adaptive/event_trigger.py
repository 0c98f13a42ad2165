"""An event trigger: an observation that the posterior holds for impossible empties the memory.

References:
    [BRST25] Brunzema, von Rohr, Solowjow, Trimpe. Event-Triggered Time-Varying Bayesian
        Optimization. TMLR 2025.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.base import Mask
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import Decisions
from wgp_agents.gp.supervisor import Supervisor, forget_all
from wgp_agents.gp.surrogates.weighted import Memory
from wgp_agents.kernels import gram as compiled
from wgp_agents.kernels.arrays import DiscountArrays
from wgp_gym.kernels import Array
from wgp_gym.problem import BanditProblem

__all__ = ["EventTrigger", "predicted"]


class EventTrigger(Supervisor):
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

    def before(self, memory: Memory, uniform: UniformStreams) -> None:
        """Nothing happens before a choice."""

    def chosen(self, plays: NDArray[Any]) -> NDArray[Any]:
        """Return the plays as they are."""
        return plays

    def observe(
        self,
        decisions: Decisions,
        memory: Memory,
        plays: NDArray[Any],
        rewards: Array,
        active: Mask,
    ) -> None:
        """Test the reward; where it does not fit, the memory holds nothing but it."""
        mean, variance = predicted(decisions, memory, plays)
        rho = 2 * np.log(math.pi**2 * self.clock.astype(float) ** 2 / (3 * self._delta))
        bound = np.sqrt(rho) * (np.sqrt(variance) + np.sqrt(decisions.basis.ridge))
        fired = active & (np.abs(rewards - mean) > bound)
        if fired.any():
            forget_all(memory, fired)
        self.clock[active] += 1
        self.clock[fired] = 1
        self.resets[fired] += 1


def predicted(decisions: Decisions, memory: Memory, plays: NDArray[Any]) -> tuple[Array, Array]:
    """Return posterior mean and variance of the function where each learner played, `(B,)` each.

    Args:
        decisions: The set that was chosen from.
        memory: One of equal weights.
        plays: Arms `(B,)`, or places `(B, d)`.
    """
    batch = len(plays)
    if not decisions.play_shape:
        rows = np.arange(batch)
        return memory.mean[rows, plays], memory.variance[rows, plays]
    features, share = decisions.embed(plays)
    arrays, ridge = memory.arrays, decisions.basis.ridge
    assert isinstance(arrays, DiscountArrays)  # as places ask for: see `unweighted_state`
    mean, variance, tight = np.empty((batch, 1)), np.empty((batch, 1)), np.empty((batch, 0))
    compiled.context_posteriors(
        np.ascontiguousarray(features)[:, :, None], decisions.basis, arrays, mean, variance, tight
    )
    left = 0.0 if share is None else ridge / share - ridge  # of k(x, x), without features
    return mean[:, 0], variance[:, 0] + left
