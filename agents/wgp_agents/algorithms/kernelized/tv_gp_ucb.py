"""TV-GP-UCB: holds the function for a draw that drifts step by step."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Unpack

import numpy as np

from wgp_agents.base import locked
from wgp_agents.core.access import problem_reader
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.bayes_width import (
    BayesParameters,
    DriftingBoxWidth,
    bayes_parameters,
    bayes_width,
)
from wgp_agents.gp.constant_width import ConstantWidth
from wgp_agents.gp.surrogates.drift import DriftSurrogate
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array
from wgp_gym.validation import reject

__all__ = ["TVGPUCB"]


class TVGPUCB(GPAgent):
    """Time-varying GP-UCB: f_{t+1} = (1 - eps)^{1/2} f_t + eps^{1/2} g_{t+1}, g a fresh draw.

    Plays argmax mean + beta_t^{1/2} std of the posterior with the covariance
    k(x, x') (1 - eps)^{|t - t'| / 2}, exactly: see `DriftSurrogate`.

    Its paper knows eps. Nothing that a task states says what it is, so the default is a value of
    the size that the paper plays with. Deviation: "fit" estimates it from the agent's own plays,
    which may miss a drift where it does not look: functions that move more smoothly than the
    model's look slower than they are.

    Source: Bogunovic, Scarlett, Cevher. Time-Varying Gaussian Process Bandit Optimization.
    AISTATS 2016. `confidence_width="constant"` is the variant of Mandl and Kekkonen (2026).

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        eps: The drift, in [0, 1]: 0 stays, 1 forgets at once. "fit": the likeliest so far of
            0 and eight values from 1e-4 to 0.3.
        confidence_width: beta_t^{1/2}, the factor of the standard deviation. "heuristic":
            (0.8 log(4 t))^{1/2}, of its experiments; "theory": on n arms
            (2 log(n pi^2 t^2 / (6 delta)))^{1/2}, on a box `DriftingBoxWidth`; "constant":
            (2 log 6 + (1 + d) log(1 / eps))^{1/2}, with the eps of `drift` and 1 / eps at most T:
            see `ConstantWidth`; a number; or a function of the number of observations so far.
        delta: The probability in (0, 1) with which the bound of "theory" may fail.
        **common: `regularization`, `noise_scale` and `features`, as in `GPUCB`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: Any,
        *,
        eps: Any = 0.01,
        delta: Any = 0.1,
        confidence_width: Any = "heuristic",
        **common: Unpack[BayesParameters],
    ) -> None:
        parameters = bayes_parameters("TVGPUCB", common)
        problem = problem_reader(env)()
        surrogate = partial(DriftSurrogate, eps=drifts(eps, problem.batch_size or 1))
        constant = ConstantWidth(self._drifts, problem.domain.shape[1], problem.horizon)
        width = bayes_width(
            "TVGPUCB", problem, confidence_width, delta, DriftingBoxWidth, constant=constant
        )
        super().__init__(
            env, surrogate=surrogate, delta=delta, confidence_width=width, **parameters
        )

    def _drifts(self) -> Array:
        """Return the eps of every learner, given or fitted, `(B,)`."""
        assert isinstance(self.surrogate, DriftSurrogate)
        return self.surrogate.eps

    @locked
    def drift(self) -> Any:
        """Return eps as it was given, or as it is fitted so far, a float or `(B,)`.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        found = self._drifts()
        return found if self.batched else float(found[0])


def drifts(eps: Any, batch: int) -> Array:
    """Return the drift of every learner, NaN where it is to be fitted, `(B,)`.

    Raises:
        ValueError: If it is neither "fit" nor in [0, 1].
    """
    if not isinstance(eps, str):
        return per_learner("TVGPUCB", "eps", eps, batch, 0.0, 1.0)
    if eps != "fit":
        reject("eps", "TVGPUCB", "'fit' or a float in [0, 1], or one for each learner", eps)
    return np.full(batch, math.nan)
