"""The posterior of unweighted observations for many arms: what is computed anew, a bit at a time.

Notation as in `wgp_agents.kernels.rank_one`. With many arms and features, computing all anew takes
as long as hundreds of steps. So a 128th of it is done after every fourth change, and no step takes
much longer than another: some columns of P, and the means and variances of some arms.

`age` tells which part is the next one, times `TURN`, plus the changes since the last one. Where P
is so wrong that a part could not mend it, all is computed anew at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.blas import blocks, factor, gain_of, single_thread
from wgp_agents.kernels.rank_one import RankOneArrays
from wgp_gym.types import Array, Indices, Mask

__all__ = ["EVERY", "PARTS", "compute_anew", "refresh_parts"]

FeaturesOf = Callable[[Indices], Array]
"""The features of arms, by their index, `(k, m)`."""
PARTS = 128
EVERY = 4  # changes between two parts
WRONG = 1e-8  # an entry of I - V P from which on it is more than rounding
TURN = 2**32


def refresh_parts(
    active: Mask, features_of: FeaturesOf, basis: Basis, state: RankOneArrays
) -> None:
    """Compute a part of P and of the posterior of each active learner anew."""
    wrong = np.zeros_like(active)
    with single_thread():
        for i in np.flatnonzero(active).tolist():
            m, n = int(basis.rank[i]), basis.phi.shape[1]
            part, changes = divmod(int(state.age[i]), TURN)
            if changes < EVERY:
                continue
            X, counts, target = played(i, features_of, m, state)
            P, lam = state.inverse[i, :m, :m], float(basis.regularization[i])
            wrong[i] = not refine(P, part_of(m, part), X, counts, lam) <= WRONG
            fill_posterior(i, part_of(n, part), target, basis, state)
            state.age[i] = (part + 1) % PARTS * TURN
    compute_anew(wrong, features_of, basis, state)


def compute_anew(active: Mask, features_of: FeaturesOf, basis: Basis, state: RankOneArrays) -> None:
    """Compute what `wgp_agents.kernels.rank_one.refactorise` does, by LAPACK."""
    with single_thread():
        for i in np.flatnonzero(active).tolist():
            m, lam = int(basis.rank[i]), float(basis.regularization[i])
            X, counts, target = played(i, features_of, m, state)
            R = factor(X.T @ (counts[:, None] * X), m, lam)
            upper = np.triu(scipy.linalg.lapack.dpotri(R)[0])
            state.inverse[i, :m, :m] = upper + np.triu(upper, 1).T
            state.gain[i] = gain_of(R, lam)
            state.age[i] = 0
            for block in blocks(basis.phi.shape[1]):
                fill_posterior(i, block, target, basis, state)


def part_of(size: int, part: int) -> slice[int, int, None]:
    """Return one of PARTS parts of `size` things."""
    return slice(part * size // PARTS, (part + 1) * size // PARTS)


def played(
    i: int, features_of: FeaturesOf, m: int, state: RankOneArrays
) -> tuple[Array, Array, Array]:
    """Return X `(k, m)` and N `(k,)`, the features and plays of the arms played, and b `(m,)`."""
    arms = np.flatnonzero(state.counts[i])
    X = features_of(arms)[:, :m]
    return X, state.counts[i, arms].astype(float), (state.sums[i] + state.lost[i])[arms] @ X


def refine(P: Array, columns: slice[int, int, None], X: Array, counts: Array, lam: float) -> float:
    """Take the errors out of some columns of P = V^{-1} by a Newton step: P + P (I - V P).

    It squares I - V P, with V = X^T N X + lambda I, so that has to be small.

    Returns:
        The largest entry of I - V P in these columns.
    """
    some = P[:, columns]
    error = -lam * some - X.T @ (counts[:, None] * (X @ some))
    error[columns] += np.eye(error.shape[1])
    P[:, columns] = some + P @ error
    P[columns] = P[:, columns].T
    return float(np.abs(error).max(initial=0.0))


def fill_posterior(
    i: int, arms: slice[int, int, None], target: Array, basis: Basis, state: RankOneArrays
) -> None:
    """Compute means and variances of some arms from P, Eq. (3)-(4)."""
    m = len(target)
    P, phi = state.inverse[i, :m, :m], basis.phi[:m, arms]
    state.mean[i, arms] = (P @ target) @ phi
    squares = np.einsum("ij,ij->j", phi, P @ phi)
    variance = basis.regularization[i] * np.maximum(squares, 0.0)
    state.variance[i, arms] = variance + basis.residual[i, arms]
