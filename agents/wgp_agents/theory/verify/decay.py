"""Corollary 8: eigendecay and the information gain, as printed and mended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.linalg import hadamard

from wgp_agents.gp.gain import double_weights, greedy_gains, information_gain
from wgp_agents.gp.spectrum import Spectrum, mercer_spectrum
from wgp_agents.theory.decay import Decay, ExponentialDecay, PolynomialDecay
from wgp_agents.theory.verify.gains import KERNELS, trivial_gain
from wgp_agents.theory.verify.row import SAYS_NOTHING, Row, printed_and_mended
from wgp_gym.envs.optimum import grid
from wgp_gym.features import exact_features
from wgp_gym.kernels import Empirical, Matern, SquaredExponential

__all__ = ["eigendecay"]

SLOW = "Matern nu = 0.5, l = 0.2"  # its bound is larger than that for any kernel on 100 points
COROLLARY = "gamma-bar_T <= its bound"


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
        for lam in (1e-4, 0.01):
            weights = double_weights(0.97, horizon)
            gain = float(greedy_gains(table, weights, lam).gains[-1])
            most = trivial_gain(weights, lam, spectrum.k_dot, len(domain))
            where = f"{name}, d = 1, lambda = {lam}, eta = 0.97, {form} decay"
            for printed, label, times in ((True, "as printed", 8), (False, "mended", 4)):
                claim = f"{COROLLARY}, {label}"
                bound, fast = (
                    corollary(one, its, lam, 0.97, printed)
                    for one, its in ((decay, spectrum), faster(decay, spectrum, times))
                )
                row = Row("Corollary 8", claim, where, gain, bound, trivial=most)
                if name == SLOW:
                    row = row._replace(documented=SAYS_NOTHING)
                yield row.controlled(f"a decay {times} times as fast", bound=fast)
    yield from printed_failures()


def corollary(decay: Decay, spectrum: Spectrum, lam: float, eta: float, printed: bool) -> float:
    """Return the right-hand side of Corollary 8, as printed or mended."""
    bound = decay.printed_gain_bound if printed else decay.gain_bound
    return bound(spectrum, eta, lam)


def faster(decay: Decay, spectrum: Spectrum, times: float) -> tuple[Decay, Spectrum]:
    """Return a decay of so many times the exponent or rate, and a spectrum that has it."""
    if isinstance(decay, PolynomialDecay):
        fast: Decay = PolynomialDecay(decay.constant, times * decay.exponent)
    else:
        assert isinstance(decay, ExponentialDecay)
        fast = ExponentialDecay(decay.constant, times * decay.rate)
    m = np.arange(1.0, len(spectrum.eigenvalues) + 1)
    return fast, replace(spectrum, eigenvalues=np.minimum(spectrum.eigenvalues, fast.bound(m)))


def printed_failures() -> Iterator[Row]:
    """Yield the ways in which Corollary 8 fails as printed; that is the control of its mends."""
    yield from slow_decay()
    beta, N = 1.5, 10.0  # Matern nu = 1/2 in d = 2
    tail, where = float(np.sum(np.arange(N + 1, 10**6) ** -beta)), "c_m = m^-1.5, N = 10"
    claim = "the proof's delta_N / psi^2 <= C N^(1 - beta)"
    mend = f"{claim} / (beta - 1), mended"
    printed = N ** (1 - beta)
    yield from printed_and_mended(
        "Corollary 8, proof", (claim, mend), where, tail, printed, printed / (beta - 1)
    )
    kernel, domain, lam, eta = SquaredExponential(0.2), grid(100, 1), 1e6, 0.9
    spectrum, table = mercer_spectrum(kernel, domain), exact_features(kernel, domain).table
    gain = float(greedy_gains(table, double_weights(eta, 500), lam).gains[-1])
    where = f"SE l = 0.2, lambda = {lam:g}, eta = {eta}, exponential decay"
    claims = f"{COROLLARY}, as printed (N may not be negative)", f"{COROLLARY}, mended"
    decay = ExponentialDecay.fit(spectrum)
    bounds = (corollary(decay, spectrum, lam, eta, printed) for printed in (True, False))
    false, right = printed_and_mended("Corollary 8", claims, where, gain, *bounds)
    yield false
    most = trivial_gain(double_weights(eta, 500), lam, spectrum.k_dot, len(domain))
    yield right._replace(trivial=most, documented=SAYS_NOTHING)


def slow_decay() -> tuple[Row, Row]:
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
    claims = f"{COROLLARY}, as printed", f"{COROLLARY}, mended"
    bounds = (corollary(decay, spectrum, lam, eta, printed) for printed in (True, False))
    false, right = printed_and_mended("Corollary 8", claims, where, gain, *bounds)
    most = trivial_gain(weights, lam, spectrum.k_dot, n)
    return false, right._replace(trivial=most, documented=SAYS_NOTHING)
