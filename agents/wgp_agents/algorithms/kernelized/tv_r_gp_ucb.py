"""TV-R-GP-UCB: restarting GP-UCB, with a period from the drift eps of TV-GP-UCB's model."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.bayes_width import DriftingBoxWidth, bayes_parameters, bayes_width
from wgp_agents.gp.confidence import GivenWidth
from wgp_agents.gp.model import ModelParameters
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.gp.tuning import Forgetting
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array

__all__ = ["TVRGPUCB"]

BLOCK = 12.0  # steps in a block at eps = 1


class TVRGPUCB(GPAgent):
    """GP-UCB that restarts every N plays, with N from the drift eps of the model.

    N = ceil(min(T, 12 eps^{-1/4})): the order eps^{-1/4} is theory's for the squared exponential
    kernel, the 12 that of the experiments. The t of beta_t goes on over the restarts.

    Source: R-GP-UCB in Bogunovic, Scarlett, Cevher. Time-Varying Gaussian Process Bandit
    Optimization. AISTATS 2016.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        eps: The drift in [0, 1] that N is computed from; 0 never restarts.
        restart_period: N >= 1 itself, in steps, or infinity.
        confidence_width: As in `TVGPUCB`, but for "constant".
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
        restart_period: ArrayLike | None = None,
        delta: ArrayLike = 0.1,
        confidence_width: GivenWidth = "heuristic",
        **common: Unpack[ModelParameters],
    ) -> None:
        problem = problem_reader(env)()
        drift = per_learner("TVRGPUCB", "eps", eps, problem.batch_size or 1, 0.0, 1.0)
        if restart_period is None:
            restart_period = block_length(drift, problem.horizon)
        width = bayes_width("TVRGPUCB", problem, confidence_width, delta, DriftingBoxWidth)
        forgetting = Forgetting("restart_period", restart_period)
        parameters = bayes_parameters("TVRGPUCB", common, width, delta)
        super().__init__(env, surrogate=RestartSurrogate, forgetting=forgetting, **parameters)


def block_length(eps: Array, horizon: int | None) -> Array:
    """Return N = ceil(min(T, 12 eps^{-1/4})), infinity where it spans T; None: T is unknown."""
    with np.errstate(divide="ignore"):  # where nothing drifts
        length = np.ceil(np.round(BLOCK * eps**-0.25, 9))  # 120 at 1e-4, not 120.0000000000001
    return np.where(length >= (horizon or math.inf), math.inf, length)
