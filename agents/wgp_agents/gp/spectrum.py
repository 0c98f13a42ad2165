"""The Mercer spectrum of a kernel on a finite domain.

The eigenvalues c_m and eigenfunctions phi_m are those of [Deng22] Theorem 1 under the uniform
measure on the domain's n points: K u_m = n c_m u_m and phi_m = sqrt(n) u_m, so that the mean of
phi_m^2 over the domain is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wgp_gym.features import APART, DIAGONAL, PSD, FeatureMap, exact_features
from wgp_gym.kernels import Kernel
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, reject

__all__ = ["Spectrum", "mercer_spectrum"]

ROUNDING = 1e-14  # eigenvalues below this share of the first are rounding errors
LARGEST_DENSE = 2000  # points above which the spectrum comes from features, not from K


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A Mercer decomposition on n points and the quantities of [Deng22] Assumption 1.

    Attributes:
        eigenvalues: c_1 >= ... >= c_M > 0, `(M,)`.
        functions: Column m is phi_m on the domain, `(n, M)`: K = sum of c_m phi_m phi_m^T.
        psi: The largest |phi_m(x)|.
        k_dot: The largest |k(x, x')|; by positive semi-definiteness, the largest k(x, x).
        residual: The largest k(x, x) - sum of c_m phi_m(x)^2, at least 0: what the M terms
            leave out.
        tails: delta_N = psi^2 sum over m > N of c_m, plus `residual`, for N = 0 ... M,
            `(M + 1,)`.
    """

    eigenvalues: Array
    functions: Array
    psi: float
    k_dot: float
    residual: float
    tails: Array


def mercer_spectrum(kernel: Kernel | FeatureMap, domain: Array) -> Spectrum:
    """Return the Mercer spectrum under the uniform measure on a domain, [Deng22] Theorem 1.

    Eigenvalues below 1e-14 of the first are rounding errors: they are left out, and the rest is
    added to every tail. Beyond 2,000 points, and for a feature map, the spectrum is that of the
    exact features' `(m, m)` matrix Phi^T Phi / n, so that K is never stored.

    Args:
        kernel: The kernel, or a feature map in its place.
        domain: Points, `(n, d)`.

    Raises:
        ValueError: If the domain is not a table of points, or the kernel is zero on it, has a
            `diagonal` that is not its k(x, x), or is not positive semi-definite.
    """
    rule = "a table of finite points (n, d)"
    domain = as_floats("domain", domain, "mercer_spectrum", rule)
    if domain.ndim != 2 or domain.size == 0 or not np.isfinite(domain).all():
        reject("domain", "mercer_spectrum", rule, domain)
    n = len(domain)
    if isinstance(kernel, Kernel) and n <= LARGEST_DENSE:
        prior = kernel.diagonal(domain)
        matrix = kernel(domain, domain)
        if np.abs(matrix.diagonal() - prior).max() > APART * prior.max():
            reject("kernel", "mercer_spectrum", DIAGONAL, kernel)
        values, vectors = np.linalg.eigh(matrix / n)
        if values[0] < -APART * values[-1]:
            reject("kernel", "mercer_spectrum", PSD, kernel)
        keep = values > ROUNDING * values[-1]
        values, functions = values[keep], math.sqrt(n) * vectors[:, keep]
    else:
        features = exact_features(kernel, domain)
        table, prior = features.table, features.prior
        values, vectors = np.linalg.eigh(table.T @ table / n)
        keep = values > ROUNDING * values[-1]
        values, functions = values[keep], table @ (vectors[:, keep] / np.sqrt(values[keep]))
    if prior.max() <= 0:
        reject("kernel", "mercer_spectrum", "positive somewhere on the domain", kernel)
    return summarize(values[::-1].copy(), functions[:, ::-1].copy(), prior)


def summarize(values: Array, functions: Array, prior: Array) -> Spectrum:
    """Return the `Spectrum` of descending eigenvalues `(M,)` and functions `(n, M)`."""
    psi = float(np.abs(functions).max())
    residual = max(float((prior - functions**2 @ values).max()), 0.0)
    after = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    return Spectrum(values, functions, psi, float(prior.max()), residual, psi**2 * after + residual)
