"""Learned WGP-UCB: the models of Adaptive WGP-UCB, mixed by a gate that was trained."""

from __future__ import annotations

from os import PathLike

import numpy as np

from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.algorithms.learned.gate import LARGEST_WIDTH, Gate, load_gate
from wgp_agents.core.access import EnvLike
from wgp_agents.gp.surrogates.gated_bank import GatedBank
from wgp_agents.gp.surrogates.kernel_features import KernelFeatures
from wgp_gym.validation import check_float

__all__ = ["LearnedWGPUCB"]


class LearnedWGPUCB(AdaptiveWGPUCB):
    """The upper confidence bound of a mixture of the best models of a bank.

    It has the bank of `AdaptiveWGPUCB`, and knows what that knows: the arms and the kernel. That
    one plays by one model; this one mixes the eight that foretell rewards best, and a small
    network, trained on simulated worlds, corrects their weights and deviations: see
    `wgp_agents.kernels.gate`. It plays argmax of mean + width std of the mixture. The same rewards
    in another unit, or from another zero, give the same plays.

    `belief` is that of the model which Adaptive WGP-UCB would play by now.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        gate: "general", trained on many kinds of drift; "untrained", the weights of the models as
            the bank's scores say, without a network; or a file of a gate.
        width: Standard deviations in [0, 100] of the bound; None: the gate's own.

    Raises:
        ValueError: If a parameter is out of its range, or the file is none of a gate.
    """

    _constants = ("_gate", "_digest")
    _form = 1

    def __init__(
        self,
        env: EnvLike,
        *,
        gate: str | PathLike[str] | Gate = "general",
        width: float | None = None,
    ) -> None:
        owner = "LearnedWGPUCB"
        self._gate = gate if isinstance(gate, Gate) else load_gate(gate, owner)
        # A state of another gate is told by its weights.
        self._digest = np.array([float(np.abs(part).sum()) for part in self._gate.weights])
        super().__init__(env)
        found = self._gate.width if width is None else width
        self._width = np.full_like(
            self._width, check_float("width", found, owner, 0.0, LARGEST_WIDTH)
        )

    def _make_bank(
        self, features: KernelFeatures, drifts: tuple[float, ...], noise_ratios: tuple[float, ...]
    ) -> GatedBank:
        return GatedBank(self.action_set, features, drifts, noise_ratios, self._gate.weights)
