"""A block of models of a drifting function that see the same features: their Kalman steps.

Notation as in `wgp_agents.kernels.drift`. A block has K models and m features; model k drifts by
eps_k. Each covariance P_k is kept as its lower triangle, row by row, and models are innermost:
P_k[j, h], h <= j, is at (j (j + 1) / 2 + h) K + k of one vector, and theta_k[j] at j K + k of
another. So a loop runs over many neighbouring numbers, whatever K and m are.
"""

from __future__ import annotations

import math

from wgp_agents.kernels.jit import subroutine
from wgp_gym.types import Array

__all__ = [
    "elapse_block",
    "forecast_block",
    "pack_model",
    "repeat",
    "restart_model",
    "step_block",
    "unpack_covariance",
    "unpack_weights",
]


@subroutine
def repeat(x: Array, count: int) -> None:
    """Repeat the first numbers of a vector, `count` of them, all through it."""
    filled, n = count, len(x)
    while filled < n:  # twice as many with each round
        size = min(filled, n - filled)
        source, target = x[:size], x[filled : filled + size]
        for j in range(size):
            target[j] = source[j]
        filled += size


@subroutine
def forecast_block(P: Array, w: Array, f: Array, u: Array, s: Array, mean: Array) -> None:
    """Compute u_k = P_k phi `(m K,)`, s_k = phi^T u_k and phi^T theta_k `(K,)` of all models."""
    m, count = len(f), len(s)
    u[:] = 0.0
    start = 0
    for j in range(m):
        # Right of the diagonal, from row j of the triangle: u_h += P[j, h] phi_j for h < j.
        size = j * count
        row, head, own = P[start : start + size], u[:size], u[size : size + count]
        for x in range(size):
            head[x] += f[j] * row[x]
        # On the diagonal and left of it: u_j = sum over h <= j of P[j, h] phi_h.
        diagonal = P[start + size : start + size + count]
        for k in range(count):
            own[k] = f[j] * diagonal[k]
        add_products(row, f[:j], own)
        start += size + count
    s[:] = 0.0
    mean[:] = 0.0
    for j in range(m):
        own, weights = u[j * count : (j + 1) * count], w[j * count : (j + 1) * count]
        for k in range(count):
            s[k] += f[j] * own[k]
            mean[k] += f[j] * weights[k]


@subroutine
def add_products(row: Array, f: Array, out: Array) -> None:
    """Add to out_k the sum over h of row[h K + k] f_h: four terms for each number stored."""
    count, m = len(out), len(f)
    for h in range(0, m - 3, 4):
        one, two = row[h * count : (h + 1) * count], row[(h + 1) * count : (h + 2) * count]
        three, four = row[(h + 2) * count : (h + 3) * count], row[(h + 3) * count : (h + 4) * count]
        a, b, c, d = f[h], f[h + 1], f[h + 2], f[h + 3]
        for k in range(count):
            out[k] += a * one[k] + b * two[k] + c * three[k] + d * four[k]
    for h in range(m - m % 4, m):
        last = row[h * count : (h + 1) * count]
        for k in range(count):
            out[k] += f[h] * last[k]


@subroutine
def step_block(
    P: Array,
    w: Array,
    u: Array,
    shift: Array,
    gain: Array,
    fade: Array,
    eps: Array,
    keep: Array,
    along: Array,
) -> None:
    """Take in an innovation nu_k of each model, and let its weights drift to the next step.

    Args:
        P: The covariances.
        w: The weights.
        u: P_k phi, `(m K,)`; they are lost.
        shift: nu_k / (s_k + noise), `(K,)`.
        gain: ((1 - eps_k) / (s_k + noise))^{1/2}, `(K,)`.
        fade: (1 - eps_k)^{1/2}, `(K,)`.
        eps: `(K,)`.
        keep: 1 - eps_k, repeated, `(m K,)`.
        along: Room, `(m K,)`.
    """
    count, m = len(eps), len(u) // len(eps)
    # Mean: theta <- (1 - eps)^{1/2} (theta + u nu / (s + noise)), [Sar13] Section 4.3
    for j in range(m):
        weights, own = w[j * count : (j + 1) * count], u[j * count : (j + 1) * count]
        for k in range(count):
            weights[k] = fade[k] * (weights[k] + shift[k] * own[k])
            own[k] *= gain[k]
    # Covariance: P <- (1 - eps) (P - u u^T / (s + noise)) + eps I
    start = 0
    for j in range(m):
        size = (j + 1) * count
        row, factor = P[start : start + size], along[:size]
        for k in range(count):
            factor[k] = u[j * count + k]
        repeat(factor, count)
        for x in range(size):
            row[x] = keep[x] * row[x] - factor[x] * u[x]
        diagonal = row[size - count :]
        for k in range(count):
            diagonal[k] += eps[k]
        start += size


@subroutine
def elapse_block(P: Array, w: Array, eps: Array) -> None:
    """Let the models drift: theta <- (1 - eps)^{1/2} theta, P <- (1 - eps) P + eps I."""
    count, m = len(eps), len(w) // len(eps)
    for k in range(count):
        keep, fade = 1.0 - eps[k], math.sqrt(1.0 - eps[k])
        start = k
        for j in range(m):
            w[j * count + k] *= fade
            for _ in range(j + 1):
                P[start] *= keep
                start += count
            P[start - count] += eps[k]


@subroutine
def restart_model(P: Array, w: Array, k: int, count: int) -> None:
    """Bring model k back to the prior: theta = 0, P = I."""
    start = k
    for j in range(len(w) // count):
        w[j * count + k] = 0.0
        for _ in range(j + 1):
            P[start] = 0.0
            start += count
        P[start - count] = 1.0


@subroutine
def unpack_weights(w: Array, k: int, count: int, out: Array) -> None:
    """Write theta_k into a vector `(m,)`."""
    for j in range(len(out)):
        out[j] = w[j * count + k]


@subroutine
def unpack_covariance(P: Array, k: int, count: int, out: Array) -> None:
    """Write P_k into a matrix `(m, m)`, both triangles."""
    start = k
    for j in range(len(out)):
        for h in range(j + 1):
            out[j, h] = P[start]
            out[h, j] = P[start]
            start += count


@subroutine
def pack_model(source: Array, k: int, count: int, P: Array) -> None:
    """Write a matrix `(m, m)` into P_k."""
    start = k
    for j in range(len(source)):
        for h in range(j + 1):
            P[start] = source[j, h]
            start += count
