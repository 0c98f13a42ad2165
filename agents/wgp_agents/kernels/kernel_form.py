"""The posterior of weighted observations by the arms played, where these are fewer than features.

Notation, for one learner: arm a has the weights W_a = sum of w and W2_a = sum of w^2 of its plays,
and b_a = sum of w y. S are the k arms that still weigh anything, D = diag(W_a^{1/2}) over S,
K_SS = Phi_S Phi_S^T, and M = D K_SS D + lambda I `(k, k)` = R^T R. V is as in
`wgp_agents.kernels.gram`, and with A = Phi_S^T D^2 Phi_S the push-through identity gives

| | by arms |
|---|---|
| mean | k_S(x)^T D M^{-1} D^{-1} b |
| variance | k(x, x) - k_S^T D c, with c = M^{-1} D k_S(x) |
| that of [Deng22] Theorem 2 | the variance - lambda sum of (1 - W2_a / W_a) c_a^2 |
| gamma-bar | 1/2 log det(I + D2 K_SS D2 / lambda), D2 = diag(W2^{1/2}) |

The third: lambda V^{-1} phi = phi - Phi_S^T D c, and D k_S = M c turns D (k_S - K_SS D c) into
lambda c.

**What is left out.** An arm leaves S where W_a and |b_a| are at most LEAST * lambda = 1e-17 lambda.
With the others' V and A: V <= V + W_a phi_a phi_a^T <= (1 + W_a k(a, a) / lambda) V, so that arm
changes no variance by more than the factor 1 + 1e-17, the mean by at most
|b_a| k(x, a) / lambda + W_a |mean(a)| k(x, a) / lambda <= 1e-17 (1 + |mean(a)|), and the gain by at
most W2_a / (2 lambda). It goes on fading, and so does what it would have changed: all n arms
together change at most n times that, whatever t is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.blas import gain_of
from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Indices, Mask

__all__ = ["ArmPredictor", "ArmSums", "KernelRows", "fade_and_add", "in_places", "log_det"]

LEAST = 1e-17  # weights, in lambda, that change nothing
SMALLEST = 1e-200  # a weight whose quotients still are numbers, however large its rewards
ROOM = 64  # rows of K at first


class ArmSums(NamedTuple):
    """What is kept of discounted plays of fixed arms.

    Attributes:
        weight: W_a, `(B, n)`.
        double_weight: W2_a, `(B, n)`.
        reward: b_a, `(B, n)`.
        place: The arm's row among those of K at hand; -1 where nothing is held of it, `(B, n)`.
    """

    weight: Array
    double_weight: Array
    reward: Array
    place: Indices


@compiled
def fade_and_add(
    arms: Indices, rewards: Array, active: Mask, discount: Array, basis: Basis, sums: ArmSums
) -> None:
    """Discount the sums of every active learner by `(B,)`, and add a play of an arm.

    An arm of -1 adds nothing. Arms that weigh nothing leave, and their places are free.
    """
    n = sums.weight.shape[1]
    used = np.zeros(n + 1, np.bool_)
    for i in range(len(arms)):
        if not active[i]:
            continue
        eta, least = discount[i], LEAST * basis.regularization[i]
        W, W2, b, place = sums.weight[i], sums.double_weight[i], sums.reward[i], sums.place[i]
        used[:] = False
        for a in range(n):
            if place[a] < 0:
                continue
            W[a] *= eta
            W2[a] *= eta * eta
            b[a] *= eta
            if W2[a] <= least:
                W2[a] = 0.0
            if W[a] <= SMALLEST or (W[a] <= least and abs(b[a]) <= least):
                W[a] = W2[a] = b[a] = 0.0
                place[a] = -1
            else:
                used[place[a]] = True
        arm = arms[i]
        if arm < 0:
            continue
        W[arm] += 1.0
        W2[arm] += 1.0
        b[arm] += rewards[i]
        if place[arm] < 0:
            free = 0
            while used[free]:
                free += 1
            place[arm] = free


def in_places(values: Array, place: Indices) -> Indices:
    """Return the arms with a value above 0, in the order of their places, `(k,)`."""
    arms = np.flatnonzero(values > 0.0)
    return arms[np.argsort(place[arms])]


class KernelRows:
    """Rows of a learner's K that were asked for, each `(n,)`, each in its place.

    They follow from the features, so they are no state.

    Args:
        phi: The learner's features, `(m, n)`.
    """

    def __init__(self, phi: Array) -> None:
        self._phi = phi
        self.table, self._held = phi[:0].copy(), np.zeros(0, np.int64)

    def hold(self, arms: Indices, places: Indices) -> None:
        """Have the rows of arms in these places, `(k,)` each."""
        if places.size and places[-1] >= len(self._held):
            n = self._phi.shape[1]
            more = min(max(2 * len(self._held), int(places[-1]) + 1, ROOM), n) - len(self._held)
            self.table = np.concatenate([self.table, np.zeros((more, n))])
            self._held = np.append(self._held, np.full(more, -1))
        for p in np.flatnonzero(self._held[places] != arms).tolist():
            # One at a time, so that a row does not depend on when the others were asked for.
            np.matmul(self._phi[:, arms[p]].copy(), self._phi, out=self.table[places[p]])
            self._held[places[p]] = arms[p]


@compiled
def fill_system(
    K: Array, places: Indices, arms: Indices, root: Array, lam: float, M: Array
) -> None:
    """Fill the lower triangle of M = D K_SS D + lambda I, D = diag(root)."""
    for p in range(len(arms)):
        row, out, scale = K[places[p]], M[p], root[p]
        for q in range(p + 1):
            out[q] = scale * root[q] * row[arms[q]]
        out[p] += lam


@compiled
def fill_columns(K: Array, places: Indices, root: Array, arms: Indices, out: Array) -> None:
    """Fill `out` with D k_S(x) of arms, `(k, q)`."""
    for p in range(len(places)):
        row, to, scale = K[places[p]], out[p], root[p]
        for a in range(len(arms)):
            to[a] = scale * row[arms[a]]


def factor(K: Array, places: Indices, arms: Indices, root: Array, lam: float) -> Array:
    """Return R of M = R^T R, upper, `(k, k)`, in LAPACK's order."""
    M = np.empty((len(arms), len(arms)))
    fill_system(K, places, arms, root, lam, M)
    R, failed = scipy.linalg.lapack.dpotrf(M.T, lower=0, clean=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("A posterior's matrix is not positive definite.")
    found: Array = R
    return found


def log_det(rows: KernelRows, arms: Indices, places: Indices, weights: Array, lam: float) -> float:
    """Return 1/2 log det(I + D K_SS D / lambda), D^2 = diag(weights)."""
    if not arms.size:
        return 0.0
    rows.hold(arms, places)
    return gain_of(factor(rows.table, places, arms, np.sqrt(weights), lam), lam)


class ArmPredictor:
    """A learner's posterior, at arms or as a function of features.

    Args:
        i: Its index.
        basis: The features.
        sums: What is held of the arms.
        rows: The rows of its K.
        mean: Where the means of all arms go, `(n,)`.
        tight: Whether to compute the variances of [Deng22] Theorem 2.
    """

    def __init__(
        self, i: int, basis: Basis, sums: ArmSums, rows: KernelRows, mean: Array, tight: bool
    ) -> None:
        self._phi, self._lam = basis.phi[: basis.rank[i]], float(basis.regularization[i])
        self._prior = np.maximum(basis.prior - basis.residual[i], 0.0)
        self._arms = S = in_places(sums.weight[i], sums.place[i])
        self._places, self._K, self._mean = sums.place[i, S], rows, mean
        rows.hold(S, self._places)
        W = sums.weight[i, S]
        self._root = np.sqrt(W)
        self._lost = self._lam * (1.0 - sums.double_weight[i, S] / W) if tight else None
        mean[:] = 0.0
        if S.size:
            R = factor(rows.table, self._places, S, self._root, self._lam)
            self._inverse = scipy.linalg.lapack.dtrtri(R, overwrite_c=1)[0]
            solved = self._inverse @ (self._inverse.T @ (sums.reward[i, S] / self._root))
            self._weights = self._root * solved  # D M^{-1} D^{-1} b
            spread = np.zeros(self._places[-1] + 1)
            spread[self._places] = self._weights
            np.matmul(spread, rows.table[: len(spread)], out=mean)  # Eq. (3)

    def __call__(self, phi: Array) -> tuple[Array, Array, Array]:
        """Return what `wgp_agents.kernels.blas.posterior_of` computes of features `(m, q)`."""
        k = self._phi[:, self._arms].T @ phi
        mean = self._weights @ k if k.size else np.zeros(k.shape[1])
        return mean, *self._variances(self._root[:, None] * k, np.einsum("ij,ij->j", phi, phi))

    def at(self, arms: Indices) -> tuple[Array, Array, Array]:
        """Return the same of arms."""
        columns = np.empty((len(self._arms), len(arms)))
        fill_columns(self._K.table, self._places, self._root, arms, columns)
        return self._mean[arms], *self._variances(columns, self._prior[arms])

    def _variances(self, columns: Array, prior: Array) -> tuple[Array, Array]:
        """Return the variances, and those of the bound, from D k_S `(k, q)` and k(x, x)."""
        if not columns.size:
            return prior, prior
        # The rows of Y are R^{-T} D k_S.
        Y = scipy.linalg.blas.dtrmm(1.0, self._inverse, columns.T, side=1)
        variance = np.maximum(prior - np.einsum("ij,ij->i", Y, Y), 0.0)  # Eq. (4)
        if self._lost is None:
            return variance, variance
        c = scipy.linalg.blas.dtrmm(1.0, self._inverse, Y, side=1, trans_a=1)
        return variance, np.maximum(variance - c**2 @ self._lost, 0.0)
