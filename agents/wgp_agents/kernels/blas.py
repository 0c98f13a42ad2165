"""The same posterior for many features, where LAPACK's blocked routines beat a plain loop."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import scipy
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.gram_arrays import DiscountArrays
from wgp_gym.types import Array

__all__ = [
    "blocks",
    "deviation_of",
    "gain_of",
    "gains",
    "inverted_posterior_of",
    "posterior_of",
    "posteriors",
    "single_thread",
]

HELD = threading.local()  # whether this thread is within `single_thread`
ARM_BLOCK = 1_024  # bounds the working memory to ARM_BLOCK * m numbers


@functools.cache
def threads(*, scipy_too: bool) -> ThreadpoolController:
    """Return what limits the threads of the BLAS of numpy, and of scipy, which has its own.

    It is made once, since it looks through all libraries that are loaded.
    """
    if scipy_too:
        pass  # slow to import, and the limit holds for what is there
    return ThreadpoolController()


@contextmanager
def single_thread(*, scipy_too: bool = True) -> Iterator[None]:
    """Keep BLAS to one thread, and quiet where rewards near the largest number overflow.

    Several threads lose more than they win on matrices of this size, and far more on a busy
    machine; and last bits depend on how many there are.

    Args:
        scipy_too: Whether functions of `scipy.linalg` may be called meanwhile.
    """
    if getattr(HELD, "by_caller", False):  # a search asks often, and setting it takes 50 us
        yield
        return
    HELD.by_caller = True
    try:
        limited = threads(scipy_too=scipy_too).limit(limits=1, user_api="blas")
        with limited, np.errstate(over="ignore", invalid="ignore"):
            yield
    finally:
        HELD.by_caller = False


def posteriors(active: NDArray[np.bool_], basis: Basis, state: DiscountArrays) -> None:
    """Compute what `wgp_agents.kernels.gram.posteriors` computes, learner by learner."""
    gains(active, basis, state)
    with single_thread():
        for i in np.flatnonzero(active).tolist():
            m = int(basis.rank[i])
            predict = posterior_of(i, basis, state)
            for block in blocks(basis.phi.shape[1]):
                mean, variance, tight = predict(basis.phi[:m, block])
                state.mean[i, block] = mean
                state.variance[i, block] = variance + basis.residual[i, block]
                if state.tight.size:
                    state.tight[i, block] = tight + basis.residual[i, block]


def blocks(n: int) -> list[slice[int, int, None]]:
    """Return slices of n arms, each few enough that their features fit the second-level cache."""
    return [slice(start, start + ARM_BLOCK) for start in range(0, n, ARM_BLOCK)]


def gains(active: NDArray[np.bool_], basis: Basis, state: DiscountArrays) -> None:
    """Compute the double-weighted gain of every active learner."""
    with single_thread():
        for i in np.flatnonzero(active).tolist():
            m, regularization = int(basis.rank[i]), float(basis.regularization[i])
            R2 = factor(state.double_gram[i], m, regularization)
            state.gain[i] = gain_of(R2, regularization)


def gain_of(R: Array, regularization: float) -> float:
    """Return 1/2 log det(I + A / lambda), from the Cholesky factor of A + lambda I, `(m, m)`."""
    return float(np.log(R.diagonal()).sum() - 0.5 * len(R) * np.log(regularization))


def factor(A: Array, m: int, regularization: float) -> Array:
    """Return the upper Cholesky factor of A + regularization I, leading `(m, m)` only."""
    V = A[:m, :m].copy()
    V.flat[:: m + 1] += regularization
    R: Array = scipy.linalg.cholesky(V, overwrite_a=True, check_finite=False)
    return R


def posterior_of(
    i: int, basis: Basis, state: DiscountArrays
) -> Callable[[Array], tuple[Array, Array, Array]]:
    """Return learner i's posterior as a function of features `(m, q)`.

    It returns means, variances and, where the state keeps them, those of [Deng22] Theorem 2,
    `(q,)` each, without what the features leave out. BLAS takes as many threads as it is given.
    """
    m, regularization = int(basis.rank[i]), float(basis.regularization[i])
    R = factor(state.gram[i], m, regularization)
    b = state.target[i, :m] + state.lost[i, :m]
    z = scipy.linalg.solve_triangular(R, b, trans="T", check_finite=False)
    turned = np.zeros((m, 0))
    if state.tight.size:  # of `wgp_agents.kernels.gram.tight_factor`: R^{-T} R2^T
        R2 = factor(state.double_gram[i], m, regularization)
        turned = scipy.linalg.solve_triangular(R, R2.T, trans="T", check_finite=False)

    def _predict(phi: Array) -> tuple[Array, Array, Array]:
        Y = scipy.linalg.solve_triangular(R, phi, trans="T", check_finite=False)
        squares = [regularization * np.einsum("ij,ij->j", A, A) for A in (Y, turned.T @ Y)]
        return z @ Y, squares[0], squares[1]

    return _predict


def inverted_posterior_of(
    i: int, basis: Basis, state: DiscountArrays
) -> Callable[[Array], tuple[Array, Array, Array]]:
    """Return what `posterior_of` does, faster for many points, and fill in the means of all arms.

    R is inverted once: a product with R^{-T} is about four times as fast as a solve with R^T.
    """
    m, regularization = int(basis.rank[i]), float(basis.regularization[i])
    R = factor(state.gram[i], m, regularization)
    inverse = scipy.linalg.lapack.dtrtri(R)[0]
    weights = inverse @ (inverse.T @ (state.target[i, :m] + state.lost[i, :m]))  # V^{-1} b
    np.matmul(weights, basis.phi[:m], out=state.mean[i])  # Eq. (3)
    turned = np.zeros((0, m))
    if state.tight.size:  # `wgp_agents.kernels.gram.tight_factor`
        turned = factor(state.double_gram[i], m, regularization) @ inverse

    def _predict(phi: Array) -> tuple[Array, Array, Array]:
        Y = scipy.linalg.blas.dtrmm(1.0, inverse, phi.T, side=1).T  # R^{-T} phi
        squares = [regularization * np.einsum("ij,ij->j", A, A) for A in (Y, turned @ Y)]
        return weights @ phi, squares[0], squares[1]

    return _predict


def deviation_of(i: int, normals: Array, basis: Basis, state: DiscountArrays) -> Array:
    """Return what `wgp_agents.kernels.gram.deviations` draws for learner i, `(m,)`."""
    m, regularization = int(basis.rank[i]), float(basis.regularization[i])
    R, R2 = (
        factor(state.gram[i], m, regularization),
        factor(state.double_gram[i], m, regularization),
    )
    z = scipy.linalg.solve_triangular(R, R2.T @ normals[:m], trans="T", check_finite=False)
    drawn = np.zeros(len(normals))
    drawn[:m] = np.sqrt(regularization) * scipy.linalg.solve_triangular(R, z, check_finite=False)
    return drawn
