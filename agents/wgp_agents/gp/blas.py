"""The same posterior for many features, where LAPACK's blocked routines beat a plain loop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from wgp_agents.gp.arrays import DiscountArrays
from wgp_gym.kernels import Array

__all__ = ["posteriors"]

ARM_BLOCK = 1_024  # bounds the working memory to ARM_BLOCK * m numbers


def posteriors(active: NDArray[np.bool_], phi: Array, ridge: Array, state: DiscountArrays) -> None:
    """Compute what `wgp_agents.gp.compiled.posteriors` computes, learner by learner."""
    m, n = phi.shape
    identity = np.eye(m)
    for i in np.flatnonzero(active):
        R2 = cholesky(state.double_gram[i] + ridge[i] * identity, check_finite=False)
        state.gain[i] = np.log(R2.diagonal()).sum() - 0.5 * m * np.log(ridge[i])
        R = cholesky(state.gram[i] + ridge[i] * identity, check_finite=False)
        z = solve_triangular(R, state.target[i], trans="T", check_finite=False)
        for start in range(0, n, ARM_BLOCK):
            block = slice(start, start + ARM_BLOCK)
            Y = solve_triangular(R, phi[:, block], trans="T", check_finite=False)
            state.mean[i, block] = z @ Y
            state.variance[i, block] = ridge[i] * np.einsum("ij,ij->j", Y, Y)
