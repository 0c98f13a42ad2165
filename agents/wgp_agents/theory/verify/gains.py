"""Section 6: Theorems 6 and 7 and Corollary 8 against the gains of greedy plays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from scipy.linalg import hadamard

from wgp_agents.gp.gain import (
    GainBound,
    double_weights,
    gain_bound,
    greedy_gains,
    information_gain,
    single_weights,
    total_weight,
)
from wgp_agents.gp.spectrum import Spectrum, mercer_spectrum
from wgp_agents.theory.decay import Decay, ExponentialDecay, PolynomialDecay
from wgp_agents.theory.verify.row import Curve, Row
from wgp_gym.envs.optimum import grid
from wgp_gym.features import exact_features
from wgp_gym.fourier import quadrature_features
from wgp_gym.kernels import Empirical, Kernel, Matern, SquaredExponential
from wgp_gym.types import Array

__all__ = ["eigendecay", "gain_remarks", "gain_theorems"]

KERNELS: dict[str, Kernel] = {
    "SE l = 0.2": SquaredExponential(0.2),
    "Matern nu = 2.5, l = 0.2": Matern(0.2, 2.5),
    "Matern nu = 0.5, l = 0.2": Matern(0.2, 0.5),
}
DISCOUNTS = (0.9, 0.97, 0.99)
LAMBDAS = (0.01, 1.0)


def gain_theorems(quick: bool, seed: int) -> Iterator[Row | Curve]:
    """Compare greedy double-weighted gains with the universal and the weight-dependent bound."""
    del seed
    horizon = 500 if quick else 2_000
    for name, kernel in KERNELS.items():
        for dim, domain in ((1, grid(100, 1)), (2, grid(15, 2))):
            spectrum = mercer_spectrum(kernel, domain)
            table = exact_features(kernel, domain).table
            for lam in LAMBDAS:
                where = f"{name}, d = {dim}, lambda = {lam}, T = {horizon}"
                yield from theorem_rows(table, spectrum, lam, horizon, where)
    yield from gain_curves(horizon)


def theorem_rows(
    table: Array, spectrum: Spectrum, lam: float, horizon: int, where: str
) -> Iterator[Row]:
    """Return the row of Theorem 6, for the largest gain, and one of Theorem 7 for each eta."""
    weights = np.stack([double_weights(eta, horizon) for eta in (1.0, *DISCOUNTS)])
    gains = greedy_gains(table, weights, lam).gains[:, -1]
    universal = gain_bound(spectrum, horizon, lam)
    claim = f"gamma-bar_T <= its bound for all weights ({described(spectrum, universal)})"
    yield Row("Theorem 6", claim, f"{where}, w = 1", float(gains[0]), float(universal.value))
    for eta, gain in zip(DISCOUNTS, gains[1:], strict=True):
        bound = gain_bound(spectrum, total_weight(eta, power=2), lam)
        claim = f"gamma-bar_T <= its bound for eta^-t ({described(spectrum, bound)})"
        yield Row("Theorem 7", claim, f"{where}, eta = {eta}", float(gain), float(bound.value))


def described(spectrum: Spectrum, bound: GainBound) -> str:
    """Return what the bound was made of."""
    size = f"N = {bound.dimension}, delta_N = {bound.tail:.1e}"
    return f"{size}, psi = {spectrum.psi:.2f}, k_dot = {spectrum.k_dot:g}"


def gain_curves(horizon: int) -> list[Curve]:
    """Return gains and bounds against t, on the paper's setting."""
    kernel, domain, eta, lam = SquaredExponential(0.2), grid(100, 1), 0.97, 0.01
    spectrum, t = mercer_spectrum(kernel, domain), np.arange(1.0, horizon + 1)
    table = exact_features(kernel, domain).table
    weighted = greedy_gains(table, double_weights(eta, horizon), lam).gains
    plain = greedy_gains(table, np.ones(horizon), lam).gains
    flat = np.full(horizon, gain_bound(spectrum, total_weight(eta, power=2), lam).value)
    return [
        Curve("gains", "greedy gamma (w = 1)", t, plain),
        Curve("gains", "Theorem 6", t, gain_bound(spectrum, t, lam).value),
        Curve("gains", f"greedy gamma-bar (eta = {eta})", t, weighted),
        Curve("gains", f"Theorem 7 (eta = {eta})", t, flat),
    ]


