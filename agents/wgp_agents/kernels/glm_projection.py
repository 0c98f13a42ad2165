"""The projection of the logistic model's estimate into the ball of radius S.

Notation as in `wgp_agents.kernels.glm`, and, for one learner, W = sum_i N2_i x_i x_i^T + lambda I,
with N2 as N but the weights squared. The projection minimises ||g(theta) - g(estimate)||_{W^{-1}}
over ||theta|| <= S, as `GLMUCB` states.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.cholesky import cholesky
from wgp_agents.kernels.glm import (
    COARSE,
    DECREASE,
    PIVOT,
    GLMNumbers,
    GLMState,
    furthest,
    gram,
    residual,
    sigmoid,
)
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import (
    FIRST,
    backward,
    copy,
    dot,
    forward,
)
from wgp_gym.types import Array, Mask

__all__ = ["confine"]

TOLERANCE = 1e-9  # a step that moves no arm's x^T theta by more is the last
ROUNDING = 1e-13  # of the distance, squared: what a change may drown in
MAX_PROJECTIONS = 100  # steps of the projection
MAX_SHIFTS = 60  # Newton steps for the multiplier of the sphere
MAX_HALVINGS = 40


@subroutine
def nearest(A: Array, target: Array, radius: float, theta: Array, R: Array) -> None:
    """Minimise theta^T A theta / 2 - target^T theta over ||theta|| <= radius.

    On the sphere (A + nu I) theta = target; nu >= 0 is the zero of 1 / ||theta(nu)|| - 1 / radius,
    concave in nu, to which Newton's method climbs from 0.
    """
    shift, v = 0.0, np.empty(len(theta))
    for _ in range(MAX_SHIFTS):
        cholesky(A, len(A), shift, PIVOT, R)
        copy(target, theta)
        forward(R, FIRST, theta)
        backward(R, theta)
        norm = math.sqrt(dot(theta, theta))
        if norm <= radius * (1.0 + PIVOT):
            return
        # Newton's step in nu: ||theta||^2 / ||R^{-T} theta||^2 (||theta|| - S) / S
        copy(theta, v)
        forward(R, FIRST, v)
        shift += norm**2 / dot(v, v) * (norm - radius) / radius
    for j in range(len(theta)):
        theta[j] *= radius / norm


@subroutine
def distance(
    phi: Array, counts: Array, sums: Array, regularization: float, theta: Array, RW: Array, J: Array
) -> float:
    """Return ||g(theta) - g(estimate)||^2_{W^{-1}} / 2, with W = RW^T RW.

    Row 0 of `J` `(d + 1, d)` gets RW^{-T} (g(theta) - g(estimate)), row 1 + j column j of
    RW^{-T} H.
    """
    d = len(theta)
    H = J[1:]
    # J_0 = g(theta) - g(estimate), and the whole of the symmetric H below it
    residual(phi, counts, sums, regularization, theta, J[0], H)
    for j in range(d):
        for k in range(j):
            H[j, k] = H[k, j]
    # RW^{-T} times each of them
    for j in range(d + 1):
        forward(RW, FIRST, J[j])
    return 0.5 * dot(J[0], J[0])


@subroutine
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
    backward(RW, e)  # W^{-1} (g(theta) - g(estimate))
    # sum_i N_i mu''(x_i^T theta) x_i^T e x_i x_i^T, mu'' = mu (1 - mu) (1 - 2 mu)
    for i in range(len(phi)):
        if counts[i] > 0:
            mean = sigmoid(dot(phi[i], theta))
            weight = counts[i] * mean * (1.0 - mean) * (1.0 - 2.0 * mean) * dot(phi[i], e)
            for j in range(len(A)):
                for k in range(j, len(A)):
                    A[j, k] += weight * phi[i, j] * phi[i, k]


@subroutine
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


@subroutine
def move(A: Array, slope: Array, radius: float, theta: Array, R: Array, step: Array) -> float:
    """Compute the step within the ball to the minimum of a quadratic; return its slope there."""
    target = np.empty(len(theta))
    # slope^T (x - theta) + (x - theta)^T A (x - theta) / 2 is least where A x = A theta - slope
    for j in range(len(theta)):
        target[j] = -slope[j]
        for k in range(len(theta)):
            target[j] += A[min(j, k), max(j, k)] * theta[k]
    nearest(A, target, radius, step, R)
    for j in range(len(theta)):
        step[j] -= theta[j]
    return dot(slope, step)


@subroutine
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
    # Begin at S estimate / ||estimate||.
    for j in range(d):
        theta[j] *= radius / norm
    if radius == 0.0:
        return
    J, tried = np.empty((d + 1, d)), np.empty((d + 1, d))
    A, R = np.empty((d, d)), np.empty((d, d))
    slope, step, trial = np.empty(d), np.empty(d), np.empty(d)
    value, last = distance(phi, counts, sums, regularization, theta, RW, J), math.inf
    for _ in range(MAX_PROJECTIONS):
        # The Newton step, or Gauss-Newton's where it does not descend
        model(J, slope, A)
        copy(J[0], trial)
        bend(phi, counts, theta, RW, trial, A)
        promised = move(A, slope, radius, theta, R, step)
        if not promised < 0:
            model(J, slope, A)
            promised = move(A, slope, radius, theta, R, step)
        # Halve it until the distance falls.
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
        copy(trial, theta)
        value = found
        for j in range(d + 1):
            copy(tried[j], J[j])
        if r <= TOLERANCE or (sure and r > last / 2):
            return
        last = r


@compiled
def confine(phi: Array, numbers: GLMNumbers, state: GLMState, outside: Mask) -> None:
    """Project the estimates of the learners in `outside` `(B,)` into the ball."""
    d = phi.shape[1]
    W, RW = np.empty((d, d)), np.empty((d, d))
    for b in range(len(outside)):
        if outside[b]:
            lam, radius = numbers.regularization[b], numbers.radius[b]
            # W = RW^T RW
            gram(phi, state.squares[b], lam, W)
            cholesky(W, d, 0.0, PIVOT, RW)
            counts, sums = state.counts[b], state.sums[b]
            project(phi, counts, sums, lam * numbers.slope[b], RW, radius, state.parameter[b])
