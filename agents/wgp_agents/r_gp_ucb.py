"""R-GP-UCB: forgets everything every H steps."""

from __future__ import annotations

from typing import Any, Unpack

from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.memory import RestartMemory
from wgp_agents.gp.tuning import TheoryTuning, optional_length
from wgp_gym.kernels import Array

__all__ = ["RGPUCB"]


class RGPUCB(GPAgent):
    """Restarting GP-UCB (Zhou and Shroff 2021).

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        restart_period: H >= 1, in steps, or infinity. Default: ceil of gamma^{1/4}
            (T / B_T)^{1/2}, Remark 1 of its paper.
        variation_budget: "known", "unknown" or B_T: see `TheoryTuning`.
        information_gain: gamma_T of the default: see `TheoryTuning`.
        **common: See `GPAgent`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: Any,
        *,
        restart_period: Any = None,
        variation_budget: Any = "unknown",
        information_gain: Any = None,
        **common: Unpack[GPParameters],
    ) -> None:
        super().__init__(env, memory=RestartMemory, **common)
        self.tuning = TheoryTuning(variation_budget, information_gain)
        self.restart_period = optional_length("restart_period", restart_period, self.num_learners)

    def _forgetting(self) -> Array:
        if self.restart_period is None:
            return self.tuning.length(self.problem, self.num_learners)
        return self.restart_period
