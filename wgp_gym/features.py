"""Finite feature maps of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wgp_gym.kernels import Array, Kernel

__all__ = ["Features", "exact_features"]


@dataclass(frozen=True, eq=False)
class Features:
    """A feature map on a finite domain, whose first columns are a coarser map of their own.

    Attributes:
        table: Row i is phi(x_i), `(n, m)`.
        residuals: The largest k(x, x) - sum of the first j squared features, at index j,
            `(m + 1,)`.
        prior: k(x, x), `(n,)`.
    """

    table: Array
    residuals: Array
    prior: Array

    def rank(self, tolerance: float) -> int:
        """Return how many columns leave a residual of at most `tolerance`."""
        enough = np.flatnonzero(self.residuals <= tolerance)
        most = self.table.shape[1]
        return int(np.clip(enough[0], 1, most)) if enough.size else most


def exact_features(kernel: Kernel, domain: Array, tolerance: float = 1e-10) -> Features:
    """Return Phi with Phi Phi^T = K on a finite domain, by a pivoted Cholesky factorisation.

    The kernel matrix of a smooth kernel is numerically singular (the paper's has condition
    8e19), so a plain Cholesky factorisation fails; the pivoted one stops where nothing is left.
    Its columns shrink from left to right, which keeps Gram matrices built from them graded and
    their factorisation accurate. K is never stored: one column at a time is evaluated.

    Args:
        kernel: The kernel.
        domain: Points, `(n, d)`.
        tolerance: Stop once every k(x, x) - phi(x)^T phi(x) is at most this.

    Source: Harbrecht, Peters, Schneider. On the low-rank approximation by the pivoted Cholesky
        decomposition. Applied Numerical Mathematics 62, 2012, Algorithm 1.
    """
    prior = kernel.diagonal(domain)
    residual = prior.copy()
    columns: list[Array] = []
    residuals = [float(residual.max())]
    while len(columns) < len(domain) and residuals[-1] > tolerance:
        pivot = int(residual.argmax())
        column = kernel(domain, domain[pivot : pivot + 1])[:, 0]
        for earlier in columns:
            column = column - earlier[pivot] * earlier
        column = column / np.sqrt(residual[pivot])
        residual = np.maximum(residual - column**2, 0.0)
        residual[pivot] = 0.0
        columns.append(column)
        residuals.append(float(residual.max()))
    table = np.stack(columns, axis=1) if columns else np.zeros((len(domain), 1))
    return Features(table, np.array(residuals), prior)
