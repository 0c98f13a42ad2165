"""Fourier feature maps: phi(x)^T phi(y) approximates a stationary kernel on [0, 1]^d.

By Bochner's theorem such a kernel is k(x, y) = E cos(w^T (x - y)), the mean over a spectral
measure of frequencies w. A quadrature rule or a random sample puts a sum in the mean's place.

References:
    [CG19] Chowdhury, Gopalan. Bayesian optimization under heavy-tailed payoffs. NeurIPS 2019.
    [Deng22], [Mutny18]: see `wgp_gym.kernels`.
    [Boyd87] Boyd. Exponentially convergent Fourier-Chebyshev quadrature schemes on bounded and
        infinite intervals. J. Sci. Comput. 2, 1987.
    [RR07] Rahimi, Recht. Random features for large-scale kernel machines. NeurIPS 2007.
    [TW14] Trefethen, Weideman. The exponentially convergent trapezoidal rule. SIAM Rev. 56, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from wgp_gym.arrays import ReadOnlyArrays, frozen
from wgp_gym.kernels import Kernel, SquaredExponential, matern_profile
from wgp_gym.spectral import AxisKernel, axis_kernels, random_frequencies
from wgp_gym.types import Array
from wgp_gym.validation import MAX_NUMBERS, as_floats, check_float, check_int, reject

__all__ = [
    "FourierFeatures",
    "degree_for",
    "error_bound",
    "hermite_rule",
    "quadrature_features",
    "random_features",
    "sup_error",
]

MAX_DEGREE = 200  # the errors are at rounding level long before, for lengths worth learning
MAX_NODES = 100_000
MAX_DIM = 1000
LARGEST = 1e30  # of frequencies and weights: their products with points, and sums, are finite
SMALLEST_WEIGHT = 1e-14
BLOCK_NUMBERS = 2**22  # 32 MB of features at a time


@dataclass(frozen=True, eq=False)
class FourierFeatures(ReadOnlyArrays):
    """The features sqrt(w_i) cos(omega_i^T x) and sqrt(w_i) sin(omega_i^T x), [Deng22] Section 5.

    For every x, phi(x)^T phi(x) is the sum of the weights. The frequency 0 has no sine. The
    arrays are copied, and cannot be written to.

    Args:
        frequencies: omega_1, ..., omega_M, `(M, d)`, in [-1e30, 1e30].
        weights: w_1, ..., w_M, `(M,)`, in [0, 1e30].

    Raises:
        ValueError: If the shapes do not fit together or a number is out of its range.
    """

    frequencies: Array
    weights: Array

    def __post_init__(self) -> None:
        owner = "FourierFeatures"
        frequencies = as_floats("frequencies", self.frequencies, owner, "of shape (M, d)")
        weights = as_floats("weights", self.weights, owner, "numbers of at least 0")
        if frequencies.ndim != 2:
            reject("frequencies", owner, "of shape (M, d)", frequencies.shape)
        if not (np.abs(frequencies) <= LARGEST).all():
            reject("frequencies", owner, f"finite, within {LARGEST:g}", frequencies)
        fit = weights.shape == frequencies.shape[:1]
        if not fit or not ((weights >= 0) & (weights <= LARGEST)).all():
            rule = f"{len(frequencies)} numbers of at least 0, up to {LARGEST:g}"
            reject("weights", owner, rule, weights)
        object.__setattr__(self, "frequencies", frozen(frequencies))  # so set: it is frozen
        object.__setattr__(self, "weights", frozen(weights))

    @property
    def num_features(self) -> int:
        """The number of features: two for each frequency, one for the frequency 0."""
        return len(self.weights) + int(self.frequencies.any(axis=1).sum())

    def __call__(self, X: Array) -> Array:
        """Evaluate all features at the points `X` `(..., n, d)`, as `(..., n, num_features)`.

        Raises:
            ValueError: If the points have another dimension than the frequencies.
        """
        dim = self.frequencies.shape[1]
        X = as_floats("X", X, "FourierFeatures", f"of shape (..., n, {dim})")
        if X.ndim < 2 or X.shape[-1] != dim:
            reject("X", "FourierFeatures", f"of shape (..., n, {dim})", X.shape)
        # Axis by axis, not as a matrix product, whose rounding depends on the number of points.
        phase = np.zeros((*X.shape[:-1], len(self.weights)))
        for axis in range(dim):
            phase += X[..., axis, None] * self.frequencies[:, axis]
        root, moves = np.sqrt(self.weights), self.frequencies.any(axis=1)
        sines = root[moves] * np.sin(phase[..., moves])
        return np.concatenate([root * np.cos(phase), sines], axis=-1)


def hermite_rule(degree: int) -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss-Hermite quadrature for exp(-x^2) / sqrt(pi).

    The weight of rho is v(rho) = 2^(m-1) m! / (m^2 H_{m-1}(rho)^2). With the orthonormal
    h_k = H_k / sqrt(2^k k!) that is 1 / (m h_{m-1}(rho)^2), without a factorial or a power to
    overflow: h grows like exp(rho^2 / 2), which is below 1e90 for m <= 200.

    Deviation: [Deng22] Section 5 prints m in the place of m^2, whose weights sum to m, not to 1.

    Returns:
        Nodes, ascending and exactly symmetric, and weights of sum 1, each `(m,)`.
    """
    roots = scipy.special.roots_hermite(degree)[0]
    nodes: Array = (roots - roots[::-1]) / 2
    previous, current = np.zeros(degree), np.ones(degree)
    for k in range(degree - 1):
        following = nodes * math.sqrt(2 / (k + 1)) * current - math.sqrt(k / (k + 1)) * previous
        previous, current = current, following
    return nodes, 1 / (degree * current**2)


