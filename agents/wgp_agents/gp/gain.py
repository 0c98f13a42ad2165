"""Information gains of given and of greedy plays, and their bounds in [Deng22] Section 6.

All four gains of the paper are 1/2 log det(I + D K D / lambda), D = diag(sqrt(relative weights)):

| gain | relative weights | kernel |
|---|---|---|
| gamma | 1 | k |
| gamma-tilde | `single_weights`: w_s / w_t = eta^(t-s) | k |
| gamma-bar | `double_weights`: w_s^2 / w_t^2 = eta^(2(t-s)) | k |
| gamma-breve | `single_weights` | phi-breve^T phi-breve |
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.gp.spectrum import Spectrum
from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Indices, PerLearner
from wgp_gym.validation import as_floats, check_float, check_int, reject

__all__ = [
    "GainBound",
    "Greedy",
    "double_weights",
    "gain_bound",
    "greedy_gains",
    "information_gain",
    "single_weights",
    "total_weight",
    "weight_sums",
]

BLOCK = 4_096  # total weights in one array operation


def single_weights(discount: float, count: int) -> Array:
    """Return eta^0, eta^1, ..., eta^(count - 1), `(count,)`: newest first.

    Raises:
        ValueError: If eta is not in (0, 1] or the count is below 1.
    """
    check_float("discount", discount, "single_weights", 0, 1, closed="right")
    steps = np.arange(check_int("count", count, "single_weights", 1))
    weights: Array = np.power(np.full(len(steps), float(discount)), steps)
    return weights


def double_weights(discount: float, count: int) -> Array:
    """Return eta^0, eta^2, ..., eta^(2 count - 2), `(count,)`: newest first.

    Raises:
        ValueError: As `single_weights`.
    """
    return np.square(single_weights(discount, count))


def total_weight(discount: ArrayLike, count: ArrayLike = math.inf, power: int = 1) -> PerLearner:
    """Return S = sum over s < count of eta^(power s), the sum in the proof of [Deng22] Theorem 7.

    Args:
        discount: eta in (0, 1], any shape.
        count: t >= 1; infinity gives the limit 1 / (1 - eta^power). Broadcasts with eta.
        power: 1 for the weights of gamma-tilde and gamma-breve, 2 for those of gamma-bar.

    Returns:
        A float, or an array of the broadcast shape.

    Raises:
        ValueError: If a parameter is out of its range.
    """
    eta = as_floats("discount", discount, "total_weight", "in (0, 1]")
    t = as_floats("count", count, "total_weight", "at least 1")
    if not ((eta > 0) & (eta <= 1)).all():
        reject("discount", "total_weight", "in (0, 1]", discount)
    if not (t >= 1).all():
        reject("count", "total_weight", "at least 1", count)
    log = check_int("power", power, "total_weight", 1) * np.log(eta)
    some = np.where(log < 0, log, -1.0)  # at eta = 1 the sum is t
    return np.where(log < 0, np.expm1(t * some) / np.expm1(some), t)[()]


def weight_sums(ratios: Array, horizon: int) -> Array:
    """Return the sum of (w_s / w_t)^2 over s after t = 1 ... T observations, `(B, T)`."""
    sums = np.ones((len(ratios), horizon))
    for t in range(1, horizon):
        sums[:, t] += ratios[:, min(t, ratios.shape[1] - 1)] ** 2 * sums[:, t - 1]
    return sums


class Greedy(NamedTuple):
    """Plays chosen by a greedy search, and their gains.

    Attributes:
        gains: The gain of the first 1, 2, ..., t plays, `(t,)` or `(B, t)`.
        points: The rows of the table that were played, `(t,)` or `(B, t)`.
    """

    gains: Array
    points: Indices


class GainBound(NamedTuple):
    """An upper bound of the information gain.

    Attributes:
        value: The bound, its minimum over N.
        dimension: N at the minimum, the number of eigenfunctions that are kept.
        tail: delta_N.
    """

    value: PerLearner
    dimension: PerLearner
    tail: PerLearner


def information_gain(gram: Array, weights: Array, regularization: float) -> float:
    """Return the gain 1/2 log det(I + D K D / lambda), D = diag(sqrt(weights)), [Deng22] Section 3.

    Args:
        gram: K of the plays, `(t, t)`.
        weights: Their relative weights, `(t,)`, at least 0, in the order of the plays.
        regularization: lambda > 0.

    Raises:
        ValueError: If the gram matrix is not symmetric and positive semi-definite, or another
            parameter is out of its range.
    """
    gram, weights = np.asarray(gram, float), np.asarray(weights, float)
    regularization = check_float(
        "regularization", regularization, "information_gain", 0, closed="neither"
    )
    t, owner = len(gram), "information_gain"
    if gram.shape != (t, t) or not np.allclose(gram, gram.T, atol=1e-12):
        reject("gram", owner, "a symmetric square matrix", gram.shape)
    if weights.shape != (t,) or not ((weights >= 0) & (weights < math.inf)).all():
        reject("weights", owner, f"of shape ({t},), finite and at least 0", weights)
    root = np.sqrt(weights / regularization)
    try:
        factor = np.linalg.cholesky(np.eye(t) + root[:, None] * gram * root)
    except np.linalg.LinAlgError:
        reject("gram", owner, "positive semi-definite", float(np.linalg.eigvalsh(gram)[0]))
    return float(np.log(factor.diagonal()).sum())


@compiled
def greedy_loop(
    phi: Array, weights: Array, regularization: Array, gains: Array, points: Indices
) -> None:
    """Fill `gains` and `points`, learner by learner. See `greedy_gains`.

    Z = V^{-1/2} phi `(m, n)`, so that sigma^2 = lambda |z|^2. A play with weight w replaces V by
    V + w phi phi^T, and V^{-1/2} by V^{-1/2} (I - shrink z z^T) up to a rotation. Since a square
    root only shrinks, no variance becomes negative.
    """
    m, n = phi.shape
    for learner in range(len(regularization)):
        Z = phi / math.sqrt(regularization[learner])
        total = 0.0
        for step in range(weights.shape[1]):
            w = weights[learner, step]
            squares = np.zeros(n)  # |z_a|^2 = sigma_a^2 / lambda
            for i in range(m):
                row = Z[i]
                for a in range(n):
                    squares[a] += row[a] * row[a]
            arm = int(np.argmax(squares))
            s = squares[arm]
            total += 0.5 * math.log1p(w * s)  # 1/2 log(1 + w sigma^2 / lambda)
            gains[learner, step] = total
            points[learner, step] = arm
            if w * s <= 0.0:
                continue
            z = Z[:, arm].copy()
            along = np.zeros(n)  # z^T Z, then Z - shrink z z^T Z
            for i in range(m):
                row, factor = Z[i], z[i]
                for a in range(n):
                    along[a] += factor * row[a]
            root = math.sqrt(1.0 + w * s)
            shrink = w / (root * (1.0 + root))  # (1 - 1 / root) / s, without its cancellation
            for i in range(m):
                row, factor = Z[i], shrink * z[i]
                for a in range(n):
                    row[a] -= factor * along[a]


def greedy_gains(table: Array, weights: Array, regularization: ArrayLike) -> Greedy:
    """Return the plays of a greedy search for the largest information gain, and their gains.

    Step j plays argmax of sigma_j^2, the posterior variance given the weighted plays before, and
    gains 1/2 log(1 + w_j sigma_j^2 / lambda). The total is a lower bound of the maximum over all
    plays; with equal weights it is at least 1 - 1 / e of it ([Nemhauser78]). With exponential
    weights the first t plays are the greedy plays of horizon t.

    Args:
        table: Row a is phi(x_a), `(n, m)`.
        weights: Relative weights, `(t,)` or `(B, t)`, at least 0 and not increasing: newest first.
        regularization: lambda > 0, scalar or `(B,)`.

    Returns:
        Gains and plays, `(t,)`, or `(B, t)` if a parameter has B.

    Raises:
        ValueError: If a parameter is out of its range or the shapes do not fit.

    Source: [Nemhauser78] Nemhauser, Wolsey, Fisher. An analysis of approximations for maximizing
        submodular set functions. Mathematical Programming 14, 1978.
    """
    table, owner = np.asarray(table, float), "greedy_gains"
    w, lam = np.asarray(weights, float), np.asarray(regularization, float)
    if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
        reject("table", owner, "a finite table (n, m)", table.shape)
    if w.ndim not in (1, 2) or w.size == 0 or not ((w >= 0) & (w < math.inf)).all():
        reject("weights", owner, "of shape (t,) or (B, t), finite and at least 0", weights)
    if (np.diff(w, axis=-1) > 0).any():
        reject("weights", owner, "not increasing: newest first", weights)
    if lam.ndim > 1 or not ((lam > 0) & (lam < math.inf)).all():
        reject("regularization", owner, "in (0, inf), a scalar or of shape (B,)", regularization)
    batch, batched = np.atleast_2d(w), w.ndim == 2 or lam.ndim == 1
    B = max(len(batch), lam.size)
    if len(batch) not in (1, B) or lam.size not in (1, B):
        reject("regularization", owner, f"a scalar or of shape ({len(batch)},)", regularization)
    batch = np.ascontiguousarray(np.broadcast_to(batch, (B, batch.shape[1])))
    gains, points = np.empty(batch.shape), np.empty(batch.shape, np.int64)
    lam = np.ascontiguousarray(np.broadcast_to(lam, B))
    greedy_loop(np.ascontiguousarray(table.T), batch, lam, gains, points)
    return Greedy(gains, points) if batched else Greedy(gains[0], points[0])


def gain_bound(spectrum: Spectrum, total_weight: ArrayLike, regularization: ArrayLike) -> GainBound:
    """Return min over N of N/2 log(1 + k_dot S / (lambda N)) + S delta_N / (2 lambda), N >= 0.

    S = t gives [Deng22] Theorem 6; S = 1 / (1 - eta^2) its Theorem 7, for gamma-bar; 1 / (1 - eta)
    the same for gamma-tilde. `total_weight(eta, t, power)` is the sharper S at horizon t, from the
    proof.

    Args:
        spectrum: The kernel's Mercer spectrum.
        total_weight: S >= 0, the sum of the relative weights, any shape.
        regularization: lambda > 0; broadcasts with S.

    Returns:
        The bound, N and delta_N, each a number or of the broadcast shape.

    Raises:
        ValueError: If a parameter is out of its range.
    """
    S = as_floats("total_weight", total_weight, "gain_bound", "in [0, inf)")
    lam = as_floats("regularization", regularization, "gain_bound", "in (0, inf)")
    if not (np.isfinite(S) & (S >= 0)).all():
        reject("total_weight", "gain_bound", "in [0, inf)", total_weight)
    if not (np.isfinite(lam) & (lam > 0)).all():
        reject("regularization", "gain_bound", "in (0, inf)", regularization)
    ratio = np.asarray(S / lam)
    N = np.arange(len(spectrum.tails))
    value, best = np.empty(ratio.size), np.empty(ratio.size, np.intp)
    for start in range(0, ratio.size, BLOCK):  # bounds the memory for S x N values
        part = slice(start, start + BLOCK)
        scaled = ratio.ravel()[part, None]
        head = N / 2 * np.log1p(spectrum.k_dot * scaled / np.maximum(N, 1))
        values = head + scaled * spectrum.tails / 2
        best[part] = values.argmin(axis=1)
        value[part] = values.min(axis=1)
    dimension = best.reshape(ratio.shape)
    return GainBound(value.reshape(ratio.shape)[()], dimension[()], spectrum.tails[dimension])
