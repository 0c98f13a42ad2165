"""The logistic model of the arms, fitted to discounted counts: estimate, projection, index.

Notation, for one learner: `phi` holds the features x_i of the arms, `(n, d)`. N and Y are the
discounted number of plays of each arm and the sum of its rewards, `(n,)`: all that the discounted
likelihood asks of the past. mu(z) = 1 / (1 + e^{-z}), c its least slope c_mu, and
    g(theta) = sum_i N_i mu(x_i^T theta) x_i + lambda c theta,
    V = sum_i N_i x_i x_i^T + lambda I,
    W = sum_i N2_i x_i x_i^T + lambda I, with N2 as N but the discount squared.
Of a symmetric matrix only the upper half is filled. All loops run over learners, one after the
other, so that no learner's numbers depend on how many there are. They stand in one file, longer
than others here, for the reason given in `wgp_agents.kernels.gram`.

References:
    [Bach10] Bach. Self-concordant analysis for logistic regression. Electronic Journal of
        Statistics 4, 2010.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array

__all__ = ["GLMNumbers", "GLMState", "indices", "learn", "sigmoid"]

LONG_STEP = 1.0  # below, a step that is certain to descend is long enough
LAST_STEP = 1e-5  # a Newton step that moves no arm's x^T theta by more is the last
TOLERANCE = 1e-9  # and one of the projection
COARSE = 1e-3  # below, a step that is no shorter than half the last one is rounding
MAX_STEPS = 200  # Newton steps, also where the start is far and the regularization next to nothing
MAX_PROJECTIONS = 100  # steps of the projection
MAX_SHIFTS = 60  # Newton steps for the multiplier of the sphere
MAX_HALVINGS = 40
DECREASE = 1e-4  # the share of the promised decrease that a step has to keep
ROUNDING = 1e-13  # of the distance, squared: what a change may drown in
PIVOT = 1e-14  # of a diagonal element: smaller pivots are rounding
TINY = 1e-200  # counts below are forgotten: still smaller numbers are slow


class GLMState(NamedTuple):
    """What the learners keep.

    Attributes:
        counts: N, `(B, n)`.
        squares: N2, `(B, n)`.
        sums: Y, `(B, n)`.
        weight: The sum of the squared weights of all plays, `(B,)`.
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
        discount: gamma.
        regularization: lambda.
        slope: c_mu.
        radius: S, of the ball.
    """

    discount: Array
    regularization: Array
    slope: Array
    radius: Array


@compiled
def sigmoid(z: float) -> float:
    """Return mu(z) = 1 / (1 + e^{-z})."""
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@compiled
def dot(x: Array, y: Array) -> float:
    """Return x^T y."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@compiled
def factorise(A: Array, shift: float, R: Array) -> None:
    """Factorise A + shift I = R^T R, R upper; pivots that rounding spoilt are kept positive."""
    d = len(A)
    for i in range(d):
        for j in range(i, d):
            R[i, j] = A[i, j]
        R[i, i] += shift
        least = PIVOT * R[i, i]
        for k in range(i):
            above = R[k, i]
            for j in range(i, d):
                R[i, j] -= above * R[k, j]
        R[i, i] = math.sqrt(max(R[i, i], least))
        for j in range(i + 1, d):
            R[i, j] /= R[i, i]


@compiled
def forward(R: Array, x: Array) -> None:
    """Put R^{-T} x in the place of x."""
    for j in range(len(x)):
        for k in range(j):
            x[j] -= R[k, j] * x[k]
        x[j] /= R[j, j]


@compiled
def backward(R: Array, x: Array) -> None:
    """Put R^{-1} x in the place of x."""
    for j in range(len(x) - 1, -1, -1):
        for k in range(j + 1, len(x)):
            x[j] -= R[j, k] * x[k]
        x[j] /= R[j, j]


@compiled
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


@compiled
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
            mean = sigmoid(dot(x, theta))
            excess, slope = counts[i] * mean - sums[i], counts[i] * mean * (1.0 - mean)
            for j in range(len(x)):
                r[j] += excess * x[j]
                scaled, row = slope * x[j], H[j]
                for k in range(j, len(x)):
                    row[k] += scaled * x[k]


