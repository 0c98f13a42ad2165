"""The same posterior for many features, where LAPACK's blocked routines beat a plain loop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from threadpoolctl import ThreadpoolController

from wgp_agents.gp.arrays import DiscountArrays
from wgp_agents.gp.basis import Basis

__all__ = ["posteriors"]

# One thread: several lose more than they win on matrices of this size, and far more on a busy
# machine. A controller is made once, since it looks through all loaded libraries.
THREADS = ThreadpoolController()
ARM_BLOCK = 1_024  # bounds the working memory to ARM_BLOCK * m numbers


def posteriors(active: NDArray[np.bool_], basis: Basis, state: DiscountArrays) -> None:
    """Compute what `wgp_agents.gp.compiled.posteriors` computes, learner by learner."""
    with THREADS.limit(limits=1, user_api="blas"):
        single_thread_posteriors(active, basis, state)


def single_thread_posteriors(
    active: NDArray[np.bool_], basis: Basis, state: DiscountArrays
) -> None:
    """Compute them with whatever threads BLAS is given."""
    for i in np.flatnonzero(active):
        m, ridge = int(basis.rank[i]), float(basis.ridge[i])
        identity = np.eye(m)
        R2 = cholesky(state.double_gram[i, :m, :m] + ridge * identity, check_finite=False)
        state.gain[i] = np.log(R2.diagonal()).sum() - 0.5 * m * np.log(ridge)
        R = cholesky(state.gram[i, :m, :m] + ridge * identity, check_finite=False)
        z = solve_triangular(R, state.target[i, :m], trans="T", check_finite=False)
        for start in range(0, basis.phi.shape[1], ARM_BLOCK):
            block = slice(start, start + ARM_BLOCK)
            Y = solve_triangular(R, basis.phi[:m, block], trans="T", check_finite=False)
            state.mean[i, block] = z @ Y
            squares = np.einsum("ij,ij->j", Y, Y)
            state.variance[i, block] = ridge * squares + basis.residual[i, block]
