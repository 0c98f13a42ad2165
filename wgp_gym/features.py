"""Finite feature maps of a kernel."""

from __future__ import annotations

import numpy as np

from wgp_gym.kernels import Array, Kernel

__all__ = ["exact_features"]


def exact_features(kernel: Kernel, domain: Array, tolerance: float = 1e-10) -> Array:
    """Return Phi with Phi Phi^T = K on a finite domain, by a pivoted Cholesky factorisation.

    The kernel matrix of a smooth kernel is numerically singular (the paper's has condition
    8e19), so a plain Cholesky factorisation fails; the pivoted one stops where nothing is left.
    Its columns shrink from left to right, which keeps Gram matrices built from them graded and
    their factorisation accurate. K is never stored: one column at a time is evaluated.

    Args:
        kernel: The kernel.
        domain: Points, `(n, d)`.
        tolerance: Stop once every k(x, x) - phi(x)^T phi(x) is at most this.

    Returns:
        The features, `(n, m)`: row i is phi(x_i).

    Source: Harbrecht, Peters, Schneider. On the low-rank approximation by the pivoted Cholesky
        decomposition. Applied Numerical Mathematics 62, 2012, Algorithm 1.
    """
    residual = kernel.diagonal(domain).copy()
    columns: list[Array] = []
    while len(columns) < len(domain) and residual.max() > tolerance:
        pivot = int(residual.argmax())
        column = kernel(domain, domain[pivot : pivot + 1])[:, 0]
        for earlier in columns:
            column = column - earlier[pivot] * earlier
        column = column / np.sqrt(residual[pivot])
        residual = np.maximum(residual - column**2, 0.0)
        residual[pivot] = 0.0
        columns.append(column)
    return np.stack(columns, axis=1) if columns else np.zeros((len(domain), 1))