@compiled
def furthest(phi: Array, step: Array) -> float:
    """Return the largest |x_i^T step|."""
    largest = 0.0
    for i in range(len(phi)):
        largest = max(largest, abs(dot(phi[i], step)))
    return largest


@compiled
def loss(phi: Array, counts: Array, sums: Array, regularization: float, theta: Array) -> float:
    """Return the regularized discounted negative log-likelihood; its gradient: `residual`."""
    total = 0.5 * regularization * dot(theta, theta)
    for i in range(len(phi)):
        if counts[i] > 0:
            z = dot(phi[i], theta)
            misses = counts[i] - sums[i] if z > 0 else sums[i]
            total += counts[i] * math.log1p(math.exp(-abs(z))) + misses * abs(z)
    return total


@compiled
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
        residual(phi, counts, sums, regularization, theta, gradient, H)
        factorise(H, 0.0, R)
        p[:] = gradient
        forward(R, p)
        backward(R, p)
        r = furthest(phi, p)
        length, safe = 1.0, math.log1p(r) / r if r > 0 else 1.0
        if r > LONG_STEP:
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
def nearest(A: Array, target: Array, radius: float, theta: Array, R: Array) -> None:
    """Minimise theta^T A theta / 2 - target^T theta over ||theta|| <= radius.

    On the sphere (A + nu I) theta = target; nu >= 0 is the zero of 1 / ||theta(nu)|| - 1 / radius,
    concave in nu, to which Newton's method climbs from 0.
    """
    shift, v = 0.0, np.empty(len(theta))
    for _ in range(MAX_SHIFTS):
        factorise(A, shift, R)
        theta[:] = target
        forward(R, theta)
        backward(R, theta)
        norm = math.sqrt(dot(theta, theta))
        if norm <= radius * (1.0 + PIVOT):
            return
        v[:] = theta
        forward(R, v)
        shift += norm**2 / dot(v, v) * (norm - radius) / radius
    for j in range(len(theta)):
        theta[j] *= radius / norm


@compiled
def distance(
    phi: Array, counts: Array, sums: Array, regularization: float, theta: Array, RW: Array, J: Array
) -> float:
    """Return ||g(theta) - g(estimate)||^2_{W^{-1}} / 2, with W = RW^T RW.

    Row 0 of `J` `(d + 1, d)` gets RW^{-T} (g(theta) - g(estimate)), row 1 + j column j of
    RW^{-T} H.
    """
    d = len(theta)
    H = J[1:]
    residual(phi, counts, sums, regularization, theta, J[0], H)
    for j in range(d):
        for k in range(j):
            H[j, k] = H[k, j]
    for j in range(d + 1):
        forward(RW, J[j])
    return 0.5 * dot(J[0], J[0])


@compiled
def bend(phi: Array, counts: Array, theta: Array, RW: Array, e: Array, A: Array) -> None:
    """Add to A, the square of the Jacobian, what makes it the Hessian of `distance`.

    Args:
        phi: The arms' features, `(n, d)`.
        counts: N, `(n,)`.
        theta: Where, `(d,)`.
        RW: The factor of W.
        e: RW^{-T} (g(theta) - g(estimate)); it is lost.
        A: `(d, d)`.
    """
    backward(RW, e)
    for i in range(len(phi)):
        if counts[i] > 0:
            mean = sigmoid(dot(phi[i], theta))
            weight = counts[i] * mean * (1.0 - mean) * (1.0 - 2.0 * mean) * dot(phi[i], e)
            for j in range(len(A)):
                for k in range(j, len(A)):
                    A[j, k] += weight * phi[i, j] * phi[i, k]


@compiled
def model(J: Array, slope: Array, A: Array) -> None:
    """Compute the gradient of `distance` and the square A of its Jacobian from `J`."""
    trace = 0.0
    for j in range(len(slope)):
        slope[j] = dot(J[1 + j], J[0])
        for k in range(j, len(slope)):
            A[j, k] = dot(J[1 + j], J[1 + k])
        trace += A[j, j]
    for j in range(len(slope)):
        A[j, j] += PIVOT * trace