def eigendecay(quick: bool, seed: int) -> Iterator[Row]:
    """Compare greedy gains with Corollary 8, as printed and mended."""
    del seed
    horizon = 500 if quick else 2_000
    domain = grid(100, 1)
    for name, kernel in reversed(KERNELS.items()):
        spectrum, table = mercer_spectrum(kernel, domain), exact_features(kernel, domain).table
        decay: Decay = ExponentialDecay.fit(spectrum)
        form = "exponential"
        if isinstance(kernel, Matern):
            form, decay = "polynomial", PolynomialDecay.fit(spectrum, 2 * kernel.nu + 1)  # d = 1
        for lam in LAMBDAS:
            gain = float(greedy_gains(table, double_weights(0.97, horizon), lam).gains[-1])
            where = f"{name}, d = 1, lambda = {lam}, eta = 0.97, {form} decay"
            for claim, bound in (
                ("gamma-bar_T <= its bound, as printed", decay.printed_gain_bound),
                ("gamma-bar_T <= its bound, mended", decay.gain_bound),
            ):
                yield Row("Corollary 8", claim, where, gain, bound(spectrum, 0.97, lam))
    yield from printed_failures()


def printed_failures() -> Iterator[Row]:
    """Yield the ways in which Corollary 8 fails as printed."""
    yield from slow_decay()
    beta, N = 1.5, 10.0  # Matern nu = 1/2 in d = 2
    tail, where = float(np.sum(np.arange(N + 1, 10**6) ** -beta)), "c_m = m^-1.5, N = 10"
    name, bound = "Corollary 8, proof", N ** (1 - beta)
    claim = "the proof's delta_N / psi^2 <= C N^(1 - beta) (it lacks 1 / (beta - 1))"
    yield Row(name, claim, where, tail, bound, documented=True)
    claim = "... mended: <= C N^(1 - beta) / (beta - 1)"
    yield Row(name, claim, where, tail, bound / (beta - 1))
    spectrum = mercer_spectrum(SquaredExponential(0.2), grid(100, 1))
    decay, lam, eta = ExponentialDecay.fit(spectrum), 1e6, 0.9
    table = exact_features(SquaredExponential(0.2), grid(100, 1)).table
    gain = float(greedy_gains(table, double_weights(eta, 500), lam).gains[-1])
    printed = decay.printed_gain_bound(spectrum, eta, lam)
    where = f"SE l = 0.2, lambda = {lam:g}, eta = {eta}, exponential decay"
    claim = "gamma-bar_T <= its bound, as printed (N may not be negative)"
    yield Row("Corollary 8", claim, where, gain, printed, documented=True)
    claim = "gamma-bar_T <= its bound, mended"
    yield Row("Corollary 8", claim, where, gain, decay.gain_bound(spectrum, eta, lam))


