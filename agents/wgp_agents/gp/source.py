"""Which feature map stands in for the kernel."""

from __future__ import annotations

import math
from typing import Any

from wgp_agents.gp.tuning import gain_order
from wgp_gym.features import FeatureMap
from wgp_gym.fourier import (
    MAX_DEGREE,
    MAX_NODES,
    degree_for,
    quadrature_features,
    random_features,
)
from wgp_gym.kernels import Kernel, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.validation import check_choice, reject

__all__ = ["feature_source"]

FEATURES = ("exact", "quadrature", "random")
RANDOM_FREQUENCIES = 1_000  # two features each
RANDOM_SEED = 0  # one map for all learners of all agents


def feature_source(features: Any, problem: BanditProblem, owner: str) -> Kernel | FeatureMap:
    """Return the kernel, or the feature map that an agent plays with in its place.

    Args:
        features: "exact": the kernel itself; "quadrature": quadrature Fourier features of the
            degree that [Deng22] Corollary 5 asks for, with gamma of order (log T)^(d+1), and for
            the SE kernel at least 1 / l^2;
            "random": 2,000 random Fourier features, always the same; or a feature map, a
            function from points `(n, d)` to features `(n, M)`.
        problem: The problem at hand.
        owner: The agent's name, for errors.

    Raises:
        ValueError: If there is no such choice, or the kernel has no such features.
    """
    if callable(features):
        given: FeatureMap = features
        return given
    check_choice("features", features, owner, FEATURES)
    kernel, dim = problem.kernel, problem.domain.shape[1]
    if features == "quadrature":
        return quadrature_features(kernel, dim, quadrature_degree(problem, owner))
    if features == "random":
        return random_features(kernel, dim, RANDOM_FREQUENCIES, RANDOM_SEED)
    return kernel


def quadrature_degree(problem: BanditProblem, owner: str) -> int:
    """Return the degree of Corollary 5, and at least 1 / l^2 for the SE kernel.

    Deviation: the corollary takes eps_m for (e / 4)^m, which needs m l^2 >= 1; its degree does
    not look at l, and below that the features are those of another kernel.

    Raises:
        ValueError: If a rule of this degree has too many nodes.
    """
    kernel, dim = problem.kernel, problem.domain.shape[1]
    degree = degree_for(problem.horizon, gain_order(problem.horizon, dim))
    if isinstance(kernel, SquaredExponential):
        degree = max(degree, math.ceil(kernel.lengthscale**-2))
    if degree > MAX_DEGREE or degree**dim > MAX_NODES:
        rule = f"'exact' or 'random' for {kernel}, d = {dim}: it takes {degree}^{dim} nodes"
        reject("features", owner, rule, "quadrature")
    return degree
