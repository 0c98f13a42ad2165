"""Information gains that are known before any play: greedy ones and upper bounds."""

from __future__ import annotations

import numpy as np

from wgp_agents.gp.basis import Basis
from wgp_agents.gp.gain import gain_bound, greedy_gains
from wgp_agents.gp.memory import Memory
from wgp_agents.gp.spectrum import mercer_spectrum
from wgp_gym.features import FeatureMap
from wgp_gym.kernels import Array, Kernel
from wgp_gym.problem import BanditProblem

__all__ = ["GAINS", "computed_gain", "planned_gains"]

GAINS = ("realised", "greedy", "bound")


def planned_gains(
    kind: str,
    memory: Memory,
    basis: Basis,
    source: Kernel | FeatureMap,
    problem: BanditProblem,
) -> Array:
    """Return the double-weighted gain after 0 ... T observations, `(B, T + 1)`.

    Args:
        kind: "greedy", a lower bound of the maximum over all plays; or "bound", an upper one.
        memory: What gives each observation its weight.
        basis: The features of the points.
        source: The kernel that they stand for, or the feature map in its place.
        problem: The problem at hand.
    """
    horizon = problem.horizon
    if kind == "greedy":
        assert memory.ratios.shape[1] == 1  # or the weights of t steps would not begin those of T
        weights = memory.ratios ** (2.0 * np.arange(horizon))
        gains = greedy_gains(basis.phi.T, weights, basis.ridge).gains
    else:
        spectrum = mercer_spectrum(source, problem.domain)
        gains = gain_bound(
            spectrum, weight_sums(memory.ratios, horizon), basis.ridge[:, None]
        ).value
    return np.concatenate([np.zeros((len(basis.ridge), 1)), gains], axis=1)


def weight_sums(ratios: Array, horizon: int) -> Array:
    """Return the sum of (w_s / w_t)^2 over s after t = 1 ... T observations, `(B, T)`."""
    sums = np.ones((len(ratios), horizon))
    for t in range(1, horizon):
        sums[:, t] += ratios[:, min(t, ratios.shape[1] - 1)] ** 2 * sums[:, t - 1]
    return sums


def computed_gain(basis: Basis, horizon: int) -> Array:
    """Return the unweighted gain gamma_T of T greedy plays, `(B,)`."""
    weights = np.ones((len(basis.ridge), horizon))
    gains: Array = greedy_gains(basis.phi.T, weights, basis.ridge).gains[:, -1]
    return gains
