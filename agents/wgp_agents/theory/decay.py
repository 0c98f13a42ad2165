"""How fast a Mercer spectrum decays, and what that says of the information gain."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from wgp_agents.gp.spectrum import Spectrum
from wgp_gym.types import Array
from wgp_gym.validation import check_float, reject

__all__ = ["Decay", "ExponentialDecay", "PolynomialDecay"]

LARGEST_LOGARITHM = 700.0
SLACK = 1 + 1e-12  # a constant that was fitted may miss by its own rounding


class Decay(ABC):
    """A condition on how fast a spectrum decays, and [Deng22] Corollary 8 under it."""

    @abstractmethod
    def bound(self, m: Array) -> Array:
        """Return the condition's bound on c_m."""

    @abstractmethod
    def _mended(self, spectrum: Spectrum, ratio: float) -> float:
        """Return a bound on the gain for a total weight over lambda, `ratio`."""

    @abstractmethod
    def _printed(self, spectrum: Spectrum, ratio: float) -> float:
        """Return the corollary's right-hand side for a total weight over lambda, `ratio`."""

    def check(self, spectrum: Spectrum) -> None:
        """Check the condition on every c_m.

        Raises:
            ValueError: If it does not hold; the message names the first m where it does not.
        """
        c = spectrum.eigenvalues
        bound = self.bound(index(c))
        above = np.flatnonzero(c > SLACK * bound)
        if above.size:
            m = int(above[0])
            rule = f"one whose eigenvalue {m + 1} is at most {bound[m]:g} ({self})"
            reject("spectrum", type(self).__name__, rule, float(c[m]))

    def gain_bound(self, spectrum: Spectrum, discount: float, regularization: float) -> float:
        """Return a bound on gamma-bar at every horizon: Corollary 8, mended.

        Deviation: the class says what is mended; what the spectrum leaves out is added.

        Args:
            spectrum: The spectrum of which the condition holds.
            discount: eta in (0, 1). sqrt(eta) gives the bound on gamma-tilde.
            regularization: lambda > 0.

        Raises:
            ValueError: If a parameter is out of its range or the condition does not hold.
        """
        ratio = self._checked_ratio(spectrum, discount, regularization)
        return self._mended(spectrum, ratio) + ratio * spectrum.residual / 2

    def printed_gain_bound(
        self, spectrum: Spectrum, discount: float, regularization: float
    ) -> float:
        """Return the right-hand side of Corollary 8 as printed, which is not always a bound.

        Arguments and errors are those of `gain_bound`.

        Raises:
            ValueError: As there.
        """
        return self._printed(spectrum, self._checked_ratio(spectrum, discount, regularization))

    def _checked_ratio(self, spectrum: Spectrum, discount: float, regularization: float) -> float:
        """Return 1 / (lambda (1 - eta^2)), once everything is checked."""
        owner = type(self).__name__
        check_float("discount", discount, owner, 0, 1, closed="neither")
        check_float("regularization", regularization, owner, 0, closed="neither")
        self.check(spectrum)
        return 1 / (regularization * -math.expm1(2 * math.log(discount)))


