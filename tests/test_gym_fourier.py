"""Fourier features against the kernels, SciPy's quadrature, the paper's map and distributions."""

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import eval_hermite, gamma, roots_hermite
from scipy.stats import kstest, t
from sklearn.gaussian_process import kernels as sklearn_kernels

from wgp_gym.envs.optimum import grid
from wgp_gym.fourier import (
    FourierFeatures,
    degree_for,
    error_bound,
    hermite_rule,
    quadrature_features,
    random_features,
    sup_error,
)
from wgp_gym.kernels import (
    Empirical,
    Kernel,
    Linear,
    Matern,
    ModifiedMatern,
    SquaredExponential,
    make_kernel,
)

Array = NDArray[np.float64]


def points(n: int, dim: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((n, dim))


def gram(features: FourierFeatures, X: Array, Y: Array) -> Array:
    product: Array = features(X) @ features(Y).T
    return product


# The modified Matern kernel


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_modified_matern_is_the_product_over_axes(nu: float, dim: int) -> None:
    kernel, one = ModifiedMatern(0.3, nu), sklearn_kernels.Matern(0.3, nu=nu)
    X, Y = points(20, dim), points(13, dim, seed=1)
    expected = np.prod([one(X[:, [j]], Y[:, [j]]) for j in range(dim)], axis=0)
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(kernel.diagonal(X), np.ones(20))
    assert np.linalg.eigvalsh(kernel(X, X))[0] > -1e-12
    differs = np.abs(kernel(X, Y) - Matern(0.3, nu)(X, Y)).max()
    assert differs < 1e-14 if dim == 1 else differs > 1e-3


def test_modified_matern_broadcasts_and_each_pair_stands_alone() -> None:
    kernel = make_kernel("modified-matern", 0.3, 1.5)
    assert kernel == ModifiedMatern(0.3, 1.5)
    X, Y = points(60, 2).reshape(3, 1, 20, 2), points(28, 2, seed=1).reshape(4, 7, 2)
    K = kernel(X, Y)
    assert K.shape == (3, 4, 20, 7)
    assert kernel.diagonal(X).shape == (3, 1, 20)
    assert K[2, 3, 19, 6] == kernel(X[2, 0, 19:], Y[3, 6:])[0, 0]  # to the last bit


# The rule of Gauss and Hermite


@pytest.mark.parametrize("degree", [1, 2, 3, 10, 63])
def test_hermite_rule_is_scipys(degree: int) -> None:
    nodes, weights = hermite_rule(degree)
    roots, scaled = roots_hermite(degree)
    np.testing.assert_allclose(nodes, roots, atol=1e-13)
    np.testing.assert_allclose(weights, scaled / math.sqrt(math.pi), rtol=1e-11)


@pytest.mark.parametrize("degree", [1, 2, 3, 10, 63, 150, 151, 200])
def test_hermite_rule_integrates_polynomials(degree: int) -> None:
    nodes, weights = hermite_rule(degree)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert (weights > 0).all()
    np.testing.assert_array_equal(nodes, -nodes[::-1])
    for power in range(1, min(degree, 30)):  # exact up to x^(2 m - 1)
        exact = gamma(power + 0.5) / math.sqrt(math.pi)
        assert np.sum(weights * nodes ** (2 * power)) == pytest.approx(exact, rel=1e-12)


# Quadrature features


def papers_map(X: Array, degree: int, lengthscale: float) -> Array:
    """[Deng22] Section 5 as it is printed, with m^2 for m: 2 m^d features."""
    dim, rho = X.shape[1], roots_hermite(degree)[0]
    top = 2.0 ** (degree - 1) * math.factorial(degree)
    v = top / (degree * eval_hermite(degree - 1, rho)) ** 2
    grids = np.meshgrid(*[rho] * dim, indexing="ij")
    nodes = np.stack([axis.ravel() for axis in grids], axis=1)
    weights = np.prod(np.meshgrid(*[v] * dim, indexing="ij"), axis=0).ravel()
    phase = math.sqrt(2) / lengthscale * X @ nodes.T
    return np.hstack([np.sqrt(weights) * np.cos(phase), np.sqrt(weights) * np.sin(phase)])


@pytest.mark.parametrize(
    ("dim", "degree"), [(1, 1), (1, 8), (1, 9), (2, 6), (2, 7), (3, 4), (3, 5)]
)
def test_one_of_each_pair_is_as_good_as_the_papers_map(dim: int, degree: int) -> None:
    X, Y = points(30, dim), points(20, dim, seed=1)
    features = quadrature_features(SquaredExponential(0.7), dim, degree)
    assert features.num_features == features(X).shape[1] == degree**dim  # the paper: twice
    expected = papers_map(X, degree, 0.7) @ papers_map(Y, degree, 0.7).T
    np.testing.assert_allclose(gram(features, X, Y), expected, atol=1e-13)


def test_light_weights_are_dropped_and_the_rest_sum_to_one() -> None:
    for dim, expected in [(1, 39), (2, 1117)]:
        features = quadrature_features(SquaredExponential(0.2), dim, 63)
        assert features.num_features == expected  # of 63 and 3,969
        assert features.weights.min() >= 1e-14
        squares = np.sum(features(points(9, dim)) ** 2, axis=1)
        np.testing.assert_allclose(squares, 1, rtol=1e-13)


@pytest.mark.parametrize(
    ("dim", "side", "degree", "tolerance"),
    # Measured: 1.6e-15, 1.1e-14, 2.3e-13; at 20 6.0e-5 both times.
    [
        (1, 301, 63, 1e-14),
        (1, 101, 200, 1e-13),
        (2, 21, 63, 1e-12),
        (1, 301, 20, 1e-4),
        (2, 21, 20, 1e-4),
    ],
)
def test_converges_to_squared_exponential(
    dim: int, side: int, degree: int, tolerance: float
) -> None:
    X = grid(side, dim)
    features = quadrature_features(SquaredExponential(0.2), dim, degree)
    error = np.abs(gram(features, X, X) - sklearn_kernels.RBF(0.2)(X)).max()
    assert error < tolerance
    assert sup_error(features, SquaredExponential(0.2), X) == pytest.approx(error, abs=1e-14)


def test_error_bound_holds() -> None:
    checked, tight = 0, 0.0
    for lengthscale in (0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0):
        kernel = SquaredExponential(lengthscale)
        for dim, side in [(1, 101), (2, 11), (3, 5)]:
            for degree in (1, 2, 3, 5, 8, 12, 17, 25):
                bound = error_bound(degree, lengthscale, dim)
                if bound < 1e-13 or degree**dim > 3000:
                    continue
                features = quadrature_features(kernel, dim, degree)
                error = sup_error(features, kernel, grid(side, dim))
                # The paper's step from m! / (2m)! loses this factor; up to l = 2 it is not needed.
                slack = math.exp(1 / (24 * degree)) if lengthscale > 2 else 1.0
                assert error <= bound * slack + 1e-14, (lengthscale, dim, degree)
                checked, tight = checked + 1, max(tight, error / bound)
    assert checked > 90
    assert tight > 1  # the bound as printed fails, so the slack is no accident


def test_error_bound_as_printed_fails_for_a_long_length() -> None:
    features, kernel = quadrature_features(SquaredExponential(3.0), 1, 1), SquaredExponential(3.0)
    error = sup_error(features, kernel, grid(2, 1))
    assert error == pytest.approx(1 - math.exp(-1 / 18))  # degree 1: phi is constant
    assert error > error_bound(1, 3.0, 1) == pytest.approx(math.e / (36 * math.sqrt(2)))


def test_error_bound_by_hand() -> None:
    assert error_bound(2, 0.5, 3) == pytest.approx(3 * 4 / math.sqrt(2) / 4 * math.e**2)
    assert error_bound(1, 1e-200, 1) == math.inf
    assert error_bound(200, 1.0, 1) == 0.0


# The error falls like degree^-(2 nu), on which the tolerances, 1.5 times what was measured, rest.
MATERN_ERRORS = {
    2.5: {20: 2.2e-3, 63: 2.9e-5, 200: 1.9e-7},
    1.5: {20: 1.0e-2, 63: 5.7e-4, 200: 2.1e-5},
    0.5: {20: 1.0e-1, 63: 3.0e-2, 200: 5.2e-3},
}


@pytest.mark.parametrize("nu", MATERN_ERRORS)
def test_converges_to_matern(nu: float) -> None:
    X = grid(301, 1)
    exact = sklearn_kernels.Matern(0.2, nu=nu)(X)
    for degree, measured in MATERN_ERRORS[nu].items():
        features = quadrature_features(ModifiedMatern(0.2, nu), 1, degree)
        assert np.abs(gram(features, X, X) - exact).max() < 1.5 * measured
        np.testing.assert_allclose(np.sum(features(X) ** 2, axis=1), 1, rtol=1e-13)
        plain = quadrature_features(Matern(0.2, nu), 1, degree)
        np.testing.assert_array_equal(plain.frequencies, features.frequencies)


@pytest.mark.parametrize(("lengthscale", "most"), [(0.05, 9e-3), (1.0, 6e-7), (10.0, 2e-9)])
def test_matern_rule_adapts_to_the_length(lengthscale: float, most: float) -> None:
    kernel = ModifiedMatern(lengthscale, 2.5)
    assert sup_error(quadrature_features(kernel, 1, 63), kernel, grid(301, 1)) < most


@pytest.mark.parametrize("nu", MATERN_ERRORS)
def test_matern_errors_add_over_the_axes(nu: float) -> None:
    kernel = ModifiedMatern(0.2, nu)
    one = sup_error(quadrature_features(kernel, 1, 20), kernel, grid(501, 1))
    two = quadrature_features(kernel, 2, 20)
    assert two.num_features == 400
    assert 0.5 * one < sup_error(two, kernel, grid(31, 2)) < 2 * one


@pytest.mark.parametrize("kernel", [SquaredExponential(0.5), ModifiedMatern(0.5, 2.5)])
def test_one_node_is_the_constant(kernel: Kernel) -> None:
    for dim in (1, 3, 100):
        features = quadrature_features(kernel, dim, 1)
        np.testing.assert_array_equal(features(points(4, dim)), np.ones((4, 1)))


# The map


def test_features_by_hand() -> None:
    features = FourierFeatures(np.array([[0.0, 0.0], [1.0, -2.0]]), np.array([0.25, 0.75]))
    X = np.array([[0.0, 0.0], [0.5, 0.1], [1.0, 1.0]])
    root, phase = math.sqrt(0.75), np.array([0.0, 0.3, -1.0])
    expected = np.stack([np.full(3, 0.5), root * np.cos(phase), root * np.sin(phase)], axis=1)
    np.testing.assert_allclose(features(X), expected, atol=1e-15)
    assert features.num_features == 3


def test_features_broadcast_and_each_point_stands_alone() -> None:
    features = quadrature_features(SquaredExponential(0.3), 2, 9)
    X = points(60, 2).reshape(3, 4, 5, 2)
    table = features(X)
    assert table.shape == (3, 4, 5, features.num_features)
    np.testing.assert_array_equal(table[2, 1, 3:4], features(X[2, 1, 3:4]))  # to the last bit


def test_sup_error_finds_one_pair_across_blocks() -> None:
    # More points than a block holds; phi is the constant 1, wrong only for points apart.
    features = FourierFeatures(np.zeros((1, 1)), np.ones(1))
    X = np.full((2500, 1), 0.5)
    X[3], X[2400] = 0.0, 1.0
    error = sup_error(features, SquaredExponential(0.2), X)
    assert error == pytest.approx(1 - math.exp(-12.5), rel=1e-14)
    assert sup_error(features, SquaredExponential(0.2), X[4:2400]) == 0.0


# Random features

RANDOM: list[Any] = [
    pytest.param(SquaredExponential(0.4), 1, id="se-1"),
    pytest.param(SquaredExponential(0.4), 3, id="se-3"),
    *[
        pytest.param(kind(0.4, nu), dim, id=f"{kind.__name__}-{nu}-{dim}")
        for kind in (Matern, ModifiedMatern)
        for nu in (0.5, 1.5, 2.5)
        for dim in (1, 2, 3)
    ],
]


@pytest.mark.parametrize(("kernel", "dim"), RANDOM)
def test_random_features_are_unbiased(kernel: Kernel, dim: int) -> None:
    features, X = random_features(kernel, dim, 40_000, 7), points(12, dim)
    assert features.num_features == 80_000
    np.testing.assert_allclose(np.sum(features(X) ** 2, axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(features.weights, np.full(40_000, 1 / 40_000))
    # A mean of 40,000 cosines has a standard deviation below 0.0036; the largest error over the
    # 66 pairs, 20 kernels and 20 seeds was 0.0137.
    assert sup_error(features, kernel, X) < 0.016


def test_random_frequencies_of_one_axis_are_student_t() -> None:
    for kernel in (Matern(0.4, 1.5), ModifiedMatern(0.4, 1.5)):
        frequencies = random_features(kernel, 2, 4000, 3).frequencies * 0.4
        for axis in range(2):
            # The smallest p-value of 240 (60 seeds, 2 kernels, 2 axes) was 0.0013.
            assert kstest(frequencies[:, axis], t(3).cdf).pvalue > 1e-3


def test_random_frequencies_share_a_divisor_or_not() -> None:
    # How much likelier two axes are large together than if they were independent: over 60 seeds
    # 3.9 to 6.0 times for the multivariate t, 0.35 to 1.7 times for one t each.
    for kernel, dependent in [(Matern(0.4, 1.5), True), (ModifiedMatern(0.4, 1.5), False)]:
        large = np.abs(random_features(kernel, 2, 4000, 3).frequencies) > 3 / 0.4
        assert bool(large.all(axis=1).mean() > 2.8 * large.mean() ** 2) is dependent


def test_random_features_come_from_the_seed_alone() -> None:
    draw = [random_features(Matern(0.4, 1.5), 2, 9, seed).frequencies for seed in (3, 3, 4)]
    np.testing.assert_array_equal(draw[0], draw[1])
    assert not np.any(draw[0] == draw[2])


# The degree of the theory


@pytest.mark.parametrize("horizon", [2, 10, 500, 10_000])
def test_degree_for(horizon: int) -> None:
    gain = math.log(horizon) ** 2
    degree = degree_for(horizon, gain)
    target = horizon**3 * gain**1.5  # (4/e)^m is at least this, (4/e)^(m-1) is not
    assert (4 / math.e) ** degree >= target > (4 / math.e) ** (degree - 1)


def test_degree_for_its_ends() -> None:
    assert degree_for(500, math.log(500) ** 2) == 63
    assert degree_for(1, 1.0) == degree_for(1, 0.5) == 1
    assert degree_for(10**15, 1e6) == 200


# What is refused

SE = SquaredExponential(0.2)
WAVE = FourierFeatures(np.ones((2, 2)), np.ones(2))
EMPIRICAL = Empirical(np.eye(2))
QUADRATURE = r"The 'kernel' parameter of quadrature_features must be SquaredExponential, "
QUADRATURE += r"ModifiedMatern or, for dim 1, Matern, or a product of such, .*\. Got '{}' instead"
RANDOM_KERNEL = r"The 'kernel' parameter of random_features must be SquaredExponential, "
RANDOM_KERNEL += r"Matern or ModifiedMatern, on columns or not, .* of these\. Got '{}' instead"
NODES = r"'degree' parameter .* degree\^dim <= 100,000, dim being {}\. Got {} instead"

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: ModifiedMatern(0.0), r"'lengthscale' parameter of ModifiedMatern .*\[1e-09, 1e\+09\]"),
    (lambda: ModifiedMatern(0.2, 2.0), "'nu' parameter of ModifiedMatern must be 0.5, 1.5 or 2.5"),
    (lambda: make_kernel(cast("Any", "modified_matern"), 1, 1.5), "did you mean 'modified-matern'"),
    (lambda: quadrature_features(Linear(), 1, 9), QUADRATURE.format("Linear")),
    (lambda: quadrature_features(EMPIRICAL, 1, 9), QUADRATURE.format("Empirical")),
    (lambda: quadrature_features(Matern(0.2, 1.5), 2, 9), QUADRATURE.format("Matern")),
    (lambda: quadrature_features(SE, 1, 0), r"'degree' .* an int in \[1, 200\]\. Got 0 instead"),
    (lambda: quadrature_features(SE, 1, 201), r"'degree' .* int in \[1, 200\]\. Got 201 instead"),
    (lambda: quadrature_features(SE, 1, 9.0), r"'degree' .* Got 9.0"),  # type: ignore[arg-type]
    (lambda: quadrature_features(SE, 0, 9), r"'dim' .* an int in \[1, 1000\]\. Got 0 instead"),
    (lambda: quadrature_features(SE, 3, 47), NODES.format(3, 47)),
    (lambda: quadrature_features(SE, 1000, 2), NODES.format(1000, 2)),
    (lambda: quadrature_features(SE, 10**400, 1), r"'dim' .* \[1, 1000\]\. Got <an int of 1329"),
    (lambda: random_features(Linear(), 1, 9, 0), RANDOM_KERNEL.format("Linear")),
    (lambda: random_features(EMPIRICAL, 1, 9, 0), RANDOM_KERNEL.format("Empirical")),
    (lambda: random_features(SE, 0, 9, 0), r"'dim' .* an int in \[1, 1000\]\. Got 0 instead"),
    (lambda: random_features(SE, 1, 0, 0), r"'count' .* an int in \[1, 50000000\]\. Got 0"),
    (lambda: random_features(SE, 100, 10**6, 0), r"'count' .* in \[1, 500000\]\. Got 1000000"),
    (lambda: random_features(SE, 1, 9, -1), "'seed' .* an int of at least 0. Got -1 instead"),
    (lambda: WAVE(np.ones((3, 1))), r"'X' .* of shape \(..., n, 2\)\. Got \(3, 1\) instead"),
    (lambda: WAVE(np.ones(2)), r"'X' .* of shape \(..., n, 2\)\. Got \(2,\) instead"),
    (lambda: FourierFeatures(np.ones(2), np.ones(2)), r"'frequencies' .* \(M, d\)\. Got \(2,\)"),
    (lambda: FourierFeatures(np.ones((2, 1)), np.ones(3)), "'weights' .* 2 numbers of at least 0"),
    (lambda: FourierFeatures(np.ones((1, 1)), -np.ones(1)), "'weights' .* 1 numbers of at least 0"),
    (lambda: sup_error(WAVE, SE, np.ones(2)), r"'points' .* shape \(n, 2\) .* Got \(2,\) instead"),
    (lambda: sup_error(WAVE, SE, np.ones((3, 1))), r"'points' .* shape \(n, 2\) .* Got \(3, 1\)"),
    (lambda: sup_error(WAVE, SE, np.ones((0, 2))), r"'points' .* with n >= 1\. Got \(0, 2\)"),
    *[
        (
            lambda value=value: sup_error(WAVE, SE, np.array([[0.5, 0.5], [0.5, value]])),
            rf"'points' .* finite and in \[0, 1\]\. Got {value} instead",
        )
        for value in (-0.1, 1.5, float("nan"), float("inf"))
    ],
    (lambda: error_bound(0, 0.2, 1), r"'degree' .* an int in \[1, 100000\]\. Got 0 instead"),
    (lambda: error_bound(9, 0.0, 1), r"'lengthscale' .* a float in \(0, inf\)\. Got 0.0 instead"),
    (lambda: error_bound(9, 0.2, 0), r"'dim' .* an int in \[1, 1000\]\. Got 0 instead"),
    (lambda: degree_for(0, 1.0), "'horizon' .* an int of at least 1. Got 0 instead"),
    (lambda: degree_for(9, 0.0), r"'gain' .* a float in \(0, inf\)\. Got 0.0 instead"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