def slow_decay() -> Iterator[Row]:
    """Take a kernel whose spectrum decays so slowly that the polynomial case fails as printed.

    Its eigenfunctions are the Walsh functions, psi = 1. All arms are played in turn; plays of the
    same arm add up.
    """
    n, beta, eta, rounds = 256, 1.05, 0.9995, 40
    c = np.arange(1.0, n + 1) ** -beta
    H = hadamard(n).astype(float)
    kernel = Empirical((H * (c / c.sum())) @ H.T)
    spectrum = mercer_spectrum(kernel, np.linspace(0, 1, n)[:, None])
    lam = 0.003 / (1 - eta**2)
    weights = np.power(eta, 2.0 * np.arange(rounds * n)).reshape(rounds, n).sum(axis=0)
    gain = information_gain(kernel.matrix, weights, lam)
    decay = PolynomialDecay.fit(spectrum, beta)
    where = f"Walsh kernel, c_m ~ m^-{beta}, n = {n}, eta = {eta}, lambda = {lam:.3g}"
    for claim, bound, false in (
        ("gamma-bar_T <= its bound, as printed", decay.printed_gain_bound, True),
        ("gamma-bar_T <= its bound, mended", decay.gain_bound, False),
    ):
        value = bound(spectrum, eta, lam)
        yield Row("Corollary 8", claim, where, gain, value, documented=false)


def gain_remarks(quick: bool, seed: int) -> Iterator[Row]:
    """Check what Section 6 says of gamma-breve."""
    del quick, seed
    lam, eta, horizon = 0.01, 0.97, 500
    one = Empirical(np.ones((1, 1)))  # a single arm: N = 1 and delta_1 = 0, all bounds are tight
    place = np.zeros((1, 1))
    spectrum, table = mercer_spectrum(one, place), exact_features(one, place).table
    gain = float(greedy_gains(table, single_weights(eta, horizon), lam).gains[-1])
    swapped = gain_bound(spectrum, total_weight(eta, power=2), lam).value
    right = gain_bound(spectrum, total_weight(eta, power=1), lam).value
    where = f"one arm, lambda = {lam}, eta = {eta}, T = {horizon}"
    claim = "gamma-breve_T <= the bound with 1 / (1 - eta^2)"
    yield Row("Section 6, end", claim, where, gain, float(swapped), documented=True)
    claim = "... mended: <= the bound with 1 / (1 - eta)"
    yield Row("Section 6, end", claim, where, gain, float(right))
    yield approximate_gain()
    yield from features_own_spectrum()


def approximate_gain() -> Row:
    """Compare the largest gains over all plays of two arms, of coarse features and the kernel."""
    kernel, arms, lam, steps = SquaredExponential(1.0), np.array([[0.0], [0.5]]), 0.01, 6
    features, weights = quadrature_features(kernel, 1, 2), single_weights(0.9, steps)[::-1]
    breve, tilde = 0.0, 0.0
    for picks in itertools.product((0, 1), repeat=steps):
        plays = arms[list(picks)]
        table = features(plays)
        breve = max(breve, information_gain(table @ table.T, weights, lam))
        tilde = max(tilde, information_gain(kernel(plays, plays), weights, lam))
    claim = "gamma-breve_T <= gamma-tilde_T, the maximum (features are approximate)"
    where = "SE l = 1, m-bar = 2, arms 0 and 0.5, lambda = 0.01, eta = 0.9, T = 6"
    return Row("Theorem 6, proof", claim, where, breve, tilde, documented=True)


def features_own_spectrum() -> Iterator[Row]:
    """Check Theorem 6 and 7 for gamma-breve, on the spectrum of the features' own kernel."""
    domain, eta, lam, horizon = grid(100, 1), 0.97, 0.01, 500
    for degree in (5, 20):
        features = quadrature_features(SquaredExponential(0.2), 1, degree)
        spectrum = mercer_spectrum(features, domain)
        table = exact_features(features, domain).table
        for name, discount, total in (
            ("Theorem 6", 1.0, float(horizon)),
            ("Theorem 7", eta, float(total_weight(eta, power=1))),
        ):
            gain = float(greedy_gains(table, single_weights(discount, horizon), lam).gains[-1])
            bound = float(gain_bound(spectrum, total, lam).value)
            claim = "gamma-breve_T <= its bound on the spectrum of the features' own kernel"
            given = f"m-bar = {degree}, lambda = {lam}, eta = {discount}, T = {horizon}"
            yield Row(name, claim, f"SE l = 0.2, {given}", gain, bound)