@dataclass(frozen=True)
class PolynomialDecay(Decay):
    """c_m <= C m^-beta, the (C_p, beta_p) condition of [Deng22] Corollary 8 part 1.

    Deviation: sum over m > N of m^-beta is at most N^(1-beta) / (beta - 1), where the paper's
    proof has N^(1-beta). So `gain_bound` has C / (beta - 1) for C, without which the corollary
    fails for beta near 1.

    Args:
        constant: C > 0.
        exponent: beta > 1, without which the bound on the tail is infinite.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    constant: float
    exponent: float

    def __post_init__(self) -> None:
        check_float("constant", self.constant, "PolynomialDecay", 0, closed="neither")
        check_float("exponent", self.exponent, "PolynomialDecay", 1, closed="neither")

    @classmethod
    def fit(cls, spectrum: Spectrum, exponent: float) -> PolynomialDecay:
        """Return the decay with the smallest constant that holds for every c_m.

        Raises:
            ValueError: If the exponent is not in (1, inf).
        """
        check_float("exponent", exponent, "PolynomialDecay", 1, closed="neither")
        c = spectrum.eigenvalues
        logarithm = float((np.log(c) + exponent * np.log(index(c))).max())
        return cls(constant_of(logarithm, "exponent", "PolynomialDecay", exponent), exponent)

    def bound(self, m: Array) -> Array:
        """Return C m^-beta."""
        value: Array = self.constant * m**-self.exponent
        return value

    def _mended(self, spectrum: Spectrum, ratio: float) -> float:
        return self._value(self.constant / (self.exponent - 1), spectrum, ratio)

    def _printed(self, spectrum: Spectrum, ratio: float) -> float:
        return self._value(self.constant, spectrum, ratio)

    def _value(self, constant: float, spectrum: Spectrum, ratio: float) -> float:
        log = math.log1p(spectrum.k_dot * ratio)
        dimension: float = (constant * spectrum.psi**2 * ratio / log) ** (1 / self.exponent)
        return (dimension + 1) * log


@dataclass(frozen=True)
class ExponentialDecay(Decay):
    """c_m <= C exp(-r m), the (C_e1, C_e2, 1) condition of [Deng22] Corollary 8 part 2.

    Deviation: with N = ceil(q), q = log(C psi^2 / (r lambda (1 - eta^2))) / r, Theorem 7 leaves
    N / 2 log(1 + k_dot / (lambda (1 - eta^2))) + 1/2. The paper doubles the first term to absorb
    the 1/2, which fails where that term is small, and lets q be negative, where N cannot follow:
    its bound may be negative. In `gain_bound`, N <= max(q, 0) + 1 and the 1/2 stays.

    Args:
        constant: C > 0.
        rate: r > 0.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    constant: float
    rate: float

    def __post_init__(self) -> None:
        check_float("constant", self.constant, "ExponentialDecay", 0, closed="neither")
        check_float("rate", self.rate, "ExponentialDecay", 0, closed="neither")

    @classmethod
    def fit(cls, spectrum: Spectrum, rate: float | None = None) -> ExponentialDecay:
        """Return the decay with the smallest constant that holds for every c_m.

        Args:
            spectrum: The spectrum.
            rate: r > 0. Default: the slope of the least-squares line through log c_m.

        Raises:
            ValueError: If the rate is not in (0, inf), or is left to a spectrum without slope.
        """
        c = spectrum.eigenvalues
        if rate is None:
            if c[-1] >= c[0] * (1 - 1e-9):
                reject("rate", "ExponentialDecay", "given where no eigenvalue decays", rate)
            rate = -float(np.polyfit(index(c), np.log(c), 1)[0])
        check_float("rate", rate, "ExponentialDecay", 0, closed="neither")
        logarithm = float((np.log(c) + rate * index(c)).max())
        return cls(constant_of(logarithm, "rate", "ExponentialDecay", rate), rate)

    def bound(self, m: Array) -> Array:
        """Return C exp(-r m)."""
        value: Array = self.constant * np.exp(-self.rate * m)
        return value

    def _mended(self, spectrum: Spectrum, ratio: float) -> float:
        dimension = max(self._dimension(spectrum, ratio), 0.0) + 1
        return (dimension * math.log1p(spectrum.k_dot * ratio) + 1) / 2

    def _printed(self, spectrum: Spectrum, ratio: float) -> float:
        return (self._dimension(spectrum, ratio) + 1) * math.log1p(spectrum.k_dot * ratio)

    def _dimension(self, spectrum: Spectrum, ratio: float) -> float:
        """Return q, where the tail's share of the bound is 1/2."""
        return math.log(self.constant * spectrum.psi**2 * ratio / self.rate) / self.rate


def constant_of(logarithm: float, name: str, owner: str, value: float) -> float:
    """Return C from its logarithm.

    Raises:
        ValueError: If it is too large; the message names the parameter that makes it so.
    """
    if logarithm > LARGEST_LOGARITHM:
        reject(name, owner, "so small that the constant is finite", value)
    return math.exp(logarithm)


def index(eigenvalues: Array) -> Array:
    """Return m = 1 ... M as floats."""
    return np.arange(1.0, len(eigenvalues) + 1)