def matern_rule(degree: int, lengthscale: float, nu: float) -> tuple[Array, Array]:
    """Return a quadrature rule for the spectral density of the one-dimensional Matern kernel.

    The trapezoidal rule in theta in (-pi/2, pi/2), with the frequency either L tan(theta)
    ([Mutny18], [Boyd87]) or L theta ([TW14], on a cut line). The density falls only like
    w^-(2 nu + 1), so the error falls about like m^-(2 nu), with a factor that depends on L; the
    first map is better for long l, the second for short. The pair with the least error over the
    lags 0 to 1 is taken.

    Deviation: [Mutny18] takes the tangent with Gauss-Legendre nodes and a fixed L, at l = 0.2,
    nu = 2.5, m = 63 at least 30 times less accurate, and with the best L 10 times.

    Returns:
        Frequencies, symmetric to 0, and weights of sum 1, each `(m,)`.
    """
    corner = math.sqrt(2 * nu) / lengthscale  # where the density starts to fall
    theta = np.arange(1 - degree, degree, 2, dtype=np.float64) * (math.pi / (2 * degree))
    lags = np.linspace(0.0, 1.0, 257)
    exact = matern_profile(lags, lengthscale, nu)
    best, least = (theta, theta), math.inf
    for scale in np.geomspace(0.1, 100.0, 91):  # L / corner
        for curve, slope in ((theta, np.ones(degree)), (np.tan(theta), 1 + np.tan(theta) ** 2)):
            weights: Array = slope * (1 + (scale * curve) ** 2) ** -(nu + 0.5)
            weights /= weights.sum()
            frequencies: Array = corner * scale * curve
            half, shared = share_pairs(frequencies, weights)
            error = float(np.abs(np.cos(np.outer(lags, half)) @ shared - exact).max())
            if error < least:
                best, least = (frequencies, weights), error
    return best


def share_pairs(nodes: Array, weights: Array) -> tuple[Array, Array]:
    """Return one node of each pair +-omega, with the weight of both.

    Args:
        nodes: Row N - 1 - i is minus row i, `(N, ...)`.
        weights: The same for both of a pair, `(N,)`.
    """
    first = len(weights) // 2
    shared = 2 * weights[first:]
    shared[: len(weights) % 2] /= 2  # the middle one of an odd number is its own partner
    return nodes[first:], shared


def tensor_features(rules: Sequence[tuple[Array, Array]]) -> FourierFeatures:
    """Return the features of the product over the axes of symmetric rules, nodes and weights.

    Weights below 1e-14 are left out and the rest scaled, so that phi(x)^T phi(x) = k(x, x) = 1.
    """
    grid, product = np.zeros((1, 0)), np.ones(1)
    for nodes, weights in rules:
        column = np.tile(nodes, len(grid))[:, None]
        grid = np.concatenate([np.repeat(grid, len(nodes), axis=0), column], axis=1)
        product = np.outer(product, weights).ravel()
    half, shared = share_pairs(grid, product)
    kept = shared >= SMALLEST_WEIGHT
    return FourierFeatures(half[kept], shared[kept] / shared[kept].sum())


def axis_rule(kernel: AxisKernel | None, degree: int) -> tuple[Array, Array]:
    """Return a quadrature rule of one axis, nodes and weights, `(m,)` each."""
    if kernel is None:
        return np.zeros(1), np.ones(1)
    (length,) = kernel.lengths(1)
    if isinstance(kernel, SquaredExponential):
        rho, weights = hermite_rule(degree)
        return math.sqrt(2) / length * rho, weights
    return matern_rule(degree, length, kernel.nu)


def quadrature_features(kernel: Kernel, dim: int, degree: int) -> FourierFeatures:
    """Return the quadrature Fourier features of a kernel, [Deng22] Section 5, after [Mutny18].

    For SquaredExponential omega = sqrt(2) rho / l, the rho and v(rho) from `hermite_rule`; for
    the Matern kernels `matern_rule`.

    Deviation: the paper has a cosine and a sine for each of m^d nodes. Those of rho and -rho are
    the same up to sign, so one of the two serves: m^d features, and the same phi(x)^T phi(y).

    Args:
        kernel: SquaredExponential, ModifiedMatern, for `dim` 1 Matern, or a product of such, each
            on columns of its own.
        dim: The dimension d of the points.
        degree: The nodes along each axis (m-bar), in [1, 200], with at most 100,000 in all.

    Raises:
        ValueError: If the kernel is another one or a number is out of its range.
    """
    owner = "quadrature_features"
    dim = check_int("dim", dim, owner, 1, MAX_DIM)
    degree = check_int("degree", degree, owner, 1, MAX_DEGREE)
    axes = axis_kernels(kernel, dim, owner)
    used = sum(own is not None for own in axes)
    if used * math.log(degree) > math.log(MAX_NODES) + 1e-9:  # the power itself may be huge
        rule = f"such that degree^dim <= {MAX_NODES:,}, dim being {used}"
        reject("degree", owner, rule, degree)
    rules = {own: axis_rule(own, degree) for own in set(axes)}
    return tensor_features([rules[own] for own in axes])