@compiled
def move(A: Array, slope: Array, radius: float, theta: Array, R: Array, step: Array) -> float:
    """Compute the step within the ball to the minimum of a quadratic; return its slope there."""
    target = np.empty(len(theta))
    for j in range(len(theta)):
        target[j] = -slope[j]
        for k in range(len(theta)):
            target[j] += A[min(j, k), max(j, k)] * theta[k]
    nearest(A, target, radius, step, R)
    for j in range(len(theta)):
        step[j] -= theta[j]
    return dot(slope, step)


@compiled
def project(
    phi: Array,
    counts: Array,
    sums: Array,
    regularization: float,
    RW: Array,
    radius: float,
    theta: Array,
) -> None:
    """Move theta, the estimate, to where ||g(theta) - g(estimate)||_{W^{-1}} is least in the ball.

    Newton's steps within the ball, Gauss-Newton's where those do not descend, each halved until
    the distance falls.
    """
    norm, d = math.sqrt(dot(theta, theta)), len(theta)
    if norm <= radius:
        return
    for j in range(d):
        theta[j] *= radius / norm
    if radius == 0.0:
        return
    J, tried = np.empty((d + 1, d)), np.empty((d + 1, d))
    A, R = np.empty((d, d)), np.empty((d, d))
    slope, step, trial = np.empty(d), np.empty(d), np.empty(d)
    value, last = distance(phi, counts, sums, regularization, theta, RW, J), math.inf
    for _ in range(MAX_PROJECTIONS):
        model(J, slope, A)
        trial[:] = J[0]
        bend(phi, counts, theta, RW, trial, A)
        promised = move(A, slope, radius, theta, R, step)
        if not promised < 0:
            model(J, slope, A)
            promised = move(A, slope, radius, theta, R, step)
        length, found = 1.0, value
        r = furthest(phi, step)
        sure = r < COARSE and -promised <= ROUNDING * value  # too little for `value` to show
        for _ in range(MAX_HALVINGS):
            for j in range(d):
                trial[j] = theta[j] + length * step[j]
            found = distance(phi, counts, sums, regularization, trial, RW, tried)
            if sure or found <= value + DECREASE * length * promised:
                break
            length /= 2
        if not (sure or found < value):  # no step along it descends: as far as rounding lets it
            return
        theta[:], value = trial, found
        J[:] = tried
        if r <= TOLERANCE or (sure and r > last / 2):
            return
        last = r


@compiled
def learn(
    phi: Array,
    numbers: GLMNumbers,
    state: GLMState,
    arms: NDArray[np.int64],
    rewards: Array,
    active: NDArray[np.bool_],
) -> None:
    """Take in one play of every learner in `active` `(B,)`, and fit its model anew.

    Args:
        phi: The arms' features, `(n, d)`.
        numbers: The learners' parameters.
        state: What they keep.
        arms: The arms played, `(B,)`.
        rewards: What was paid, in [0, 1], `(B,)`.
        active: Who played.
    """
    d = phi.shape[1]
    W, RW = np.empty((d, d)), np.empty((d, d))
    for b in range(len(arms)):
        if active[b]:
            counts, squares, sums = state.counts[b], state.squares[b], state.sums[b]
            gamma = numbers.discount[b]
            for i in range(len(phi)):
                counts[i] = gamma * counts[i] if counts[i] > TINY else 0.0
                squares[i] = gamma * gamma * squares[i] if squares[i] > TINY else 0.0
                sums[i] = gamma * sums[i] if sums[i] > TINY else 0.0
            counts[arms[b]] += 1.0
            squares[arms[b]] += 1.0
            sums[arms[b]] += rewards[b]
            state.weight[b] = gamma * gamma * state.weight[b] + 1.0
            regularization = numbers.regularization[b] * numbers.slope[b]
            estimate(phi, counts, sums, regularization, state.estimate[b])
            state.parameter[b] = state.estimate[b]
            gram(phi, squares, numbers.regularization[b], W)
            factorise(W, 0.0, RW)
            project(phi, counts, sums, regularization, RW, numbers.radius[b], state.parameter[b])


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
        gram(phi, state.counts[b], numbers.regularization[b], V)
        factorise(V, 0.0, R)
        for i in range(len(phi)):
            v[:] = phi[i]
            forward(R, v)
            mean = sigmoid(dot(phi[i], state.parameter[b]))
            index[b, i] = mean + width[b] * math.sqrt(dot(v, v))
