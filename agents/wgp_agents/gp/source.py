"""Feature sources: the kernel, or a feature map in its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from wgp_agents.gp.action_sets import FeatureSource
from wgp_agents.gp.tuning import USUAL_HORIZON, gain_order
from wgp_gym.features import FeatureMap
from wgp_gym.fourier import (
    MAX_DEGREE,
    MAX_NODES,
    degree_for,
    quadrature_features,
    random_features,
    sup_error,
)
from wgp_gym.kernels import Kernel, Linear, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.spectral import axis_kernels
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_choice, reject

__all__ = ["FeatureChoice", "feature_source"]

FeatureName = Literal["exact", "quadrature", "random", "linear", "nystrom"]
FeatureChoice = FeatureName | FeatureMap
"""Features by name, or a feature map: see `feature_source`."""
FEATURES: tuple[FeatureName, ...] = get_args(FeatureName)
QUADRATURE_ERROR = 1e-6  # of the SE kernel along one axis
AXIS = np.linspace(0.0, 1.0, 101)[:, None]
RANDOM_FREQUENCIES = 1_000  # two features each
RANDOM_SEED = 0  # one map for all learners of all agents


def feature_source(features: FeatureChoice, problem: BanditProblem, owner: str) -> FeatureSource:
    """Return the kernel, or the feature map that an agent uses in its place.

    Args:
        features: "exact": the kernel itself; "nystrom": likewise, where arms are drawn anew at each
            step, with features made on the problem's stand-ins, there the default of a kernel
            without finitely many features: see `NystromArms`;
            "quadrature": quadrature Fourier features of the
            degree that [Deng22] Corollary 5 asks for, with gamma of order (log T)^(d+1), and more
            for a short SE kernel: see `quadrature_degree`;
            "random": 2,000 random Fourier features, always the same; "linear": the features of
            the problem's linear kernel, or x / sqrt(d) where it has another; or a feature map, a
            function from points `(n, d)` to features `(n, M)`.
        problem: The problem.
        owner: The agent's name, for errors.

    Raises:
        ValueError: If there is no such choice, or the kernel has no such features.
    """
    if callable(features):
        return GivenMap(features, owner)
    check_choice("features", features, owner, FEATURES)
    if features == "nystrom" and not problem.contextual:
        reject("features", owner, "'exact' where arms stay", features)
    kernel, dim = problem.kernel, problem.domain.shape[1]
    if features == "quadrature":
        return quadrature_features(kernel, dim, quadrature_degree(problem, owner))
    if features == "random":
        return random_features(kernel, dim, RANDOM_FREQUENCIES, RANDOM_SEED)
    if features == "linear":
        return Linear() if kernel.feature_map() is None else kernel
    return kernel


def quadrature_degree(problem: BanditProblem, owner: str) -> int:
    """Return the degree of Corollary 5; for the SE kernel, one whose error is at most 1e-6.

    Deviation: the corollary bounds eps_m by (e / 4)^m, which needs m l^2 >= 1. Its degree does not
    depend on l, so for short l its features are those of another kernel. Where T is unknown, the
    degree is that of T = 10,000.
    """
    kernel, dim = problem.kernel, problem.domain.shape[1]
    axes = [own for own in axis_kernels(kernel, dim, "quadrature_features") if own is not None]
    horizon = problem.horizon or USUAL_HORIZON
    degree = degree_for(horizon, gain_order(horizon, dim))
    error = axis_error(axes, degree)
    while error > QUADRATURE_ERROR and degree < MAX_DEGREE:
        degree = min(math.ceil(1.25 * degree), MAX_DEGREE)
        error = axis_error(axes, degree)
    if error > QUADRATURE_ERROR or degree ** len(axes) > MAX_NODES:
        why = f"leave an error of {error:.0e}" if error > QUADRATURE_ERROR else "are too many"
        rule = f"'exact' or 'random' for {kernel}, d = {dim}: {degree}^{len(axes)} nodes {why}"
        reject("features", owner, rule, "quadrature")
    return degree


def axis_error(axes: Sequence[Kernel], degree: int) -> float:
    """Return the largest error of the quadrature along an axis with an SE kernel; 0 of others."""
    smooth = {kernel for kernel in axes if isinstance(kernel, SquaredExponential)}
    errors = [sup_error(quadrature_features(one, 1, degree), one, AXIS) for one in smooth]
    return max(errors, default=0.0)


@dataclass(frozen=True)
class GivenMap:
    """A user's feature map, from points `(n, d)` to features `(n, M)`, with its output checked."""

    function: FeatureMap
    owner: str

    def __call__(self, X: Array) -> Array:
        """Return the checked features of points `(n, d)`, `(n, M)`."""
        rule = f"a map from n points to n rows of finite numbers (n = {len(X)})"
        given = np.asarray(self.function(X))
        if given.dtype.kind == "b":  # a map to bins
            given = given.astype(float)
        table = as_floats("features", given, self.owner, rule)
        if table.ndim != 2 or len(table) != len(X) or not np.isfinite(table).all():
            reject("features", self.owner, rule, f"an array {table.shape}")
        return table
