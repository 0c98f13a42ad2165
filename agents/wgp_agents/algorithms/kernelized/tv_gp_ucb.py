"""TV-GP-UCB: models the function as a Gaussian process that drifts at the rate eps."""

from __future__ import annotations

import math
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.base import locked
from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.bayes_width import ConstantWidth, DriftingBoxWidth, bayes_parameters, bayes_width
from wgp_agents.gp.confidence import GivenWidth
from wgp_agents.gp.model import ModelParameters
from wgp_agents.gp.surrogates.drift import DriftSurrogate
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array, PerLearner
from wgp_gym.validation import reject

__all__ = ["TVGPUCB"]


class TVGPUCB(GPAgent):
    """Time-varying GP-UCB: f_{t+1} = (1 - eps)^{1/2} f_t + eps^{1/2} g_{t+1}, g a fresh draw.

    Plays argmax mean + beta_t^{1/2} std of the exact posterior with the covariance k(x, x') (1 -
    eps)^{|t - t'| / 2}: see `DriftSurrogate`.

    The paper knows eps. No task states it, so the default is of the size of the paper's
    experiments.
    Deviation: "fit" estimates it from the agent's own plays. It may miss a drift at points that are
    not played, and underestimates that of functions smoother in time than the model's.

    Source: Bogunovic, Scarlett, Cevher. Time-Varying Gaussian Process Bandit Optimization. AISTATS
    2016. `confidence_width="constant"` is the variant of Mandl and Kekkonen (2026).

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        eps: The drift, in [0, 1]: at 0 the function stays, at 1 each step has a fresh one. "fit":
            the likeliest so far of 0 and eight values from 1e-4 to 0.3.
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
        env: EnvLike,
        *,
        eps: ArrayLike = 0.01,
        delta: ArrayLike = 0.1,
        confidence_width: GivenWidth = "heuristic",
        **common: Unpack[ModelParameters],
    ) -> None:
        problem = problem_reader(env)()
        surrogate = partial(DriftSurrogate, eps=drifts(eps, problem.batch_size or 1))
        horizon = problem.horizon or 1
        if isinstance(confidence_width, str) and confidence_width == "constant":
            horizon = problem.known_horizon("TVGPUCB", "confidence_width")
        constant = ConstantWidth(self._drifts, problem.domain.shape[1], horizon)
        width = bayes_width(
            "TVGPUCB", problem, confidence_width, delta, DriftingBoxWidth, constant=constant
        )
        parameters = bayes_parameters("TVGPUCB", common, width, delta)
        super().__init__(env, surrogate=surrogate, **parameters)

    def _drifts(self) -> Array:
        """Return the eps of every learner, given or fitted, `(B,)`."""
        assert isinstance(self.surrogate, DriftSurrogate)
        return self.surrogate.eps

    @locked
    def drift(self) -> PerLearner:
        """Return eps as given, or as fitted so far, a float or `(B,)`.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        found = self._drifts()
        return found if self.batched else float(found[0])


def drifts(eps: ArrayLike, batch: int) -> Array:
    """Return the drift of every learner, `(B,)`, NaN for "fit"."""
    if not isinstance(eps, str):
        return per_learner("TVGPUCB", "eps", eps, batch, 0.0, 1.0)
    if eps != "fit":
        reject("eps", "TVGPUCB", "'fit' or a float in [0, 1], or one for each learner", eps)
    return np.full(batch, math.nan)