def random_features(kernel: Kernel, dim: int, count: int, seed: int) -> FourierFeatures:
    """Return features with frequencies drawn from the kernel's spectral measure, [RR07].

    It is normal for SquaredExponential, multivariate t with 2 nu degrees of freedom for Matern,
    and one such t for each axis for ModifiedMatern; all divided by l. A frequency of a product is
    the sum of one of each part, that of a sum one of a part drawn by its weight; one of some
    columns is 0 in the others.

    Args:
        kernel: SquaredExponential, Matern or ModifiedMatern, on columns or not, and sums and
            products of these.
        dim: The dimension d of the points.
        count: The number of frequencies M; there are 2 M features.
        seed: The seed of the draw, at least 0.

    Raises:
        ValueError: If the kernel is another one or a number is out of its range.
    """
    owner = "random_features"
    dim = check_int("dim", dim, owner, 1, MAX_DIM)
    count = check_int("count", count, owner, 1, MAX_NUMBERS // dim)
    rng = np.random.default_rng(check_int("seed", seed, owner, 0))
    frequencies = random_frequencies(kernel, dim, count, rng, owner)
    total = kernel.diagonal(np.zeros((1, dim))).item()  # 1, or the sum of a sum's weights
    return FourierFeatures(frequencies, np.full(count, total / count))


def sup_error(features: FourierFeatures, kernel: Kernel, points: Array) -> float:
    """Return the largest |k(x, y) - phi(x)^T phi(y)| over all pairs of points.

    Args:
        features: The feature map.
        kernel: The kernel that it approximates.
        points: Points of [0, 1]^d, `(n, d)`.

    Raises:
        ValueError: If the points are not of this kind.
    """
    dim = features.frequencies.shape[1]
    points = as_floats("points", points, "sup_error", f"of shape (n, {dim}) with n >= 1")
    if points.ndim != 2 or points.shape[1] != dim or not len(points):
        reject("points", "sup_error", f"of shape (n, {dim}) with n >= 1", points.shape)
    outside = points[~((points >= 0) & (points <= 1))]  # NaN is outside, too
    if outside.size:
        reject("points", "sup_error", "finite and in [0, 1]", float(outside[0]))
    size = int(np.clip(BLOCK_NUMBERS // features.num_features, 1, 1000))
    blocks = [points[start : start + size] for start in range(0, len(points), size)]
    largest = 0.0
    for i, rows in enumerate(blocks):
        phi = features(rows)
        for columns in blocks[i:]:
            error = np.abs(kernel(rows, columns) - phi @ features(columns).T)
            largest = max(largest, float(error.max()))
    return largest


def error_bound(degree: int, lengthscale: float, dim: int) -> float:
    """Return eps_m = d 2^(d-1) / (sqrt(2) m^m) (e / (4 l^2))^m of SquaredExponential, or inf.

    [Deng22] Appendix C.1 (QFF error), after [CG19] Lemma 14, with m = `degree`, d = `dim`. It
    takes Stirling's approximation of m! / (2m)! for an upper bound, which it is only times
    exp(1 / (24 m)): at m = 1, l = 3, d = 1 the error is 0.0540 and eps_m 0.0534.

    Raises:
        ValueError: If a parameter is out of its range.
    """
    check_int("degree", degree, "error_bound", 1, MAX_NODES)
    check_float("lengthscale", lengthscale, "error_bound", 0, closed="neither")
    check_int("dim", dim, "error_bound", 1, MAX_DIM)
    power = degree * (1 - math.log(4 * degree) - 2 * math.log(lengthscale))
    logarithm = math.log(dim) + (dim - 1.5) * math.log(2) + power
    return math.exp(logarithm) if logarithm < 709 else math.inf  # exp(709.8) overflows


def degree_for(horizon: int, gain: float) -> int:
    """Return m-bar = log_{4/e}(T^3 gamma^{3/2}), rounded up, of the proof of [Deng22] Corollary 5.

    Args:
        horizon: The number of steps T >= 1.
        gain: The information gain gamma > 0.

    Returns:
        The nodes along each axis, in [1, 200]. Deviation: capped at what `quadrature_features`
        takes.

    Raises:
        ValueError: If a number is out of its range.
    """
    horizon = check_int("horizon", horizon, "degree_for", 1)
    gain = check_float("gain", gain, "degree_for", 0, closed="neither")
    degree = (3 * math.log(horizon) + 1.5 * math.log(gain)) / (math.log(4) - 1)
    return min(max(math.ceil(degree), 1), MAX_DEGREE)
