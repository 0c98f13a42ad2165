"""The Mercer spectrum and Corollary 8 against Theorem 1 itself and kernels known in closed form."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_agents.gp import spectrum as spectrum_module
from wgp_agents.gp.gain import gain_bound, information_gain
from wgp_agents.gp.spectrum import mercer_spectrum
from wgp_agents.theory.decay import Decay, ExponentialDecay, PolynomialDecay
from wgp_gym.kernels import Empirical, Linear, Matern, SquaredExponential
from wgp_gym.types import Array

GRID = np.linspace(0.0, 1.0, 100)[:, None]
PAPER = mercer_spectrum(SquaredExponential(0.2), GRID)


def walsh(n: int) -> Array:
    """Return the Hadamard matrix of order n, a power of 2: orthogonal columns of +-1."""
    table = np.ones((1, 1))
    while len(table) < n:
        table = np.block([[table, table], [table, -table]])
    return table


def walsh_kernel(eigenvalues: Array) -> tuple[Empirical, Array]:
    """Return the kernel with these eigenvalues, of sum 1, psi = 1 and k_dot = 1; and its domain."""
    n = len(eigenvalues)
    H = walsh(n)
    return Empirical((H * eigenvalues) @ H.T), np.linspace(0, 1, n)[:, None]


def normalized(values: NDArray[Any]) -> Array:
    return np.asarray(values / values.sum(), float)


@pytest.mark.parametrize("kernel", [SquaredExponential(0.2), Matern(0.2, 1.5), Linear()])
def test_theorem_1_rebuilds_the_kernel(kernel: Any) -> None:
    s = mercer_spectrum(kernel, GRID)
    rebuilt = (s.functions * s.eigenvalues) @ s.functions.T
    np.testing.assert_allclose(rebuilt, kernel(GRID, GRID), rtol=0, atol=1e-12)
    gram = s.functions.T @ s.functions / len(GRID)
    np.testing.assert_allclose(gram, np.eye(len(s.eigenvalues)), rtol=0, atol=1e-12)
    assert (np.diff(s.eigenvalues) <= 0).all()
    assert s.eigenvalues[-1] > 0


def test_linear_kernel_by_hand() -> None:
    # k = x y on n points: one eigenvalue, the mean of x^2; phi = x over its root mean square.
    s = mercer_spectrum(Linear(), GRID)
    mean_square = float((GRID**2).mean())
    np.testing.assert_allclose(s.eigenvalues, [mean_square], rtol=1e-12)
    assert s.psi == pytest.approx(1 / math.sqrt(mean_square), rel=1e-12)
    assert s.k_dot == 1.0
    np.testing.assert_allclose(s.tails, [1.0, 0.0], rtol=1e-12, atol=1e-12)


def test_known_spectrum() -> None:
    c = normalized(2.0 ** -np.arange(8))
    s = mercer_spectrum(*walsh_kernel(c))
    np.testing.assert_allclose(s.eigenvalues, c, rtol=1e-10)
    assert s.psi == pytest.approx(1.0, rel=1e-8)
    tails = [c[N:].sum() for N in range(9)]
    np.testing.assert_allclose(s.tails, tails, rtol=1e-8, atol=1e-14)


def test_what_rounding_hides_is_in_every_tail() -> None:
    c = normalized(np.array([1.0, 0.1, 1e-15, 1e-15]))
    s = mercer_spectrum(*walsh_kernel(c))
    assert len(s.eigenvalues) == 2
    assert 0 <= s.residual < 1e-14
    assert s.tails[-1] == s.residual
    assert PAPER.eigenvalues[-1] > 1e-14 * PAPER.eigenvalues[0]


def test_many_points_give_the_same_spectrum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectrum_module, "LARGEST_DENSE", 99)
    s = mercer_spectrum(SquaredExponential(0.2), GRID)
    np.testing.assert_allclose(s.eigenvalues[:10], PAPER.eigenvalues[:10], rtol=1e-7)
    assert len(s.eigenvalues) < len(PAPER.eigenvalues)  # by way of features, which leave more out
    signs = np.sign((s.functions[:, :8] * PAPER.functions[:, :8]).sum(axis=0))
    np.testing.assert_allclose(s.functions[:, :8] * signs, PAPER.functions[:, :8], atol=1e-6)
    rebuilt = (s.functions * s.eigenvalues) @ s.functions.T
    np.testing.assert_allclose(rebuilt, SquaredExponential(0.2)(GRID, GRID), rtol=0, atol=2e-10)
    missing = 1 - (s.functions**2 @ s.eigenvalues)
    assert s.residual == pytest.approx(float(missing.max()), rel=1e-3, abs=1e-14)


def test_tails_bound_what_projection_leaves_out() -> None:
    for N in range(len(PAPER.eigenvalues)):
        kept = PAPER.functions[:, :N] ** 2 @ PAPER.eigenvalues[:N]
        assert (1 - kept).max() <= PAPER.tails[N] + 1e-14


def test_fits_are_the_smallest_constants() -> None:
    c, m = PAPER.eigenvalues, np.arange(1, len(PAPER.eigenvalues) + 1)
    fits: list[Decay] = [PolynomialDecay.fit(PAPER, 3.0), ExponentialDecay.fit(PAPER)]
    for decay in fits:
        decay.check(PAPER)
        assert (c / decay.bound(m.astype(float))).max() == pytest.approx(1.0, rel=1e-12)
    given = ExponentialDecay.fit(PAPER, 0.5)
    assert given.constant == pytest.approx((c * np.exp(0.5 * m)).max(), rel=1e-12)
    geometric = mercer_spectrum(*walsh_kernel(normalized(3.0 ** -np.arange(8))))
    fitted = ExponentialDecay.fit(geometric)
    assert fitted.rate == pytest.approx(math.log(3), rel=1e-9)
    assert fitted.constant == pytest.approx(3 * geometric.eigenvalues[0], rel=1e-9)


def test_corollary_8_as_printed() -> None:
    # eta^2 = 3/4, lambda = 1/2: 1 / (lambda (1 - eta^2)) = 8. k_dot = psi = 1.
    c = normalized(2.0 ** -np.arange(8))
    s = mercer_spectrum(*walsh_kernel(c))
    eta, log = math.sqrt(0.75), math.log(9)
    polynomial = PolynomialDecay(3.0, 1.25)
    expected = ((3 * 8 / log) ** 0.8 + 1) * log
    assert polynomial.printed_gain_bound(s, eta, 0.5) == pytest.approx(expected, rel=1e-8)
    expected = ((3 * 8 / (0.25 * log)) ** 0.8 + 1) * log
    assert polynomial.gain_bound(s, eta, 0.5) == pytest.approx(expected, rel=1e-8)
    exponential = ExponentialDecay(2.0, 0.5)
    q = (math.log(4) + math.log(2 / (0.5 * 0.5))) / 0.5
    assert exponential.printed_gain_bound(s, eta, 0.5) == pytest.approx((q + 1) * log, rel=1e-8)
    expected = (q + 1) / 2 * log + 0.5
    assert exponential.gain_bound(s, eta, 0.5) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("ridge", [1e-4, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("eta", [0.5, 0.99])
def test_mended_corollary_8_is_above_theorem_7(ridge: float, eta: float) -> None:
    S = 1 / (1 - eta**2)
    for kernel in (SquaredExponential(0.2), Matern(0.2, 0.5), Linear()):
        s = mercer_spectrum(kernel, GRID)
        best = gain_bound(s, S, ridge).value
        for exponent in (1.01, 1.5, 2.0, 6.0):
            assert best <= PolynomialDecay.fit(s, exponent).gain_bound(s, eta, ridge)
        for rate in (0.01, 0.2, 1.0):
            assert best <= ExponentialDecay.fit(s, rate).gain_bound(s, eta, ridge)


def test_printed_polynomial_bound_can_fail() -> None:
    # The dropped 1 / (beta - 1) is a factor of 20 here: 40 rounds of all the arms gain more than
    # "the bound". Plays of the same arm add up, so that arm a weighs sum of eta^(2 (a + n round)).
    exponent, eta, n = 1.05, 0.9995, 256
    kernel, domain = walsh_kernel(normalized(np.arange(1.0, n + 1) ** -exponent))
    s, S = mercer_spectrum(kernel, domain), 1 / (1 - eta**2)
    plays = np.power(eta, 2.0 * np.arange(40 * n))
    ridge = 0.003 * S
    gain = information_gain(kernel.matrix, plays.reshape(40, n).sum(axis=0), ridge)
    decay = PolynomialDecay.fit(s, exponent)
    assert gain > 1.1 * decay.printed_gain_bound(s, eta, ridge)
    assert gain <= gain_bound(s, S, ridge).value
    assert gain <= decay.gain_bound(s, eta, ridge)


def test_printed_exponential_bound_can_fail() -> None:
    # A large lambda makes q < -1 and the printed bound negative; no gain is.
    decay = ExponentialDecay.fit(PAPER, 0.1)
    assert decay.printed_gain_bound(PAPER, 0.5, 100.0) < 0
    mended = decay.gain_bound(PAPER, 0.5, 100.0)  # one dimension: 1/2 log(1 + S / lambda) + 1/2
    assert mended == pytest.approx((math.log(1 + 4 / 300) + 1) / 2, rel=1e-9)
    assert mended >= gain_bound(PAPER, 4 / 3, 100.0).value > 0


@pytest.mark.parametrize("decay", [PolynomialDecay(1e3, 2.0), ExponentialDecay(1e3, 0.5)])
def test_what_the_spectrum_leaves_out_is_added(decay: Decay) -> None:
    # S residual / (2 lambda) = 4 / 3 * 0.3 / (2 * 0.1) = 2.
    more = replace(PAPER, residual=PAPER.residual + 0.3)
    added = decay.gain_bound(more, 0.5, 0.1) - decay.gain_bound(PAPER, 0.5, 0.1)
    assert added == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("decay", [PolynomialDecay(0.5, 2.0), ExponentialDecay(0.8, 0.6)])
def test_a_decay_that_does_not_hold_names_its_first_failure(decay: Decay) -> None:
    m = np.arange(1.0, len(PAPER.eigenvalues) + 1)
    first = int(np.flatnonzero(PAPER.eigenvalues > decay.bound(m))[0]) + 1
    match = rf"'spectrum' parameter of {type(decay).__name__} .*eigenvalue {first} is at most"
    for call in (decay.check, lambda s: decay.gain_bound(s, 0.9, 1.0)):
        with pytest.raises(ValueError, match=match):
            call(PAPER)
    with pytest.raises(ValueError, match=match):
        decay.printed_gain_bound(PAPER, 0.9, 1.0)


FLAT = mercer_spectrum(*walsh_kernel(np.full(4, 0.25)))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: mercer_spectrum(Linear(), np.ones(3)), r"'domain' .*\(n, d\)"),
        (lambda: mercer_spectrum(Linear(), np.empty((0, 1))), r"'domain' .*\(n, d\)"),
        (lambda: mercer_spectrum(Linear(), np.zeros((3, 1))), r"'kernel' .*positive somewhere"),
        (lambda: PolynomialDecay(0.0, 2.0), r"'constant' .*Got 0.0"),
        (lambda: PolynomialDecay(1.0, 1.0), r"'exponent' .*\(1, inf\). Got 1.0"),
        (lambda: PolynomialDecay.fit(PAPER, 0.5), r"'exponent' .*\(1, inf\). Got 0.5"),
        (lambda: ExponentialDecay(-1.0, 2.0), r"'constant' .*Got -1.0"),
        (lambda: ExponentialDecay(1.0, 0.0), r"'rate' .*Got 0.0"),
        (lambda: ExponentialDecay.fit(PAPER, -1.0), r"'rate' .*Got -1.0"),
        (lambda: ExponentialDecay.fit(FLAT), r"'rate' .*no eigenvalue decays"),
        (lambda: PolynomialDecay(9e9, 2.0).gain_bound(PAPER, 1.0, 1.0), r"'discount' .*Got 1.0"),
        (lambda: PolynomialDecay(9e9, 2.0).gain_bound(PAPER, 0.9, 0.0), r"'regularization' .*0.0"),
    ],
)
def test_errors(call: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()
