"""The logistic model of the arms, fitted to weighted counts: estimate and index.

Notation, for one learner: `phi` holds the features x_i of the arms, `(n, d)`. N and Y are the
weighted number of plays of each arm and the sum of its rewards, `(n,)`, discounted or of a window:
all that the weighted likelihood asks of the past. mu(z) = 1 / (1 + e^{-z}), c its least slope c_mu,
and
    g(theta) = sum_i N_i mu(x_i^T theta) x_i + lambda c theta,
    V = sum_i N_i x_i x_i^T + lambda I.
Of a symmetric matrix only the upper half is filled. All loops run over learners, one after the
other, so that no learner's numbers depend on how many there are.

References:
    [Bach10] Bach. Self-concordant analysis for logistic regression. Electronic Journal of
        Statistics 4, 2010.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wgp_agents.kernels.cholesky import cholesky
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import (
    FIRST,
    backward,
    copy,
    dot,
    forward,
)
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "COARSE",
    "DECREASE",
    "PIVOT",
    "GLMNumbers",
    "GLMState",
    "discount_plays",
    "fit",
    "furthest",
    "gram",
    "indices",
    "residual",
    "sigmoid",
]

LONG_STEP = 1.0  # below, a step that is certain to descend is long enough
LAST_STEP = 1e-5  # a Newton step that moves no arm's x^T theta by more is the last
COARSE = 1e-3  # below, a step that is no shorter than half the last one is rounding
MAX_STEPS = 200  # Newton steps, also where the start is far and the regularization next to nothing
DECREASE = 1e-4  # the share of the promised decrease that a step has to keep
PIVOT = 1e-14  # of a diagonal element: smaller pivots are rounding
TINY = 1e-200  # counts below are forgotten: still smaller numbers are slow


class GLMState(NamedTuple):
    """What the learners keep.

    Attributes:
        counts: N, `(B, n)`.
        squares: N2: as N, but with the weights squared, `(B, n)`; N itself in a window.
        sums: Y, `(B, n)`.
        weight: The sum of the squared weights of all plays, `(B,)`; in a window, their number.
        estimate: The maximum-likelihood estimate, `(B, d)`.
        parameter: Its projection into the ball, `(B, d)`.
    """

    counts: Array
    squares: Array
    sums: Array
    weight: Array
    estimate: Array
    parameter: Array


class GLMNumbers(NamedTuple):
    """The learners' parameters, `(B,)` each.

    Attributes:
        discount: gamma; not read in a window.
        regularization: lambda.
        slope: c_mu.
        radius: S, of the ball.
    """

    discount: Array
    regularization: Array
    slope: Array
    radius: Array


@subroutine
def sigmoid(z: float) -> float:
    """Return mu(z) = 1 / (1 + e^{-z})."""
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@subroutine
def gram(phi: Array, counts: Array, regularization: float, A: Array) -> None:
    """Compute sum_i counts_i x_i x_i^T + regularization I."""
    A[:] = 0.0
    for j in range(len(A)):
        A[j, j] = regularization
    for i in range(len(phi)):
        if counts[i] > 0:
            for j in range(len(A)):
                for k in range(j, len(A)):
                    A[j, k] += counts[i] * phi[i, j] * phi[i, k]


@subroutine
def residual(
    phi: Array, counts: Array, sums: Array, regularization: float, theta: Array, r: Array, H: Array
) -> None:
    """Compute r = g(theta) - sum_i Y_i x_i, whose zero is the estimate, and H, its Jacobian."""
    H[:] = 0.0
    for j in range(len(H)):
        H[j, j] = regularization
        r[j] = regularization * theta[j]
    for i in range(len(phi)):
        if counts[i] > 0:
            x = phi[i]
            # N mu x - Y x, and N mu' x x^T with mu' = mu (1 - mu)
            mean = sigmoid(dot(x, theta))
            excess, slope = counts[i] * mean - sums[i], counts[i] * mean * (1.0 - mean)
            for j in range(len(x)):
                r[j] += excess * x[j]
                scaled, row = slope * x[j], H[j]
                for k in range(j, len(x)):
                    row[k] += scaled * x[k]


@subroutine
def furthest(phi: Array, step: Array) -> float:
    """Return the largest |x_i^T step|."""
    largest = 0.0
    for i in range(len(phi)):
        largest = max(largest, abs(dot(phi[i], step)))
    return largest


@subroutine
def loss(phi: Array, counts: Array, sums: Array, regularization: float, theta: Array) -> float:
    """Return the regularized weighted negative log-likelihood; its gradient: `residual`."""
    total = 0.5 * regularization * dot(theta, theta)
    for i in range(len(phi)):
        if counts[i] > 0:
            z = dot(phi[i], theta)
            misses = counts[i] - sums[i] if z > 0 else sums[i]
            total += counts[i] * math.log1p(math.exp(-abs(z))) + misses * abs(z)
    return total


@subroutine
def estimate(phi: Array, counts: Array, sums: Array, regularization: float, theta: Array) -> None:
    """Improve theta to the minimum of `loss`, by Newton's method.

    With r the largest |x_i^T p|, the step log(1 + r) / r along p lowers the strictly convex loss
    from anywhere, as its self-concordance promises ([Bach10]); it becomes a full step in the end,
    when each leaves an error of the order of r^2. Where it would be short a search may find a
    longer one.
    """
    d = len(theta)
    p, H, R = np.empty(d), np.empty((d, d)), np.empty((d, d))
    gradient, trial, last = np.empty(d), np.empty(d), math.inf
    for _ in range(MAX_STEPS):
        # p = H^{-1} gradient
        residual(phi, counts, sums, regularization, theta, gradient, H)
        cholesky(H, d, 0.0, PIVOT, R)
        copy(gradient, p)
        forward(R, FIRST, p)
        backward(R, p)
        # r = max_i |x_i^T p|, and the length that is certain to descend
        r = furthest(phi, p)
        length, safe = 1.0, math.log1p(r) / r if r > 0 else 1.0
        if r > LONG_STEP:  # search for a longer one: halve until the loss falls enough
            before, promised = loss(phi, counts, sums, regularization, theta), dot(gradient, p)
            for j in range(d):
                trial[j] = theta[j] - p[j]
            while length > safe and not (
                loss(phi, counts, sums, regularization, trial)
                <= before - DECREASE * length * promised
            ):
                length /= 2
                for j in range(d):
                    trial[j] = theta[j] - length * p[j]
            safe = max(length, safe)
        for j in range(d):
            theta[j] -= safe * p[j]
        if r <= LAST_STEP or (r < COARSE and r > last / 2):
            return
        last = r


@compiled
def discount_plays(
    numbers: GLMNumbers, state: GLMState, arms: Indices, rewards: Array, active: Mask
) -> None:
    """Discount the past and take in one play of every learner in `active` `(B,)`.

    Args:
        numbers: The learners' parameters.
        state: What they keep; N, N2, Y and w_t change.
        arms: The arms played, `(B,)`.
        rewards: What was paid, in [0, 1], `(B,)`.
        active: Who played.
    """
    for b in range(len(arms)):
        if active[b]:
            counts, squares, sums = state.counts[b], state.squares[b], state.sums[b]
            gamma = numbers.discount[b]
            # N <- gamma N + 1 at the arm played; N2, Y and w_t likewise
            for i in range(len(counts)):
                counts[i] = gamma * counts[i] if counts[i] > TINY else 0.0
                squares[i] = gamma * gamma * squares[i] if squares[i] > TINY else 0.0
                sums[i] = gamma * sums[i] if sums[i] > TINY else 0.0
            counts[arms[b]] += 1.0
            squares[arms[b]] += 1.0
            sums[arms[b]] += rewards[b]
            state.weight[b] = gamma * gamma * state.weight[b] + 1.0


@compiled
def fit(phi: Array, numbers: GLMNumbers, state: GLMState, active: Mask) -> None:
    """Find the estimate of every learner in `active` `(B,)`.

    Args:
        phi: The arms' features, `(n, d)`.
        numbers: The learners' parameters.
        state: What they keep; `parameter` gets the estimate.
        active: Whose plays have changed.
    """
    for b in range(len(active)):
        if active[b]:
            regularization = numbers.regularization[b] * numbers.slope[b]
            estimate(phi, state.counts[b], state.sums[b], regularization, state.estimate[b])
            copy(state.estimate[b], state.parameter[b])


@compiled
def indices(phi: Array, numbers: GLMNumbers, state: GLMState, width: Array, index: Array) -> None:
    """Compute mu(x_i^T theta) + width ||x_i||_{V^{-1}} of every arm and learner.

    Args:
        phi: The arms' features, `(n, d)`.
        numbers: The learners' parameters.
        state: What they keep.
        width: The widths, `(B,)`.
        index: Where the indices go, `(B, n)`.
    """
    d = phi.shape[1]
    V, R, v = np.empty((d, d)), np.empty((d, d)), np.empty(d)
    for b in range(len(index)):
        # V = R^T R
        gram(phi, state.counts[b], numbers.regularization[b], V)
        cholesky(V, d, 0.0, PIVOT, R)
        for i in range(len(phi)):
            # v = R^{-T} x_i, so that ||v|| = ||x_i||_{V^{-1}}
            copy(phi[i], v)
            forward(R, FIRST, v)
            mean = sigmoid(dot(phi[i], state.parameter[b]))
            index[b, i] = mean + width[b] * math.sqrt(dot(v, v))
